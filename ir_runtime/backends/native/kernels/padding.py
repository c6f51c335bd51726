"""Pad of f32 with constant pads, and zero padding of images; each result row is copied from one data row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Annotated, NamedTuple, TypeAlias

import numpy as np

from ....errors import IRError
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops.movement.extend import Pad1, Pad12, PadBase
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_f32, load_i64, store_f32
from ..codegen.vectors import Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._rows import copy_row

__all__ = ["pad_images"]

# Maximum number of axes before the last, and rows per unit.
OUTER = 4
ROWS_PER_UNIT = 16
# The table entry of elements that hold the fill value.
FILLED = -1

_Shape: TypeAlias = tuple[int, ...]


class PadRowsJob(Descriptor):
    """Parameters of `_pad_rows`.

    ``lengths`` are those of the outer axes of the result, innermost last; ``tables`` has a table for each with
    the byte offset of each index in the data, or `FILLED`. Of the ``columns`` elements of a row, ``inside`` elements
    from ``before`` on are copied from ``first`` on in the data; the others are filled with ``number`` if
    ``fills_sides``, else looked up in ``column_table``.
    """

    lengths: Annotated[int, (np.int64, (OUTER,))]
    tables: Annotated[int, (np.int64, (OUTER,))]
    columns: i64
    before: i64
    inside: i64
    first: i64
    fills_sides: i64
    column_table: i64
    number: f32


@instruction(types.int64, types.int64, types.float32)
def _fill_row(emit: Emit, out: Register, count: Register, number: Register) -> None:
    """Store ``number`` ``count`` times."""
    vector = emit.splat(number)

    for offset, _, store in emit.vectors(count):
        store(vector, emit.at(out, offset))


@Task
def _pad_rows(call: int, job: PadRowsJob, out: int, x: int) -> None:
    """Copy or fill the rows of the result; a work unit is several indices of the innermost outer axis."""
    last = load_i64(job.lengths, OUTER - 1)
    chunks, units = (last + ROWS_PER_UNIT - 1) // ROWS_PER_UNIT, 1
    for axis in range(OUTER - 1):
        units *= load_i64(job.lengths, axis)
    columns, before, inside = job.columns, job.before, job.inside
    table, fill, first = job.column_table, job.number, job.first
    rows, fills_sides, after = (load_i64(job.tables, OUTER - 1), job.fills_sides, columns - before - inside)
    for unit in each_unit(call, units * chunks):
        plane = unit // chunks
        start, rest, offset, is_filled = (unit - plane * chunks) * ROWS_PER_UNIT, plane, 0, False
        for back in range(OUTER - 1):
            axis = OUTER - 2 - back
            length = load_i64(job.lengths, axis)
            outer = rest // length if length > 1 else rest
            entry = load_i64(load_i64(job.tables, axis), rest - outer * length if length > 1 else 0)
            is_filled, offset, rest = is_filled or entry < 0, offset + entry, outer
        for row in range(start, min(start + ROWS_PER_UNIT, last)):
            entry = load_i64(rows, row)
            target = out + 4 * columns * (plane * last + row)
            if is_filled or entry < 0:
                _fill_row(target, columns, fill)
                continue
            source = x + offset + entry
            copy_row(source + 4 * first, inside, target + 4 * before)
            if fills_sides != 0:
                _fill_row(target, before, fill)
                _fill_row(target + 4 * (before + inside), after, fill)
                continue
            for side in range(2):
                begin, end = (0, before) if side == 0 else (before + inside, columns)
                for column in range(begin, end):
                    place = load_i64(table, column)
                    store_f32(target, column, fill if place < 0 else load_f32(source, place))


class _Axis(NamedTuple):
    """A padded axis: its length in the data, and the data index of each result element, or `FILLED`."""

    length: int
    places: Array

    @property
    def is_same(self) -> bool:
        """Whether the result has the same elements in the same order."""
        return np.array_equal(self.places, np.arange(self.length))

    @classmethod
    def of(cls, mode: str, length: int, before: int, after: int) -> _Axis:
        """Return an axis padded with ``before`` and ``after`` elements."""
        places = np.arange(-before, length + after)
        if mode == "constant":
            return cls(length, np.where((places < 0) | (places >= length), FILLED, places))
        if mode == "edge":
            return cls(length, places.clip(0, length - 1))
        gap = int(mode == "symmetric")
        places = np.where(places < 0, -places - gap, places)
        return cls(length, np.where(places >= length, 2 * (length - 1) - places + gap, places))

    def merge(self, inner: _Axis) -> _Axis:
        """Merge this axis with the next inner axis; both must satisfy `is_same`."""
        return _Axis(self.length * inner.length, np.arange(self.length * inner.length))


@backend.accelerates(Pad1, Pad12)
def padding(op: PadBase, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Return a Pad kernel for f32 with constant pads, possibly negative, and a constant fill value."""
    before, after, rank = begin.ints(), end.ints(), data.shape.rank
    if not is_f32(data) or before is None or after is None or not rank:
        return None
    if not rank == len(before) == len(after) or not any((*before, *after)):
        return None
    filling = [value.known() for value in fill] if op.pad_mode == "constant" else []
    if any(number is None or number.size != 1 for number in filling):
        return None
    number = float(filling[0].item()) if filling and filling[0] is not None else 0.0
    _pad_rows.prepare()

    @lru_cache(maxsize=64)
    def job_for(shape: _Shape, order: _Shape) -> tuple[Array, _Shape] | None:
        value = Value(TensorType(data.element, PartialShape(shape)))
        try:
            op.infer(value, begin, end)
        except IRError:
            return None
        axes = [_Axis.of(op.pad_mode, shape[axis], before[axis], after[axis]) for axis in order]
        lengths = tuple(len(axis.places) for axis in axes)
        job = _job(axes, number) if math.prod(lengths) else None
        return None if job is None else (job, lengths)

    def kernel(x: Array, begin: Array, end: Array, *fill: Array) -> Array:
        order = _memory_order(x.strides)
        if not x.size or (plan := job_for(x.shape, order)) is None:
            return op.evaluate(x, begin, end, *fill)
        job, lengths = plan
        y = empty(lengths, np.float32)
        count = threads_for(moved=2 * y.nbytes)
        parallel_for(_pad_rows.address, job, y, contiguous(x.transpose(order)), UNUSED, UNUSED, count)
        return y.transpose(_inverse(order))

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


