"""Elements at indices along an axis (GatherElements), by the threads of the run."""

from __future__ import annotations

import math
from functools import lru_cache, partial
from typing import TypeAlias

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.gather_many import GatherElements
from ... import Kernel
from ...common.kept_memory import empty
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add
from ..codegen.vectors import I32, I64, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.recording import was_refused
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._copy import COPY, SIZES
from ._indices import load_index
from ._rows import copy_bytes
from .contiguous import contiguous

__all__ = ["GATHER_ELEMENTS", "GatherElementsJob", "gather_job"]

# Elements of a unit.
UNIT_SIZE = 1 << 11

_Shape: TypeAlias = tuple[int, ...]


class GatherElementsJob(Descriptor):
    """The job of `GATHER_ELEMENTS`: the result is ``[blocks, rows, columns]``, of elements of ``size`` bytes.

    The element of an index ``i`` is ``i * scale`` bytes from the first that it could be, which is ``step`` bytes further for
    each column, and ``block_size`` for each block; there are ``length`` to choose from. Strides of the indices, which have
    ``index_size`` bytes, are in bytes. ``refused`` counts indices that are out of their range.
    """

    blocks: i64
    rows: i64
    columns: i64
    size: i64
    length: i64
    scale: i64
    step: i64
    block_size: i64
    index_size: i64
    block_stride: i64
    row_stride: i64
    column_stride: i64
    refused: i64


@instruction(*[types.int64] * 5)
def _gather_columns(
    emit: Emit, job: ir.Value, count: ir.Value, x: ir.Value, indices: ir.Value, out: ir.Value
) -> None:
    """Copy the elements that ``count`` indices of a row choose."""
    builder = emit.builder

    def field(index: int) -> ir.Value:
        return emit.load(emit.at(job, 8 * index), I64)

    length, scale, step = map(
        field, (GatherElementsJob.length, GatherElementsJob.scale, GatherElementsJob.step)
    )
    stride = field(GatherElementsJob.column_stride)

    def go(size: int, kind: ir.Type) -> None:
        element = ir.IntType(8 * size)
        with emit.loop(count, [x, indices, out]) as (_, (data, place, target), following):
            index = emit.load(place, kind)
            index = index if kind == I64 else builder.sext(index, I64)
            is_negative = builder.icmp_signed("<", index, emit.i64(0))
            index = builder.select(is_negative, builder.add(index, length), index)
            with builder.if_else(builder.icmp_unsigned("<", index, length)) as (inside, outside):
                with inside:
                    source = emit.at(data, builder.mul(index, scale))
                    emit.store(emit.load(source, element, 1), target, 1)
                with outside:
                    emit.fetch_add(emit.at(job, 8 * GatherElementsJob.refused), 1)
            following += [emit.at(data, step), emit.at(place, stride), emit.at(target, size)]

    def of_size(size: int) -> None:
        emit.switch(
            field(GatherElementsJob.index_size), {4: partial(go, size, I32), 8: partial(go, size, I64)}
        )

    emit.switch(field(GatherElementsJob.size), {size: partial(of_size, size) for size in SIZES})


@device
def _gather_row(job: GatherElementsJob, x: int, indices: int, out: int, first: int, count: int) -> None:
    """Copy ``count`` elements of a row from the column ``first`` on; addresses are those of its first column."""
    size, stride = job.size, job.column_stride
    length, step = job.length, job.step
    if stride != 0 or step == 0:
        _gather_columns(job, count, x + first * step, indices + first * stride, out + first * size)
        return
    index = load_index(indices, 0, job.index_size)
    if index < 0:
        index += length
    if 0 <= index < length:
        source = x + index * job.scale + first * size
        copy_bytes(source, size * count, out + first * size)
    else:
        fetch_add(job + 8 * GatherElementsJob.refused)


