"""Poolings of windows over rows of channels, and means over all of space."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....kernels.statistics import lowest
from ....ops.pooling.adaptive import AdaptiveAvgPool
from ....ops.pooling.windowed import (
    AvgPool1,
    AvgPool14,
    AvgPool16,
    AvgPoolBase,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxPoolWithIndices,
    Pooling,
)
from ....ops.reduction import ReduceMean
from ... import Kernel
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args
from ._reductions import scaled
from ._windows import BESIDE, SIZE, geometry, reach, sliding, tile, widened

__all__: list[str] = []

# Numbers read that are worth a second thread.
WORTH = 1 << 17
# Vectors of channels that are added up beside each other.
ABREAST = 4

_LOWEST = float(lowest(np.dtype(np.float32)))
_UNREAD = np.empty(0)


def _larger(emit: Emit, found: Any, x: Any, _: Any) -> Any:
    """The larger one; NaN never is."""
    return emit.builder.select(emit.builder.fcmp_ordered(">", x, found), x, found)


def _sum(emit: Emit, found: Any, x: Any, _: Any) -> Any:
    return emit.add(found, x)


# The largest, and the sum, of several windows beside each other; one more for one at a time.
_LARGEST, _SUM = 0, 2
_slide = sliding({
    _LARGEST: tile(_larger, BESIDE), _LARGEST + 1: tile(_larger, 1), _SUM: tile(_sum, BESIDE), _SUM + 1: tile(_sum, 1),
})  # fmt: skip


@device
def _vectors(
    form: int, x: int, down: int, right: int, rows: int, y: int, filler: int, first: int, width: int,
    kernel: int, dilation: int, stride: int, channels: int,
) -> None:  # fmt: skip
    """Windows beside each other, for all channels."""
    for c in range(0, channels, LANES):
        at = SIZE * min(c, channels - LANES)
        a, b = x + at, y + at
        _slide(
            form, a, down, right, 0, rows, b, right, filler, first, width, filler, kernel, dilation, stride
        )


def _pool(call: int) -> None:
    g, y, x, _, _, counter = load_args(call)
    height, width, channels, lines, columns = (
        load_i64(g, 0),
        load_i64(g, 1),
        load_i64(g, 2),
        load_i64(g, 3),
        load_i64(g, 4),
    )
    tall, wide, across, along = load_i64(g, 5), load_i64(g, 6), load_i64(g, 7), load_i64(g, 8)
    spread, apart, above, before = load_i64(g, 9), load_i64(g, 10), load_i64(g, 11), load_i64(g, 12)
    count, form, filler, factor = load_i64(g, 13), load_i64(g, 14), load_i64(g, 15), load_f32(g, 32)
    beside = BESIDE if columns >= BESIDE else 1
    form += beside == 1
    step, row = SIZE * channels, SIZE * channels * width
    index = fetch_add(counter)
    while index < count:
        image = index // lines
        top = (index - image * lines) * across - above
        low, high = reach(top, height, spread, tall)
        source = x + (image * height + top + low * spread) * row
        target = y + index * columns * step
        for place in range(0, columns, beside):
            column = min(place, columns - beside)
            first = column * along - before
            _vectors(
                form, source + first * step, row * spread, step, high - low, target + column * step, filler,
                first, width, wide, apart, along, channels,
            )  # fmt: skip
        if form >= _SUM and factor > 0:
            scaled(target, columns * channels, factor)
        elif form >= _SUM:
            for column in range(columns):
                left, right = reach(column * along - before, width, apart, wide)
                inside = max((high - low) * (right - left), 1)
                scaled(target + column * step, channels, np.float32(1) / np.float32(inside))
        index = fetch_add(counter)


POOL = Task(_pool)
"""Takes rows of the result through all images.

Its job: the numbers of `geometry`; how many rows; 0 for the largest, 2 for the mean; where a vector lies of what
padding holds; and an f32, what sums are multiplied with, or 0 to divide them by the elements inside.
"""


def _rectangle(abreast: int) -> Any:
    """The mean over a rectangle for several vectors of channels, added up row by row."""

    def write(
        emit: Emit, x: Any, down: Any, right: Any, rows: Any, columns: Any, y: Any, factor: Any
    ) -> None:
        zeros = [emit.constant(0)] * abreast
        with emit.loop(rows, [x, *zeros]) as (_, (begin, *totals), below):
            with emit.loop(columns, [begin, *zeros]) as (_, (place, *sums), following):
                loaded = [emit.load(emit.at(place, 4 * LANES * i)) for i in range(abreast)]
                sums = [emit.add(a, b) for a, b in zip(sums, loaded, strict=True)]
                following += [emit.at(place, right), *sums]
            totals = [emit.add(a, b) for a, b in zip(totals, following[1:], strict=True)]
            below += [emit.at(begin, down), *totals]
        same = emit.splat(factor)
        for i, total in enumerate(below[1:]):
            emit.store(emit.multiply(total, same), emit.at(y, 4 * LANES * i))

    return instruction(*[types.int64] * 6, types.float32)(write)


_mean_abreast, _mean_double, _mean_single = _rectangle(ABREAST), _rectangle(2), _rectangle(1)


def _adapt(call: int) -> None:
    g, y, x, _, _, counter = load_args(call)
    height, width, channels, lines, columns = (
        load_i64(g, 0),
        load_i64(g, 1),
        load_i64(g, 2),
        load_i64(g, 3),
        load_i64(g, 4),
    )
    count, vectors = load_i64(g, 5), load_i64(g, 6)
    step = SIZE * channels
    span = LANES * vectors
    groups = (channels + span - 1) // span
    index = fetch_add(counter)
    while index < count:
        place = index // groups
        at = SIZE * min((index - place * groups) * span, channels - span)
        image, column = place // (lines * columns), place % columns
        across = place // columns - image * lines
        top, left = across * height // lines, column * width // columns
        rows = ((across + 1) * height + lines - 1) // lines - top
        breadth = ((column + 1) * width + columns - 1) // columns - left
        source = x + ((image * height + top) * width + left) * step + at
        target, factor = y + place * step + at, np.float32(1) / np.float32(rows * breadth)
        if vectors == ABREAST:
            _mean_abreast(source, width * step, step, rows, breadth, target, factor)
        elif vectors == 2:
            _mean_double(source, width * step, step, rows, breadth, target, factor)
        else:
            _mean_single(source, width * step, step, rows, breadth, target, factor)
        index = fetch_add(counter)


ADAPT = Task(_adapt)
"""Takes vectors of channels of each element of the result: the mean over a window, windows as equal as possible.

