"""Depthwise convolutions: each channel with a kernel of its own."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ...ir.tensor import Array, Value
from ...ops.convolution.forward import GroupConvolution
from .. import Kernel
from ..numpy._memory import channels_first, channels_last, is_f32
from ._backend import backend
from ._compile import device
from ._curves import apply
from ._epilogue import Epilogue, Finish, Fused, add_rows, finish
from ._threads import threads
from ._vectors import LANES
from ._windows import BESIDE, FEW, SIZE, geometry, reach, strip, tile, widened
from ._work import CALL_A, CALL_B, CALL_C, CALL_JOB, CALL_OUT, COUNTER, Worker, number, share, take, word

__all__: list[str] = []

# Multiplications that are worth a second thread.
WORTH = 1 << 20

# Kernels three, five and seven wide, by their strides; all others are 0.
_FORMS = {(3, 1): 1, (3, 2): 2, (5, 1): 3, (5, 2): 4, (7, 1): 5}

_three, _three_beside = strip(3, 1, False), strip(3, 1, True)
_three_by_two, _three_by_two_beside = strip(3, 2, False), strip(3, 2, True)
_five, _five_beside = strip(5, 1, False), strip(5, 1, True)
_five_by_two, _five_by_two_beside = strip(5, 2, False), strip(5, 2, True)
_seven, _seven_beside = strip(7, 1, False), strip(7, 1, True)
_many, _few, _one = (tile(lambda emit, sum, x, w: emit.fma(x, w, sum), n) for n in (BESIDE, FEW, 1))


@device
def _vectors(
    form: int, x: int, down: int, right: int, w: int, apart: int, rows: int, y: int, step: int,
    bias: int, first: int, width: int, filler: int, kernel: int, dilation: int, stride: int, channels: int,
) -> None:  # fmt: skip
    """Windows beside each other, for all channels."""
    for c in range(0, channels, LANES):
        at = SIZE * min(c, channels - LANES)
        if form == 1:
            _three(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 2:
            _three_by_two(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 3:
            _five(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 4:
            _five_by_two(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 5:
            _seven(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 11:
            _three_beside(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 12:
            _three_by_two_beside(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 13:
            _five_beside(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 14:
            _five_by_two_beside(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 15:
            _seven_beside(x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler)
        elif form == 7:
            _many(
                x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler,
                kernel, dilation, stride,
            )  # fmt: skip
        elif form == 8:
            _few(
                x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler,
                kernel, dilation, stride,
            )  # fmt: skip
        else:
            _one(
                x + at, down, right, w, rows, y + at, step, bias + at, first, width, filler,
                kernel, dilation, stride,
            )  # fmt: skip
        w += apart


def _work(call: int) -> None:
    g = word(call, CALL_JOB)
    height, width, channels, lines, columns = word(g, 0), word(g, 1), word(g, 2), word(g, 3), word(g, 4)
    tall, wide, across, along = word(g, 5), word(g, 6), word(g, 7), word(g, 8)
    spread, apart, above, before = word(g, 9), word(g, 10), word(g, 11), word(g, 12)
    count, form, weights, bias, filler = word(g, 13), word(g, 14), word(g, 15), word(g, 16), word(g, 17)
    words, numbers = word(g, 18), word(g, 19)
    x, y, first_extra, second_extra = (
        word(call, CALL_A),
        word(call, CALL_OUT),
        word(call, CALL_B),
        word(call, CALL_C),
    )
    summed, low_bound, high_bound = word(words, 0), number(numbers, 0), number(numbers, 1)
    bounded = low_bound > -np.inf or high_bound < np.inf
    beside = BESIDE if columns >= BESIDE else (FEW if columns >= FEW else 1)
    other = 7 if beside == BESIDE else (8 if beside == FEW else 9)
    step, row = SIZE * channels, SIZE * channels * width
    index = take(call + 8 * COUNTER)
    while index < count:
        image = index // lines
        top = (index - image * lines) * across - above
        low, high = reach(top, height, spread, tall)
        source = x + (image * height + top + low * spread) * row
        target = index * columns * step
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            first = column * along - before
            last = first + (beside - 1) * along + (wide - 1) * apart
            chosen = other
            if form > 0 and beside == BESIDE:
                chosen = form if first >= 0 and last < width else form + 10
            _vectors(
                chosen, source + first * step, row * spread, step, weights + SIZE * LANES * low * wide,
                SIZE * LANES * tall * wide, high - low, y + target + column * step, step, bias, first, width,
                filler, wide, apart, along, channels,
            )  # fmt: skip
        if summed:
            add_rows(y + target, first_extra + target, columns * channels)
        if bounded:
            apply(y + target, columns * channels, 1, low_bound, high_bound)
        finish(words, numbers, first_extra, second_extra, y, target, 0, columns, channels, step)
        index = take(call + 8 * COUNTER)


WORKER = Worker(_work)
"""Takes rows of the result through all images.

