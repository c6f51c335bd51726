"""Copies between arrays of any strides, for small arrays in runs that are recorded: NumPy's copies cannot be replayed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Annotated, TypeAlias

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, each_counted, load_args

__all__ = [
    "MAX_SIZE",
    "SIZES",
    "STRIDED_COPY",
    "broadcast_together",
    "expanded",
    "merged_copy_axes",
    "strided_copy",
]

# Axes of a job, the last three of which are those of units; bytes of the elements that it copies; elements up to which it is
# as fast as NumPy, and from which several threads are faster.
RANK, INNER = 6, 3
SIZES = (1, 2, 4, 8)
MAX_SIZE = 1 << 16
MIN_PARALLEL_SIZE = 1 << 13
# The most units of a thread.
MAX_UNITS = 16
# Elements of an innermost axis below which a longer one is copied in the innermost loop.
SHORT = 8


_Axis: TypeAlias = tuple[int, int, int]
_Shape: TypeAlias = tuple[int, ...]


class StridedCopyJob(Descriptor):
    """The job of `STRIDED_COPY`: bytes of an element; length, and both strides in bytes of each axis, innermost first."""

    size: i64
    lengths: Annotated[int, (np.int64, (RANK,))]
    strides: Annotated[int, (np.int64, (RANK,))]
    result_strides: Annotated[int, (np.int64, (RANK,))]


@instruction(*[types.int64] * 6)
def _copy_elements(
    emit: Emit, size: ir.Value, count: ir.Value, x: ir.Value, stride: ir.Value, out: ir.Value, width: ir.Value
) -> None:  # fmt: skip
    """Copy ``count`` elements of ``size`` bytes between addresses that advance by ``stride`` and ``width`` bytes."""

    def go(kind: ir.Type) -> None:
        with emit.loop(count, [x, out]) as (_, (source, target), following):
            emit.store(emit.load(source, kind, 1), target, 1)
            following += [emit.at(source, stride), emit.at(target, width)]

    emit.switch(size, {n: partial(go, ir.IntType(8 * n)) for n in SIZES})


def _copy(call: int) -> None:
    address, out, x, _, _, counter = load_args(call)
    job = StridedCopyJob.at(address)
    size, lengths = job.size, job + 8 * StridedCopyJob.lengths
    strides, widths = job + 8 * StridedCopyJob.strides, job + 8 * StridedCopyJob.result_strides
    count, middle, outer = load_i64(lengths, 0), load_i64(lengths, 1), load_i64(lengths, 2)
    units = load_i64(lengths, 3) * load_i64(lengths, 4) * load_i64(lengths, 5)
    for unit in each_counted(counter, units):
        source, target, place = x, out, unit
        for axis in range(3, RANK):
            length = load_i64(lengths, axis)
            at = place % length
            source += at * load_i64(strides, axis)
            target += at * load_i64(widths, axis)
            place = place // length
        for i in range(outer):
            for j in range(middle):
                _copy_elements(
                    size, count,
                    source + i * load_i64(strides, 2) + j * load_i64(strides, 1), load_i64(strides, 0),
                    target + i * load_i64(widths, 2) + j * load_i64(widths, 1), load_i64(widths, 0),
                )  # fmt: skip


STRIDED_COPY = Task(_copy)
"""Copy A to the result."""


def strided_copy(x: Array, out: Array, most: float = MAX_SIZE) -> bool:
    """Copy an array to one of the same shape and element size by a task; return whether that is possible.

    Args:
        x: the array.
        out: the copy.
        most: the elements above which it is left to NumPy.
    """
    count = threads() if x.size >= MIN_PARALLEL_SIZE else 1
    job = _job(x.shape, x.strides, out.strides, x.itemsize, count) if x.size <= most else None
    if job is None or x.dtype.hasobject:
        return False
    if x.size:
        parallel_for(STRIDED_COPY.address, job, out, x, UNUSED, UNUSED, count)
    return True


def expanded(x: Array, shape: tuple[int, ...]) -> Array | None:
    """Return an array in C order that has this shape, to which the given one broadcasts; ``None`` where no task can copy it."""
    if x.shape == shape and x.flags.c_contiguous:
        return x
    found = empty(shape, x.dtype)
    return found if strided_copy(np.broadcast_to(x, shape), found) else None


def broadcast_together(*arrays: Array) -> list[Array] | None:
    """Return few elements in the shape that all broadcast to; ``None`` if they do not, and where no task can copy them."""
    try:
        shape = np.broadcast_shapes(*[x.shape for x in arrays])
    except ValueError:
        return None  # which operations say better
    if not 0 < math.prod(shape) <= MAX_SIZE:
        return None
    found = [x for x in (expanded(array, shape) for array in arrays) if x is not None]
    return found if len(found) == len(arrays) else None


@lru_cache(maxsize=256)
def _job(shape: _Shape, strides: _Shape, widths: _Shape, size: int, threads: int) -> Array | None:
    """Return the job of a copy for some threads; ``None`` for too many axes, and for elements of other sizes."""
    merged = merged_copy_axes(shape, strides, widths)
    if len(merged) > RANK or size not in SIZES:
        return None
    axes = _divided(merged, threads)
    if axes[0][0] < SHORT:
        longest = max(range(INNER), key=lambda index: axes[index][0])
        axes[0], axes[longest] = axes[longest], axes[0]
    lengths, steps, result_steps = zip(*axes, strict=True)
    return StridedCopyJob.fill(size=size, lengths=lengths, strides=steps, result_strides=result_steps)


def merged_copy_axes(shape: _Shape, strides: _Shape, widths: _Shape) -> list[_Axis]:
    """Return length, stride, and stride in the copy of each axis, innermost first; axes that are like one are merged."""
    axes = [axis for axis in zip(shape, strides, widths, strict=True) if axis[0] != 1]
    axes.sort(key=lambda axis: (abs(axis[2]), abs(axis[1])))
    merged = axes[:1]
    for axis in axes[1:]:
        length, stride, width = merged[-1]
        if axis[1:] == (length * stride, length * width):
            merged[-1] = (length * axis[0], stride, width)
        else:
            merged.append(axis)
    return merged


def _divided(axes: Sequence[_Axis], threads: int) -> list[_Axis]:
    """Return all axes of a job; for several threads, the outermost one is divided into equal parts, which are units."""
    found, one = list(axes), (1, 0, 0)
    if threads > 1 and 1 < len(found) <= INNER:
        length, stride, width = found.pop()
        numbers = range(min(length, threads), min(length, MAX_UNITS * threads) + 1)
        parts = next((n for n in numbers if length % n == 0), 1)
        some = length // parts
        found += [
            (some, stride, width),
            *[one] * (INNER - 1 - len(found)),
            (parts, some * stride, some * width),
        ]
    return found + [one] * (RANK - len(found))
