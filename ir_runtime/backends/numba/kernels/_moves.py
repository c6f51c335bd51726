"""Copies of small arrays between any strides: where NumPy would copy, a replay would end."""

from __future__ import annotations

import math
from typing import Annotated

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import Emit, Value
from ..threading.parallel import parallel_for
from ..threading.recording import RECORD
from ..threading.task import UNUSED, Task, load_args

__all__ = ["MOVE", "can_move", "contiguous_rows", "moved"]

# Axes beside the last one. Arrays with more elements are left to NumPy.
OUTER = 5
MAX_SIZE = 1 << 16
_SIZES = (1, 2, 4, 8)


class MoveJob(Descriptor):
    """The job of `MOVE`: bytes of an element, the lengths of the axes, innermost first, and strides in bytes."""

    rows: i64
    item: i64
    count: i64
    step: i64
    result_step: i64
    lengths: Annotated[int, (np.int64, (OUTER,))]
    strides: Annotated[int, (np.int64, (OUTER,))]
    result_strides: Annotated[int, (np.int64, (OUTER,))]


@instruction(*[types.int64] * 6)
def _copy_row(
    emit: Emit, size: Value, x: Value, step: Value, out: Value, result_step: Value, count: Value
) -> None:
    """Copy ``count`` elements of ``size`` bytes, ``step`` bytes apart, to places ``result_step`` bytes apart."""

    def of(bytes: int) -> None:
        kind = ir.IntType(8 * bytes)
        with emit.loop(count, [x, out]) as (_, (source, target), following):
            found = emit.load(source, kind)
            stored = emit.builder.store(found, emit.builder.inttoptr(target, ir.PointerType(kind)))
            found.align = stored.align = 1
            following += [emit.at(source, step), emit.at(target, result_step)]

    emit.switch(size, {bytes: lambda bytes=bytes: of(bytes) for bytes in _SIZES})  # type: ignore[misc]


def _move(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    rows, count = load_i64(job, MoveJob.rows), load_i64(job, MoveJob.count)
    step, result_step = load_i64(job, MoveJob.step), load_i64(job, MoveJob.result_step)
    row = fetch_add(counter)
    while row < rows:
        rest, source, target = row, x, out
        for axis in range(OUTER):
            length = load_i64(job, MoveJob.lengths + axis)
            place = rest % length
            source += place * load_i64(job, MoveJob.strides + axis)
            target += place * load_i64(job, MoveJob.result_strides + axis)
            rest = rest // length
        _copy_row(load_i64(job, MoveJob.item), source, step, target, result_step, count)
        row = fetch_add(counter)


MOVE = Task(_move)
"""Copy A to the result."""


def can_move(x: Array) -> bool:
    """Return whether a task can copy an array, of numbers."""
    return (
        x.itemsize in _SIZES and 1 <= x.ndim <= OUTER + 1 and 0 < x.size <= MAX_SIZE and not x.dtype.hasobject
    )


def _copy(x: Array, out: Array) -> None:
    """Copy an array to another one of its shape and type, by a task."""
    fill = OUTER + 1 - x.ndim
    lengths = (*x.shape[-2::-1], *[1] * fill)
    job = MoveJob.fill(
        rows=math.prod(lengths), item=x.itemsize, count=x.shape[-1], step=x.strides[-1],
        result_step=out.strides[-1], lengths=lengths, strides=(*x.strides[-2::-1], *[0] * fill),
        result_strides=(*out.strides[-2::-1], *[0] * fill),
    )  # fmt: skip
    parallel_for(MOVE.address, job, out, x, UNUSED, UNUSED, 1)


def contiguous_rows(x: Array) -> Array:
    """Return the tensor with contiguous rows: copied by a task while a run is recorded."""
    if x.strides[-1] == x.itemsize or x.shape[-1] == 1:
        return x
    if RECORD.get() is None or not can_move(x):
        return np.ascontiguousarray(x)
    return moved(x)


def moved(x: Array) -> Array:
    """Return an array in C order, copied by a task if it is not."""
    if x.flags.c_contiguous:
        return x
    out = np.empty(x.shape, x.dtype)
    _copy(x, out)
    return out