Its job: height, width, channels; height and width of the result; how many there are; how many vectors are taken
at a time.
"""


@backend.accelerates(MaxPool1)
def largest(op: MaxPool1, data: Value) -> Kernel | None:
    """f32 over two spatial axes. As in the reference, no result is NaN, nor below the lowest number."""
    return _pooling(op, _LARGEST, _LOWEST) if _fits(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def largest_only(op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """As before, where nobody asks for indices."""
    if not _fits(op, data) or 1 not in unread:
        return None
    kernel = _pooling(op, _LARGEST, _LOWEST)
    return lambda x: (kernel(x), _UNREAD)


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def mean(op: AvgPoolBase, data: Value) -> Kernel | None:
    """f32 over two spatial axes."""
    return _pooling(op, _SUM, 0) if _fits(op, data) else None


def _fits(op: Pooling, data: Value) -> bool:
    return is_f32(data) and len(op.kernel) == 2


def _pooling(op: Pooling, form: int, fill: float) -> Callable[[Array], Array]:
    filler = np.full(LANES, fill, np.float32)

    @lru_cache(maxsize=16)
    def job_for(images: int, lengths: tuple[int, ...], channels: int) -> tuple[Array, tuple[int, ...]]:
        places = geometry(op, lengths, channels, op.kernel, op.spread())
        factor = np.zeros(2, np.float32)
        if isinstance(op, AvgPoolBase) and not op.exclude_pad and any(map(any, op.pads(lengths, op.kernel))):
            factor[0] = 1 / math.prod(op.kernel)
        out = (images, *places[3:5], channels)
        words = [*places, images * out[1], form, filler.ctypes.data, *factor.view(np.int64)]
        return np.array(words, np.int64), out

    def kernel(x: Array) -> Array:
        rows = widened(channels_last(x))
        job, shape = job_for(len(x), x.shape[2:], rows.shape[-1])
        y = np.empty(shape, np.float32)
        shared = threads() if y.size * math.prod(op.kernel) >= WORTH else 1
        parallel_for(POOL.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
        return channels_first(_narrowed(y, x.shape[1]))

    return kernel


def _narrowed(y: Array, channels: int) -> Array:
    return y if y.shape[-1] == channels else np.ascontiguousarray(y[..., :channels])


@backend.accelerates(AdaptiveAvgPool)
def adaptive(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """f32 over two spatial axes, into a constant number of windows."""
    counts = output_size.ints()
    if not is_f32(data) or counts is None or data.shape.rank != 4 or len(counts) != 2 or min(counts) < 1:
        return None
    return lambda x, _: _means(x, counts) if x.size else op.evaluate(x, np.array(counts))


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> Kernel | None:
    """f32 over the two axes behind the channels."""
    found = axes.ints()
    if not is_f32(data) or data.shape.rank != 4 or found is None or {axis % 4 for axis in found} != {2, 3}:
        return None
    constant = np.array(found)

    def kernel(x: Array, _: Array) -> Array:
        if not x.size:
            return op.evaluate(x, constant)
        means = _means(x, (1, 1))
        return means if op.keep_dims else means[:, :, 0, 0]

    return kernel


def _means(x: Array, counts: tuple[int, ...]) -> Array:
    rows = widened(channels_last(x))
    n, height, width, channels = rows.shape
    y = np.empty((n, *counts, channels), np.float32)
    vectors = next(n for n in (ABREAST, 2, 1) if channels >= n * LANES)
    groups = -(-channels // (LANES * vectors))
    job = np.array([height, width, channels, *counts, n * math.prod(counts) * groups, vectors], np.int64)
    shared = threads() if x.size >= WORTH else 1
    parallel_for(ADAPT.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
    return channels_first(_narrowed(y, x.shape[1]))