def _gather_elements(call: int) -> None:
    """Copy elements; a unit is `UNIT_SIZE` of the result."""
    address, out, x, indices, _, _ = load_args(call)
    job = GatherElementsJob.at(address)
    columns, rows = job.columns, job.rows
    total = job.blocks * rows * columns
    for start, stop in each_chunk(call, total, UNIT_SIZE):
        at = start
        row = at // columns
        first = at - row * columns
        while at < stop:
            block = row // rows
            count = min(columns - first, stop - at)
            _gather_row(
                job, x + block * job.block_size,
                indices + block * job.block_stride
                + (row - block * rows) * job.row_stride,
                out + row * columns * job.size, first, count,
            )  # fmt: skip
            at += count
            row += 1
            first = 0


GATHER_ELEMENTS = Task(_gather_elements)
"""Copies the elements of A that the indices B choose."""


@backend.accelerates(GatherElements)
def gather_elements(op: GatherElements, data: Value, indices: Value) -> Kernel | None:
    """All types but strings, along any axis; indices that are broadcast are read where they are."""
    rank, dtype = data.shape.rank, data.element.dtype
    if not rank or indices.shape.rank != rank or not -rank <= op.axis < rank:
        return None
    if dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    if indices.element not in (ElementType.i32, ElementType.i64):
        return None
    for task in (GATHER_ELEMENTS, COPY):  # the second for indices whose axes cannot be merged
        task.prepare()
    axis = op.axis % rank

    def suits(x: Array, indices: Array) -> bool:
        return x.shape[:axis] + x.shape[axis + 1 :] == indices.shape[:axis] + indices.shape[axis + 1 :]

    def kernel(x: Array, indices: Array) -> Array:
        if not (suits(x, indices) and x.size and indices.size):
            return op.evaluate(x, indices)
        x, out = contiguous(x), empty(indices.shape, x.dtype)
        strides = _merged(indices.shape, indices.strides, axis)
        if strides is None:
            indices = contiguous(indices)
            strides = _merged(indices.shape, indices.strides, axis) or (0, 0, 0)
        job = gather_job(x, axis, indices.shape[axis], indices.itemsize, strides)
        count = threads_for(steps=out.size // 2)
        parallel_for(GATHER_ELEMENTS.address, job, out, x, indices, UNUSED, count)
        return op.evaluate(x, indices) if was_refused(job, GatherElementsJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


def gather_job(x: Array, axis: int, count: int, index_size: int, strides: tuple[int, int, int]) -> Array:
    """Return the job for ``count`` indices along an axis; behind the last axis, a row is what an axis holds, else what is behind it.

    Args:
        x: the data.
        axis: along which elements are chosen.
        count: how many along the axis.
        index_size: bytes of an index.
        strides: of the indices in bytes: before, along and behind the axis.
    """
    columns, size = math.prod(x.shape[axis + 1 :]), x.itemsize
    lead, along, tail = strides
    rows, columns, row_stride, column_stride, step = (
        (1, count, 0, along, 0) if columns == 1 else (count, columns, along, tail, size)
    )
    scale = size if step == 0 else size * columns
    return GatherElementsJob.fill(
        blocks=math.prod(x.shape[:axis]), rows=rows, columns=columns, size=size, length=x.shape[axis], scale=scale,
        step=step, block_size=scale * x.shape[axis], index_size=index_size, block_stride=lead,
        row_stride=row_stride, column_stride=column_stride, refused=0,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _merged(shape: _Shape, strides: _Shape, axis: int) -> tuple[int, int, int] | None:
    """Return the strides of an array whose axes before and behind one are merged; ``None`` where those are not like one."""
    before, behind = (_stride(shape[part], strides[part]) for part in (slice(axis), slice(axis + 1, None)))
    return None if before is None or behind is None else (before, strides[axis], behind)


def _stride(shape: _Shape, strides: _Shape) -> int | None:
    """Return the stride of axes as a single one; ``None`` if they are not like one in memory."""
    axes = [axis for axis in zip(reversed(shape), reversed(strides), strict=True) if axis[0] != 1]
    expected = first = axes[0][1] if axes else 0
    for length, stride in axes:
        if stride != expected:
            return None
        expected = length * stride
    return first
