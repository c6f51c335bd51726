"""Concatenation along the channels of NHWC maps, shared by threads."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ... import Kernel
from ...common.layout import channels_first, is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, concatenate, i64
from ..codegen.language import instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import I64, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args

__all__: list[str] = []

# Results with fewer elements are left to NumPy, and all if there is one thread.
MIN_PARALLEL_WORK = 1 << 16
# Elements of the map of a unit: what is read stays in the L1 cache.
ROWS_PER_UNIT = 32


class ConcatJob(Descriptor):
    """The job of `CONCAT`."""

    rows: i64
    parts: i64
    channels: i64


class Part(Descriptor):
    """One input."""

    data: i64
    row_stride: i64
    channels: i64


@instruction(*[types.int64] * 3)
def _memcpy(emit: Emit, x: ir.Value, size: ir.Value, out: ir.Value) -> None:
    """Copy ``size`` bytes with memcpy of the C library."""
    pointer = ir.PointerType()
    places = [emit.builder.inttoptr(place, pointer) for place in (out, x)]
    copy = emit.function("memcpy", pointer, pointer, pointer, I64)
    emit.builder.call(copy, [*places, size])


def _concat(call: int) -> None:
    """Copy elements of the map from all inputs."""
    job, out, table, _, _, counter = load_args(call)
    rows, parts, channels = (
        load_i64(job, ConcatJob.rows),
        load_i64(job, ConcatJob.parts),
        load_i64(job, ConcatJob.channels),
    )
    start = fetch_add(counter) * ROWS_PER_UNIT
    while start < rows:
        some = min(ROWS_PER_UNIT, rows - start)
        target = out + 4 * channels * start
        for part in range(parts):
            entry = table + 8 * Part.words * part
            stride, count = load_i64(entry, Part.row_stride), load_i64(entry, Part.channels)
            source = load_i64(entry, Part.data) + start * stride
            for row in range(some):
                _memcpy(source + row * stride, 4 * count, target + 4 * channels * row)
            target += 4 * count
        start = fetch_add(counter) * ROWS_PER_UNIT


CONCAT = Task(_concat)
"""Concatenate; A has a `Part` for each input."""


@backend.accelerates(Concat)
def channels(op: Concat, *parts: Value) -> Kernel | None:
    """f32 ``[N, C, H, W]`` along the channels, stored as NHWC."""
    if not is_f32(*parts) or op.axis not in (1, -3) or any(part.shape.rank != 4 for part in parts):
        return None
    join, axis = np.concatenate, op.axis
    CONCAT.prepare()

    def kernel(*arrays: Array) -> Array:
        n, _, height, width = arrays[0].shape
        count = sum(x.shape[1] for x in arrays)
        size = n * height * width * count
        if (
            size < MIN_PARALLEL_WORK
            or threads() == 1
            or not all(_in_rows(x, (n, height, width)) for x in arrays)
        ):
            return join(arrays, axis)
        y = np.empty((n, height, width, count), np.float32)
        job = ConcatJob.fill(rows=n * height * width, parts=len(arrays), channels=count)
        parallel_for(CONCAT.address, job, y, _table(arrays), UNUSED, UNUSED, threads())
        return channels_first(y)

    return accepting(kernel, any_lengths)


def _in_rows(x: Array, lengths: tuple[int, int, int]) -> bool:
    """Return whether channels are contiguous, and elements of the map at equal distances."""
    images, height, width = lengths
    far, near, down, across = x.strides
    whole = (far == height * down or images == 1) and (down == width * across or height == 1)
    return near == 4 and whole and (x.shape[0], *x.shape[2:]) == lengths


def _table(arrays: Sequence[Array]) -> Array:
    return concatenate(
        *(Part.fill(data=x.ctypes.data, row_stride=x.strides[3], channels=x.shape[1]) for x in arrays)
    )
