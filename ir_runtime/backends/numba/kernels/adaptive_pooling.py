"""Adaptive average pooling, and means over all pixels: channels last, some vectors of channels at a time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....ops.pooling.adaptive import AdaptiveAvgPool
from ....ops.reduction import ReduceMean
from ... import Kernel, KernelObject
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.bf16 import load_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._products import asked_products
from ._windows import F32_SIZE, drop_padding, pad_channels
from .contiguous import contiguous

__all__: list[str] = []

# Elements read from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17
# Vectors of channels that are summed at a time.
MAX_VECTORS = 4


class AdaptivePoolJob(Descriptor):
    """The job of `ADAPTIVE_MEAN`: ``vectors`` of channels of an element are a unit."""

    height: i64
    width: i64
    channels: i64
    out_height: i64
    out_width: i64
    units: i64
    vectors: i64
    data_size: i64


def _rectangle_mean(
    abreast: int, size: int = 4, load_vector: Callable[[Emit, ir.Value], ir.Value] = Emit.load
) -> Instruction:
    """Return an instruction for the mean over a rectangle for several vectors of channels, summed row by row.

    Args:
        abreast: how many vectors.
        size: bytes of a number.
        load_vector: loads a vector as f32.
    """

    def write(
        emit: Emit,
        x: ir.Value,
        down: ir.Value,
        right: ir.Value,
        rows: ir.Value,
        columns: ir.Value,
        y: ir.Value,
        factor: ir.Value,
    ) -> None:
        zeros = [emit.constant(0)] * abreast
        with emit.loop(rows, [x, *zeros]) as (_, (begin, *totals), below):
            with emit.loop(columns, [begin, *zeros]) as (_, (place, *sums), following):
                loaded = [load_vector(emit, emit.at(place, size * LANES * i)) for i in range(abreast)]
                sums = [emit.add(a, b) for a, b in zip(sums, loaded, strict=True)]
                following += [emit.at(place, right), *sums]
            totals = [emit.add(a, b) for a, b in zip(totals, following[1:], strict=True)]
            below += [emit.at(begin, down), *totals]
        same = emit.splat(factor)
        for i, total in enumerate(below[1:]):
            emit.store(emit.multiply(total, same), emit.at(y, 4 * LANES * i))

    return instruction(*[types.int64] * 6, types.float32)(write)


_mean_wide, _mean_double, _mean_single = _rectangle_mean(MAX_VECTORS), _rectangle_mean(2), _rectangle_mean(1)
_bf16_mean = _rectangle_mean(1, 2, load_bf16)


def _adaptive_mean(call: int) -> None:
    job, y, x, _, _, _ = load_args(call)
    height, width, channels, lines, columns = (
        load_i64(job, AdaptivePoolJob.height),
        load_i64(job, AdaptivePoolJob.width),
        load_i64(job, AdaptivePoolJob.channels),
        load_i64(job, AdaptivePoolJob.out_height),
        load_i64(job, AdaptivePoolJob.out_width),
    )
    count, vectors = load_i64(job, AdaptivePoolJob.units), load_i64(job, AdaptivePoolJob.vectors)
    size = load_i64(job, AdaptivePoolJob.data_size)
    step = size * channels
    span = LANES * vectors
    groups = (channels + span - 1) // span
    index = next_unit(call, count)
    while index < count:
        place = index // groups
        first = min((index - place * groups) * span, channels - span)
        image, column = place // (lines * columns), place % columns
        across = place // columns - image * lines
        top, left = across * height // lines, column * width // columns
        rows = ((across + 1) * height + lines - 1) // lines - top
        breadth = ((column + 1) * width + columns - 1) // columns - left
        source = x + ((image * height + top) * width + left) * step + size * first
        target, factor = y + F32_SIZE * (place * channels + first), np.float32(1) / np.float32(rows * breadth)
        if size < F32_SIZE:
            for i in range(vectors):
                at = i * LANES
                _bf16_mean(
                    source + size * at, width * step, step, rows, breadth, target + F32_SIZE * at, factor
                )
        elif vectors == MAX_VECTORS:
            _mean_wide(source, width * step, step, rows, breadth, target, factor)
        elif vectors == 2:
            _mean_double(source, width * step, step, rows, breadth, target, factor)
        else:
            _mean_single(source, width * step, step, rows, breadth, target, factor)
        index = next_unit(call, count)


ADAPTIVE_MEAN = Task(_adaptive_mean)
"""Compute means over windows that are as equal as possible; a unit is some channels of an element."""


@backend.accelerates(AdaptiveAvgPool)
def adaptive(op: AdaptiveAvgPool, data: Value, output_size: Value) -> Kernel | None:
    """f32 over two spatial axes, into a constant number of windows."""
    counts = output_size.ints()
    if not is_f32(data) or counts is None or data.shape.rank != 4 or len(counts) != 2 or min(counts) < 1:
        return None
    return replayed(lambda x, _: _adaptive_means(x, counts) if x.size else op.evaluate(x, np.array(counts)))


@backend.accelerates(ReduceMean)
def spatial_mean(op: ReduceMean, data: Value, axes: Value) -> Kernel | None:
    """f32 over the two axes after the channels."""
    found = axes.ints()
    if not is_f32(data) or data.shape.rank != 4 or found is None or {axis % 4 for axis in found} != {2, 3}:
        return None
    return _SpatialMean(op, np.array(found), asked_products().is_faster)


@dataclass(frozen=True)
class _SpatialMean(KernelObject):
    """Means over the two axes after the channels; with ``bf16``, the data may be stored so. The result is f32."""

    op: ReduceMean
    axes: Array
    bf16: bool

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.bf16 and place == 0

    def prepare(self) -> Kernel:
        """Return a function, which is called faster."""
        return replayed(partial(_SpatialMean.__call__, self))

    def __call__(self, *arrays: Array) -> Array:
        """Compute the means of the first input."""
        x = arrays[0]
        if not x.size:
            return self.op.evaluate(x, self.axes)
        means = _adaptive_means(x, (1, 1))
        return means if self.op.keep_dims else means[:, :, 0, 0]


def _adaptive_means(x: Array, counts: tuple[int, ...]) -> Array:
    rows = pad_channels(channels_last(x))
    n, height, width, channels = rows.shape
    y = np.empty((n, *counts, channels), np.float32)
    vectors = next(n for n in (MAX_VECTORS, 2, 1) if channels >= n * LANES)
    groups = -(-channels // (LANES * vectors))
    job = AdaptivePoolJob.fill(
        height=height, width=width, channels=channels, out_height=counts[0], out_width=counts[1],
        units=n * math.prod(counts) * groups, vectors=vectors, data_size=x.itemsize,
    )  # fmt: skip
    shared = threads() if x.size >= MIN_PARALLEL_WORK else 1
    parallel_for(ADAPTIVE_MEAN.address, job, y, contiguous(rows), UNUSED, UNUSED, shared)
    return channels_first(drop_padding(y, x.shape[1]))
