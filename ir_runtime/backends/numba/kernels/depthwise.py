"""Depthwise convolutions: each channel with a kernel of its own."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import GroupConvolution
from ... import Kernel
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from ...core.lengths import filter_lengths
from .._backend import backend
from ..codegen.language import device
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args
from ._epilogue import Epilogue, Finish, Fused, conclude
from ._windows import BESIDE, FEW, SIZE, Geometry, geometry, reach, sliding, strip, tile, widened

__all__: list[str] = []

# Multiplications that are worth a second thread.
WORTH = 1 << 18
# Channels, and rows of the result, that are gone over while data and weights stay in the first cache.
CHUNK = 8 * LANES
ROWS = 8

# Kernels three, five and seven wide, by their strides, where all windows lie inside; where they do not, ten more.
_FORMS = {(3, 1): 1, (3, 2): 2, (5, 1): 3, (5, 2): 4, (7, 1): 5}
_BORDERED = 10
# All others, by how many windows are taken beside each other.
_MANY, _FEW, _ONE = 7, 8, 9


def _tap(emit: Emit, sum: Any, x: Any, w: Any) -> Any:
    return emit.fma(x, w, sum)


_slide = sliding({
    **{form: strip(*shape, False) for shape, form in _FORMS.items()},
    **{form + _BORDERED: strip(*shape, True) for shape, form in _FORMS.items()},
    _MANY: tile(_tap, BESIDE), _FEW: tile(_tap, FEW), _ONE: tile(_tap, 1),
})  # fmt: skip


@device
def _vectors(
    form: int, x: int, row: int, down: int, step: int, weights: int, lane: int, apart: int, table: int, y: int,
    pitch: int, start: int, stop: int, bias: int, first: int, width: int, filler: int, kernel: int,
    dilation: int, stride: int, begin: int, end: int, channels: int,
) -> None:  # fmt: skip
    """Windows beside each other, for some of the rows and of the channels."""
    for index in range(start, stop):
        entry = table + 24 * index
        data, out, rows = x + load_i64(entry, 0) * row, y + index * pitch, load_i64(entry, 2)
        w = weights + load_i64(entry, 1) * lane
        for c in range(begin, end, LANES):
            at = SIZE * min(c, channels - LANES)
            _slide(
                form, data + at, down, step, w, rows, out + at, step, bias + at, first, width, filler, kernel, dilation,
                stride,
            )  # fmt: skip
            w += apart


def _work(call: int) -> None:
    g, y, x, partner, second, counter = load_args(call)
    width, channels, lines, columns = load_i64(g, 1), load_i64(g, 2), load_i64(g, 3), load_i64(g, 4)
    tall, wide, along, spread = load_i64(g, 5), load_i64(g, 6), load_i64(g, 8), load_i64(g, 9)
    apart, before, units, several = load_i64(g, 10), load_i64(g, 12), load_i64(g, 13), load_i64(g, 14)
    form, weights, bias, filler = load_i64(g, 15), load_i64(g, 16), load_i64(g, 17), load_i64(g, 18)
    words, numbers, table = load_i64(g, 19), load_i64(g, 20), load_i64(g, 21)
    beside = BESIDE if columns >= BESIDE else (FEW if columns >= FEW else 1)
    other = _MANY if beside == BESIDE else (_FEW if beside == FEW else _ONE)
    step = SIZE * channels
    row, lane, vector = step * width, SIZE * LANES * wide, SIZE * LANES * tall * wide
    unit = fetch_add(counter)
    while unit < units:
        start, end = unit * several, min(unit * several + several, lines)
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            first = column * along - before
            last = first + (beside - 1) * along + (wide - 1) * apart
            chosen = other
            if form > 0 and beside == BESIDE:
                chosen = form if first >= 0 and last < width else form + _BORDERED
            for c in range(0, channels, CHUNK):
                _vectors(
                    chosen, x + first * step, row, row * spread, step, weights + c // LANES * vector, lane, vector,
                    table, y + column * step, columns * step, start, end, bias, first, width, filler, wide, apart,
                    along, c, min(c + CHUNK, channels), channels,
                )  # fmt: skip
            following = min(place + beside, columns - beside) if place + beside < columns else columns
            for index in range(start, end):
                at = (index * columns + column) * step
                conclude(words, numbers, partner, second, y, at, 0, following - column, channels, step)
        unit = fetch_add(counter)


WORKER = Task(_work)
"""Takes several rows of the result, counted through all images.

