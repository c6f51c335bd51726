"""Gather, GatherElements and OneHot: rows and elements at indices, multithreaded and replayable."""

from __future__ import annotations

import math
import operator
from functools import lru_cache, partial
from itertools import accumulate
from typing import TypeAlias

import numpy as np

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase, GatherElements
from ....ops.sequence.one_hot import OneHot1, OneHot16, OneHotBase
from ... import Kernel
from ...common.kept_memory import empty
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add
from ..codegen.vectors import I32, I64, Emit, store_typed
from ..threading.capture import replayed
from ..threading.parallel import is_recording, parallel_for, threads_for, was_refused
from ..threading.task import UNUSED, Task, each_chunk, each_unit
from ._copy import COPY, SIZES, contiguous
from ._indices import IndexGrid, index_grid, load_index
from ._rows import copy_bytes

__all__ = ["gather_elements_task", "GatherElementsJob", "gather_job"]

# Elements of a unit.
UNIT_SIZE = 1 << 11

_Shape: TypeAlias = tuple[int, ...]


class GatherElementsJob(Descriptor):
    """Parameters of `gather_elements_task`: the result is ``[blocks, rows, columns]`` with elements of ``size`` bytes.

    The element for index ``i`` is ``i * scale`` bytes after that for index 0, which advances by ``step``
    bytes per column and ``block_size`` bytes per block; valid indices are below ``length``. Indices have
    ``index_size`` bytes and strides in bytes. ``refused`` counts indices out of range.
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
    """Copy the elements that ``count`` indices of a row select."""
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

    def switch_index_size(size: int) -> None:
        emit.switch(
            field(GatherElementsJob.index_size), {4: partial(go, size, I32), 8: partial(go, size, I64)}
        )

    emit.switch(field(GatherElementsJob.size), {size: partial(switch_index_size, size) for size in SIZES})


@device
def _gather_row(job: GatherElementsJob, x: int, indices: int, out: int, first: int, count: int) -> None:
    """Gather ``count`` elements of a row, starting at column ``first``; addresses are those of column 0."""
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


@Task
def gather_elements_task(call: int, job: GatherElementsJob, out: int, x: int, indices: int) -> None:
    """Copy the elements of A at the indices B; a unit of work is `UNIT_SIZE` elements of the result."""
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


@backend.accelerates(GatherElements)
def gather_elements(op: GatherElements, data: Value, indices: Value) -> Kernel | None:
    """Return a GatherElements kernel for all element types but strings, else ``None``; broadcast indices are read in place."""
    rank, dtype = data.shape.rank, data.element.dtype
    if not rank or indices.shape.rank != rank or not -rank <= op.axis < rank:
        return None
    if dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    if indices.element not in (ElementType.i32, ElementType.i64):
        return None
    for task in (gather_elements_task, COPY):  # `COPY` for indices whose axes do not merge
        task.prepare()
    axis = op.axis % rank

    def suits(x: Array, indices: Array) -> bool:
        return x.shape[:axis] + x.shape[axis + 1 :] == indices.shape[:axis] + indices.shape[axis + 1 :]

    def kernel(x: Array, indices: Array) -> Array:
        if not (suits(x, indices) and x.size and indices.size):
            return op.evaluate(x, indices)
        x, out = contiguous(x), empty(indices.shape, x.dtype)
        strides = _merge_axes(indices.shape, indices.strides, axis)
        if strides is None:
            indices = contiguous(indices)
            strides = _merge_axes(indices.shape, indices.strides, axis) or (0, 0, 0)
        job = gather_job(x, axis, indices.shape[axis], indices.itemsize, strides)
        count = threads_for(steps=out.size // 2)
        parallel_for(gather_elements_task.address, job, out, x, indices, UNUSED, count)
        return op.evaluate(x, indices) if was_refused(job, GatherElementsJob.refused) else out

    return Kernel(kernel, accepts=suits, replay=replayed())


def gather_job(x: Array, axis: int, count: int, index_size: int, strides: tuple[int, int, int]) -> Array:
    """Return the job for ``count`` indices along an axis.

    If the axis is the last, a row of the job spans it, else the axes after it.

    Args:
        x: the data.
        axis: the axis of selection.
        count: the number of indices along the axis.
        index_size: the size of an index in bytes.
        strides: the byte strides of the indices before, along and after the axis.
    """
    columns, size = math.prod(x.shape[axis + 1 :]), x.itemsize
    lead, along, tail = strides
    rows, columns, row_stride, column_stride, step = (
        (1, count, 0, along, 0) if columns == 1 else (count, columns, along, tail, size)
    )
    scale = size if step == 0 else size * columns
    return GatherElementsJob.fill(
        blocks=math.prod(x.shape[:axis]), rows=rows, columns=columns, size=size, length=x.shape[axis],
        scale=scale, step=step, block_size=scale * x.shape[axis], index_size=index_size, block_stride=lead,
        row_stride=row_stride, column_stride=column_stride, refused=0,
    )  # fmt: skip


@lru_cache(maxsize=256)
def _merge_axes(shape: _Shape, strides: _Shape, axis: int) -> tuple[int, int, int] | None:
    """Return the strides before, at and after an axis, with the other axes merged; ``None`` if they do not merge."""
    before, after = (_stride(shape[part], strides[part]) for part in (slice(axis), slice(axis + 1, None)))
    return None if before is None or after is None else (before, strides[axis], after)


def _stride(shape: _Shape, strides: _Shape) -> int | None:
    """Return the stride of axes merged into one; ``None`` if they do not merge."""
    axes = [axis for axis in zip(reversed(shape), reversed(strides), strict=True) if axis[0] != 1]
    expected = first = axes[0][1] if axes else 0
    for length, stride in axes:
        if stride != expected:
            return None
        expected = length * stride
    return first


# Maximum number of axes of a grid of constant indices.
MAX_AXES = 4


@backend.accelerates(Gather, Gather1, Gather7)
def gather_rows(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """Return a Gather kernel for all element types but strings, along a constant axis; else ``None``.

    A constant scalar index is left to the reference. Gathers without batch axes call NumPy, which is as fast,
    unless a run is recorded. Indices out of range give zeros, as in the reference.
    """
    along = _constant_axis(data, axis)
    if along is None or indices.element not in (ElementType.i32, ElementType.i64):
        return None
    places = indices.known()
    if places is not None and not places.ndim:
        return None
    for task in (gather_elements_task, COPY):  # `COPY` for indices that are not contiguous
        task.prepare()
    if op.batch:
        return _batched_kernel(op, indices, along)
    grid = None if places is None else index_grid(places, MAX_AXES)
    if places is not None and grid is not None and grid.bounds[0] >= 0:
        return _grid_kernel(op, grid, places.shape, data.shape, along)
    return _unbatched_kernel(op, along)


def _constant_axis(data: Value, axis: Value) -> int | None:
    """Return the axis if it is constant and in range, and the kernel supports the data type; else ``None``."""
    rank, axes = data.shape.rank or 0, axis.ints()
    if data.element.dtype.itemsize not in SIZES or data.element.dtype.hasobject:
        return None
    return axes[0] % rank if axes and -rank <= axes[0] < rank else None


def _unbatched_kernel(op: GatherBase, along: int) -> Kernel:
    """Return the kernel for indices without batch axes."""

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (is_recording() and x.flags.c_contiguous and x.size and indices.size):
            return take(x, indices, axis)
        result = _gather(x, indices, along, 0)
        return op.evaluate(x, indices, axis) if result is None else result

    def take(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, along)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _batched_kernel(op: GatherBase, indices: Value, along: int) -> Kernel | None:
    """Return the kernel for the axis that follows the batch axes; ``None`` for other axes."""
    batch = op.batch + (indices.shape.rank or 0 if op.batch < 0 else 0)
    if indices.shape.rank is None or batch != along:
        return None

    def suits(x: Array, indices: Array, axis: Array) -> bool:
        return x.shape[:batch] == indices.shape[:batch]

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        if not (suits(x, indices, axis) and x.size and indices.size):
            return op.evaluate(x, indices, axis)
        result = _gather(contiguous(x), contiguous(indices), along, batch)
        return op.evaluate(x, indices, axis) if result is None else result

    return Kernel(kernel, accepts=suits, replay=replayed())


def _gather(x: Array, indices: Array, axis: int, batch: int) -> Array | None:
    """Gather along an axis; data and indices share ``batch`` leading axes.

    Returns ``None`` if an index is out of range.
    """
    out = empty((*x.shape[:axis], *indices.shape[batch:], *x.shape[axis + 1 :]), x.dtype)
    size, count = indices.itemsize, math.prod(indices.shape[batch:])
    job = gather_job(x, axis, count, size, (size * count if batch else 0, size, 0))
    is_single = x.shape[axis + 1 :] == ()
    shared = threads_for(moved=out.nbytes, steps=out.size // 2 if is_single else 0)
    parallel_for(gather_elements_task.address, job, out, x, contiguous(indices), UNUSED, shared)
    return None if was_refused(job, GatherElementsJob.refused) else out


def _grid_kernel(
    op: GatherBase, grid: IndexGrid, shape: _Shape, data_shape: PartialShape, along: int
) -> Kernel:
    """Return a kernel for constant indices that form a grid.

    The result is a view of the data, or a copy where an axis of the indices spans several axes of the grid.
    """
    ends = [set(accumulate(reversed(lengths), operator.mul)) for lengths in (grid.lengths, shape)]
    is_view, last = ends[0] <= ends[1], grid.bounds[1]

    def select(x: Array) -> Array:
        view = grid.view(x, along)
        return (view if is_view else contiguous(view)).reshape(
            *x.shape[:along], *shape, *x.shape[along + 1 :]
        )

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        return select(x) if last < x.shape[along] else op.evaluate(x, indices, axis)

    if is_view and last < data_shape[along].min:
        return Kernel.unary(select, view=True)
    COPY.prepare()
    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


# Intended number of elements of a unit; smaller results than `MIN_SIZE` are left to NumPy, unless a run is recorded.
BLOCK = 1 << 13
MIN_SIZE = 1 << 11


class OneHotJob(Descriptor):
    """Parameters of `_one_hot`: the result is ``[outer, depth, inner]``, a unit of work ``[block_outer, block_depth, inner]``.

    ``added`` is added to negative classes. Sizes of indices and values are in bytes; values are bit patterns.
    """

    outer: i64
    depth: i64
    inner: i64
    block_outer: i64
    block_depth: i64
    added: i64
    index_size: i64
    size: i64
    on_value: i64
    off_value: i64


@instruction(*[types.int64] * 4)
def _fill(emit: Emit, size: ir.Value, value: ir.Value, count: ir.Value, out: ir.Value) -> None:
    """Store the low ``size`` bytes of a word ``count`` times."""

    def go(width: int) -> None:
        kind = ir.IntType(8 * width)
        same = emit.splat(value if width == 8 else emit.builder.trunc(value, kind))
        for index, _, mask in emit.masked_strips(count):
            store_typed(emit, same, out, index, mask)

    emit.switch(size, {width: partial(go, width) for width in SIZES})


@Task
def _one_hot(call: int, job: OneHotJob, out: int, indices: int) -> None:
    """Encode the classes A; a unit of work is a block of outer indices and classes."""
    outer, depth, inner = (job.outer, job.depth, job.inner)
    tall, deep = job.block_outer, job.block_depth
    size, index_size = job.size, job.index_size
    added = job.added
    across = (depth + deep - 1) // deep
    units = (outer + tall - 1) // tall * across
    for unit in each_unit(call, units):
        top, first = unit // across * tall, unit % across * deep
        end = min(first + deep, depth)
        for row in range(top, min(top + tall, outer)):
            place = out + size * (row * depth + first) * inner
            _fill(size, job.off_value, (end - first) * inner, place)
            for column in range(inner):
                label = load_index(indices, row * inner + column, index_size)
                if label < 0:
                    label += added
                if first <= label < end:
                    at = out + size * ((row * depth + label) * inner + column)
                    _fill(size, job.on_value, 1, at)


@backend.accelerates(OneHot1, OneHot16)
def one_hot(op: OneHotBase, indices: Value, depth: Value, on_value: Value, off_value: Value) -> Kernel | None:
    """Return a OneHot kernel for classes of i32 and i64, and values of 1, 2, 4 or 8 bytes; else ``None``."""
    if indices.element not in (ElementType.i32, ElementType.i64) or indices.shape.rank is None:
        return None
    dtype = on_value.element.dtype
    if on_value.element is not off_value.element or dtype.hasobject or dtype.itemsize not in SIZES:
        return None
    axis = op.axis % (indices.shape.rank + 1)
    normalizes = isinstance(op, OneHot16) and op.negative_indices_mode == "normalize"
    _one_hot.prepare()

    def kernel(indices: Array, depth: Array, on_value: Array, off_value: Array) -> Array:
        classes = int(depth.item())
        size = indices.size * max(classes, 0)
        if not size or (size < MIN_SIZE and not is_recording()):
            return op.evaluate(indices, depth, on_value, off_value)
        shape = (*indices.shape[:axis], classes, *indices.shape[axis:])
        out, inner = empty(shape, dtype), math.prod(indices.shape[axis:])
        deep = min(max(BLOCK // inner, 1), classes)
        job = OneHotJob.fill(
            outer=math.prod(indices.shape[:axis]), depth=classes, inner=inner, block_depth=deep,
            block_outer=max(BLOCK // (deep * inner), 1), added=classes if normalizes else 0,
            index_size=indices.itemsize, size=dtype.itemsize, on_value=_bits(on_value),
            off_value=_bits(off_value),
        )  # fmt: skip
        count = threads_for(steps=size // 8)
        parallel_for(_one_hot.address, job, out, np.ascontiguousarray(indices), UNUSED, UNUSED, count)
        return out

    return Kernel(kernel, accepts=any_lengths, replay=replayed(contents=[1, 2, 3], alone=False))


def _bits(number: Array) -> int:
    """Return the bytes of a scalar as the low bytes of an i64."""
    return int.from_bytes(number.tobytes().ljust(8, b"\0"), "little", signed=True)