@lru_cache(maxsize=256)
def _memory_order(strides: _Shape) -> _Shape:
    """Return the axes by descending stride."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -strides[axis]))


@lru_cache(maxsize=256)
def _inverse(order: _Shape) -> _Shape:
    return tuple(map(order.index, range(len(order))))


def _job(axes: Sequence[_Axis], number: float) -> Array | None:
    """Return the job for axes in memory order and the fill value ``number``; ``None`` if there are too many axes."""
    merged: list[_Axis] = []
    for axis in axes:
        both = bool(merged) and merged[-1].is_same and axis.is_same
        merged.append(merged.pop().merge(axis) if both else axis)
    *outer, row = merged
    if len(outer) > OUTER:
        return None
    stride, tables = 4 * row.length, []
    for axis in reversed(outer):
        tables.append(np.where(axis.places < 0, FILLED, axis.places * stride))
        stride *= axis.length
    tables += [np.zeros(1, np.int64)] * (OUTER - len(outer))
    tables.reverse()
    places = np.ascontiguousarray(row.places)
    before, first, inside = _longest_run(places)
    return PadRowsJob.fill(
        lengths=tuple(map(len, tables)), tables=tuple(tables), columns=len(places), before=before,
        inside=inside, first=first, fills_sides=int((places >= 0).sum()) == inside, column_table=places,
        number=number,
    )  # fmt: skip


def pad_images(x: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """Pad the last two axes of images ``x[N, C, H, W]`` with zeros; the result is contiguous."""
    job, shape = _images_job(x.shape, tuple(pads))
    y = empty(shape, np.float32)
    parallel_for(_pad_rows.address, job, y, contiguous(x), UNUSED, UNUSED, threads_for(moved=2 * y.nbytes))
    return y


@lru_cache(maxsize=64)
def _images_job(shape: _Shape, pads: tuple[tuple[int, int], ...]) -> tuple[Array, _Shape]:
    around = [(0, 0), (0, 0), *pads]
    axes = [_Axis.of("constant", length, *both) for length, both in zip(shape, around, strict=True)]
    job = _job(axes, 0.0)
    assert job is not None
    return job, tuple(len(axis.places) for axis in axes)


def _longest_run(places: Array) -> tuple[int, int, int]:
    """Return the longest run of consecutive data elements in a result row, given the data index of each element.

    Returns its start in the result, its start in the data, and its length; all are 0 if there is none.
    """
    breaks = np.flatnonzero((np.diff(places) != 1) | (places[:-1] < 0)) + 1
    starts, ends = np.append(0, breaks), np.append(breaks, len(places))
    longest = int(np.argmax(ends - starts))
    begin, end = int(starts[longest]), int(ends[longest])
    return (begin, int(places[begin]), end - begin) if places[begin] >= 0 else (0, 0, 0)