From them it takes windows beside each other, the same columns of each row, so that data stay in the first cache
that several rows need. Its job: the numbers of `geometry`, with the rows of all images; units of rows, rows in
each; the form of the windows; where weights, bias, a vector of zeros, and the words and numbers of what follows
lie; and where a table lies with the first row of data of each row, with its row of the kernel, and how many.
"""


@backend.accelerates(GroupConvolution)
def depthwise(op: GroupConvolution, data: Value, filters: Value) -> Kernel | None:
    """Constant f32 filters ``[C, 1, 1, kernel...]`` over one or two spatial axes."""
    w = filters.known()
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5) or w.shape[1:3] != (1, 1):
        return None
    if not w.size or not np.isfinite(w).all():
        return None
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    return Fused(lambda epilogue: _kernel(op, w, epilogue), 1, accepts=filter_lengths(len(w), extents))


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
    def job_for(images: int, lengths: tuple[int, ...]) -> tuple[Array, Array, tuple[int, ...]]:
        places = geometry(op, lengths, channels + short, kernel, op.dilations)
        table = _table(images, places)
        out = (images, *places[3:5].tolist(), channels + short)
        large = math.prod(out) * math.prod(kernel) >= WORTH
        several = max(min(out[1] // 4, ROWS), 1) if large else ROWS
        places[3] *= images
        addresses = [array.ctypes.data for array in (*kept, table)]
        units = -(-int(places[3]) // several)
        return np.array([*places, units, several, form, *addresses], np.int64), table, out

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        if flat:
            x = x[:, :, None]
        job, _, shape = job_for(len(x), x.shape[2:])
        y = np.empty(shape, np.float32)
        shared = threads() if y.size * math.prod(kernel) >= WORTH else 1
        source = contiguous(widened(channels_last(x)))
        partners = [contiguous(as_rows(widened(extras[index], 1), 1)) for index in ending.extras]
        first, second = (*partners, UNUSED, UNUSED)[:2]
        parallel_for(WORKER.address, job, y, source, first, second, shared)
        found = channels_first(np.ascontiguousarray(y[..., :channels]) if short else y)
        return found[:, :, 0] if flat else found

    return compute


def _table(images: int, places: Geometry) -> Array:
    """For each row of the result the first row of data, its row of the kernel, and how many there are."""
    height, lines, tall = (int(places[index]) for index in (0, 3, 5))
    across, spread, above = (int(places[index]) for index in (7, 9, 11))
    rows = [(top, *reach(top, height, spread, tall)) for top in range(-above, lines * across - above, across)]
    once = np.array([(top + low * spread, low, high - low) for top, low, high in rows], np.int64).reshape(
        -1, 3
    )
    shift = np.zeros((images, 1, 3), np.int64)
    shift[:, 0, 0] = np.arange(images) * height
    return (once + shift).reshape(-1, 3)


def _with_height(op: GroupConvolution) -> GroupConvolution:
    """The same convolution for data with an axis of length 1 before the only spatial one."""
    return GroupConvolution(
        strides=(1, *op.strides),
        dilations=(1, *op.dilations),
        pads_begin=(0, *op.pads_begin),
        pads_end=(0, *op.pads_end),
        auto_pad=op.auto_pad,
    )


def _packed(w: Array) -> Array:
    """Weights ``[C, height, width]`` as ``[vector, height, width, lane]``; the last vector overlaps."""
    places = np.minimum(np.arange(0, len(w), LANES), len(w) - LANES)
    channels = places[:, None] + np.arange(LANES)
    return np.ascontiguousarray(np.moveaxis(w[channels], 1, -1))
