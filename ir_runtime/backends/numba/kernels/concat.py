"""Concatenation along the channels of NHWC maps, shared by threads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from llvmlite import ir

from ....arrays import DType
from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ... import Kernel, KernelObject
from ...common.layout import channels_first, is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, concatenate, i64
from ..codegen.language import instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import I64, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._bf16_tile import round_row
from ._epilogue import BF16, F32
from ._products import asked_products

__all__: list[str] = []

# Results with fewer elements are left to NumPy, and all if there is one thread.
MIN_PARALLEL_WORK = 1 << 16
# Elements of the map of a unit: what is read stays in the L1 cache.
ROWS_PER_UNIT = 32


class ConcatJob(Descriptor):
    """The job of `CONCAT`; ``size`` is that of a number of the result in bytes."""

    rows: i64
    parts: i64
    channels: i64
    size: i64


class Part(Descriptor):
    """One input; ``is_rounded`` if it is f32 while the result is bf16."""

    data: i64
    row_stride: i64
    channels: i64
    is_rounded: i64


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
    size = load_i64(job, ConcatJob.size)
    start = fetch_add(counter) * ROWS_PER_UNIT
    while start < rows:
        some = min(ROWS_PER_UNIT, rows - start)
        target = out + size * channels * start
        for part in range(parts):
            entry = table + 8 * Part.words * part
            stride, count = load_i64(entry, Part.row_stride), load_i64(entry, Part.channels)
            source = load_i64(entry, Part.data) + start * stride
            for row in range(some):
                if load_i64(entry, Part.is_rounded) != 0:
                    round_row(source + row * stride, count, target + size * channels * row, count)
                else:
                    _memcpy(source + row * stride, size * count, target + size * channels * row)
            target += size * count
        start = fetch_add(counter) * ROWS_PER_UNIT


CONCAT = Task(_concat)
"""Concatenate; A has a `Part` for each input."""


@backend.accelerates(Concat)
def channels(op: Concat, *parts: Value) -> Kernel | None:
    """f32 ``[N, C, H, W]`` along the channels, stored as NHWC."""
    if not is_f32(*parts) or op.axis not in (1, -3) or any(part.shape.rank != 4 for part in parts):
        return None
    CONCAT.prepare()
    return _Channels(op.axis, asked_products().is_faster)


@dataclass(frozen=True)
class _Channels(KernelObject):
    """Joins channels along an axis; with ``bf16``, the result may be stored in bf16, and is if it ``rounds``."""

    axis: int
    bf16: bool
    rounds: bool = False
    accepts = staticmethod(any_lengths)

    def reads_bf16(self, place: int) -> bool:
        """Return whether an input may be stored in bf16."""
        return self.rounds

    def storing_bf16(self) -> Kernel | None:
        """Return a kernel that stores its result in bf16, or ``None``."""
        return replace(self, rounds=True) if self.bf16 else None

    def prepare(self) -> Kernel:
        """Return a function, which is called faster."""
        return accepting(partial(_join, self.axis, BF16 if self.rounds else F32), any_lengths)

    def __call__(self, *arrays: Array) -> Array:
        """Join the channels."""
        return _join(self.axis, BF16 if self.rounds else F32, *arrays)


def _join(axis: int, stored: DType, *arrays: Array) -> Array:
    n, _, height, width = arrays[0].shape
    count = sum(x.shape[1] for x in arrays)
    size, lengths = n * height * width * count, (n, height, width)
    is_left = size < MIN_PARALLEL_WORK or (threads() == 1 and stored is F32)
    if is_left or not all(_in_rows(x, lengths) for x in arrays):
        return np.concatenate(arrays, axis, dtype=stored, casting="unsafe")
    y = np.empty((*lengths, count), stored)
    job = ConcatJob.fill(rows=n * height * width, parts=len(arrays), channels=count, size=y.itemsize)
    parallel_for(CONCAT.address, job, y, _table(arrays, y.itemsize), UNUSED, UNUSED, threads())
    return channels_first(y)


def _in_rows(x: Array, lengths: tuple[int, int, int]) -> bool:
    """Return whether channels are contiguous, and elements of the map at equal distances."""
    images, height, width = lengths
    far, near, down, across = x.strides
    whole = (far == height * down or images == 1) and (down == width * across or height == 1)
    return near == x.itemsize and whole and (x.shape[0], *x.shape[2:]) == lengths


def _table(arrays: Sequence[Array], size: int) -> Array:
    return concatenate(
        *(
            Part.fill(
                data=x.ctypes.data, row_stride=x.strides[3], channels=x.shape[1], is_rounded=x.itemsize > size
            )
            for x in arrays
        )
    )
