"""Tasks and kernels that process the middle axis of a contiguous array ``[outer, length, inner]``.

If ``inner`` is 1, the axis is a row and a task may have a separate function for rows; otherwise each vector holds
neighbouring columns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import any_lengths
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, device
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk, each_unit
from ._copy import contiguous

__all__ = [
    "ABREAST",
    "ColumnsJob",
    "Sizes",
    "column_sizes",
    "columns_task",
    "load_sizes",
    "run_columns",
    "ColumnsPlan",
    "columns_kernel",
    "AxesPlan",
    "known_axes",
    "plan_axes",
]

# Vectors of columns processed together: they fill whole cache lines, and their additions are independent.
ABREAST = 4


Sizes = tuple[int, int, int]
"""Lengths ``[outer, length, inner]``."""

# Elements of a unit of work.
UNIT_SIZE = 1 << 12


class ColumnsJob(Descriptor):
    """Parameters of a `columns_task` on the array A ``[outer, length, inner]``.

    A unit of work is ``block`` columns, or ``block`` rows if ``inner`` is 1.
    """

    outer: i64
    length: i64
    inner: i64
    block: i64


@device
def load_sizes(job: ColumnsJob) -> tuple[int, int, int, int]:
    """Load ``outer``, ``length``, ``inner`` and ``block``."""
    return job.outer, job.length, job.inner, job.block


def columns_task(
    name: str,
    columns: Device[[Any, int, int, int, int], None],
    rows: Device[[Any, int, int, int, int], None] | None = None,
) -> Task:
    """Return a task that calls ``columns``, or ``rows`` if ``inner`` is 1, for each unit of work.

    Args:
        name: the name of the task.
        columns: processes a block of columns; takes the job, A, the result, the index in ``outer``, and the
            first column.
        rows: processes a block of rows; takes the job, A, the result, the first row, and the row after the
            last. By default, rows are processed as columns of width 1.
    """
    by_column = _column_loop(columns)
    return Task(by_column.function if rows is None else _row_or_column_loop(rows, by_column), name)


def _column_loop(
    columns: Device[[Any, int, int, int, int], None],
) -> Device[[int, ColumnsJob, int, int], None]:
    def run(call: int, job: ColumnsJob, out: int, x: int) -> None:
        outer, _, inner, block = load_sizes(job)
        across = (inner + block - 1) // block
        for unit in each_unit(call, outer * across):
            row = unit // across
            columns(job, x, out, row, (unit - row * across) * block)

    return device(run)


def _row_or_column_loop(
    rows: Device[[Any, int, int, int, int], None], by_column: Device[[int, ColumnsJob, int, int], None]
) -> Callable[[int, ColumnsJob, int, int], None]:
    def run(call: int, job: ColumnsJob, out: int, x: int) -> None:
        outer, _, inner, block = load_sizes(job)
        if inner != 1:
            by_column(call, job, out, x)
            return
        for start, end in each_chunk(call, outer, block):
            rows(job, x, out, start, end)

    return run


def column_sizes(sizes: Sizes) -> dict[str, int]:
    """Return the fields of `ColumnsJob` for nonzero sizes ``[outer, length, inner]``."""
    outer, length, inner = sizes
    block = max(UNIT_SIZE // length, 1)
    block = block if inner == 1 else -(-block // LANES) * LANES
    return {"outer": outer, "length": length, "inner": inner, "block": block}


def run_columns(task: Task, x: Array, out: Array, job: Array) -> None:
    """Run a `columns_task` from the contiguous array ``x`` to ``out``."""
    parallel_for(task.address, job, out, x, UNUSED, UNUSED, threads_for(moved=2 * x.nbytes))


# Layouts whose plans are cached.
MAX_PLANS = 16


class ColumnsPlan(NamedTuple):
    """The plan of a `columns_kernel` for data of one shape and strides."""

    order: Sequence[int]
    """The permutation of the data's axes to memory order."""
    back: Sequence[int]
    """The permutation of the result's axes back to the order of the data."""
    job: Array
    """A `ColumnsJob`."""


def columns_kernel(
    task: Task, make_plan: Callable[[tuple[int, ...], tuple[int, ...]], ColumnsPlan]
) -> Kernel:
    """Return an f32 kernel whose result has the shape and memory layout of its first input.

    Args:
        task: a `columns_task`.
        make_plan: returns the plan for the shape and strides of nonempty data.
    """
    task.prepare()
    plan = lru_cache(maxsize=MAX_PLANS)(make_plan)

    def kernel(x: Array, *_: Array) -> Array:
        if not x.size:
            return empty(x.shape, np.float32)
        order, back, job = plan(x.shape, x.strides)
        source = contiguous(x.transpose(order))
        y = empty(source.shape, np.float32)
        run_columns(task, source, y, job)
        return y.transpose(back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


class AxesPlan(NamedTuple):
    """The plan to process axes of data as the middle axis of ``[outer, length, inner]``, for one shape and strides.

    Args:
        order: the permutation of the data's axes to memory order.
        sizes: ``[outer, length, inner]``, after that permutation.
        shape: the shape of the result of a reduction, in memory order.
        back: the permutation of the result's axes back to the order of the data.
    """

    order: tuple[int, ...]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: tuple[int, ...]


def known_axes(data: Value, axes: Value) -> frozenset[int] | None:
    """Return constant ``axes`` of f32 data as nonnegative numbers, or ``None``.

    ``None`` means that the data is not f32, that its rank or the axes are unknown, that there are no axes, or that an axis is
    out of range or repeated.
    """
    rank, constant = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or not constant or any(not -rank <= axis < rank for axis in constant):
        return None
    along = frozenset(axis % rank for axis in constant)
    return along if len(along) == len(constant) else None


def plan_axes(
    shape: tuple[int, ...], strides: tuple[int, ...], along: frozenset[int], keep_dims: bool
) -> AxesPlan:
    """Plan the processing of the axes ``along`` of data with a shape and strides.

    If these axes are not adjacent in memory, the plan moves them to the end. ``keep_dims`` says whether they remain, with
    length 1, in the shape of a reduction's result.
    """
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    places = [place for place, axis in enumerate(order) if axis in along]
    if places[-1] - places[0] >= len(along):  # not adjacent
        order = [axis for axis in range(len(shape)) if axis not in along] + sorted(along)
        places = list(range(len(shape) - len(along), len(shape)))
    lengths = [shape[axis] for axis in order]
    first, last = places[0], places[-1] + 1
    outer, length, inner = map(math.prod, (lengths[:first], lengths[first:last], lengths[last:]))
    remaining = order if keep_dims else [axis for axis in order if axis not in along]
    reduced = [1 if axis in along else shape[axis] for axis in remaining]
    return AxesPlan(
        tuple(order), (outer, length, inner), tuple(reduced), tuple(np.argsort(remaining).tolist())
    )