Its job: the numbers of `geometry`; how many rows; the form of the windows; where weights, bias, a vector of
zeros, and the words and numbers of what follows lie.
"""


@backend.accelerates(GroupConvolution)
def depthwise(op: GroupConvolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters ``[C, 1, 1, kernel...]`` over one or two spatial axes."""
    w = filters.known()
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5) or w.shape[1:3] != (1, 1):
        return None
    if not w.size or not np.isfinite(w).all():
        return None
    return Fused(lambda epilogue: _kernel(op, w, epilogue), 1)


def _kernel(op: GroupConvolution, w: Array, epilogue: Epilogue) -> Kernel:
    flat = w.ndim == 4
    if flat:
        op = _with_height(op)
    kernel, channels = (1, *w.shape[3:])[-2:], len(w)
    weights = w.reshape(channels, *kernel)
    if epilogue.scale is not None:
        weights = weights * epilogue.scale[:, None, None]
    short = max(LANES - channels, 0)
    packed = _packed(widened(weights, 0))
    bias = np.zeros(channels + short, np.float32)
    if epilogue.shift is not None:
        bias[:channels] = epilogue.shift
    ending = Finish.of(epilogue)
    form = _FORMS.get((kernel[1], op.strides[1]), 0) if op.dilations[1] == 1 else 0
    kept = (packed, bias, np.zeros(LANES, np.float32), ending.words, ending.numbers)

    @lru_cache(maxsize=16)
    def job_for(images: int, lengths: tuple[int, ...]) -> tuple[Array, tuple[int, ...]]:
        places = geometry(op, lengths, channels + short, kernel, op.dilations)
        out = (images, *places[3:5], channels + short)
        addresses = [array.ctypes.data for array in kept]
        return np.array([*places, images * out[1], form, *addresses], np.int64), out

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        if flat:
            x, extras = x[:, :, None], tuple(extra[:, :, None] for extra in extras)
        rows = channels_last(x)
        if short:
            rows, extras = widened(rows), tuple(widened(extra, 1) for extra in extras)
        job, shape = job_for(len(x), x.shape[2:])
        y = np.empty(shape, np.float32)
        shared = threads() if y.size * math.prod(kernel) >= WORTH else 1
        source = np.ascontiguousarray(rows).reshape(-1)
        first, second = ending.partners(extras, 1)
        share(WORKER.address, job, y.reshape(-1), source, first, second, shared)
        if short:
            y = np.ascontiguousarray(y[..., :channels])
        found = channels_first(y)
        return found[:, :, 0] if flat else found

    return compute


def _with_height(op: GroupConvolution) -> GroupConvolution:
    """The same convolution for data with an axis of length 1 before the only spatial one."""
    return replace(
        op,
        strides=(1, *op.strides),
        dilations=(1, *op.dilations),
        pads_begin=(0, *op.pads_begin),
        pads_end=(0, *op.pads_end),
    )


def _packed(w: Array) -> Array:
    """Weights ``[C, height, width]`` as ``[vector, height, width, lane]``; the last vector overlaps."""
    places = np.minimum(np.arange(0, len(w), LANES), len(w) - LANES)
    channels = places[:, None] + np.arange(LANES)
    return np.ascontiguousarray(np.moveaxis(w[channels], 1, -1))
