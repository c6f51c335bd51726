"""Tasks and kernels along one axis of a contiguous array ``[outer, length, inner]``, by vectors of columns or by rows."""

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

# Vectors of columns at a time: whole cache lines are read, and no addition waits for another.
ABREAST = 4


Sizes = tuple[int, int, int]
"""Lengths ``[outer, length, inner]``."""

# Elements of a unit of work.
UNIT_SIZE = 1 << 12


class ColumnsJob(Descriptor):
    """The job of tasks on A ``[outer, length, inner]``.

    ``block`` is the number of columns of a unit, or, if ``inner`` is 1, of elements of ``outer``.
    """

    outer: i64
    length: i64
    inner: i64
    block: i64


@device
def load_sizes(job: ColumnsJob) -> tuple[int, int, int, int]:
    """Load the sizes ``[outer, length, inner]`` of A, and the number of columns of a unit."""
    return job.outer, job.length, job.inner, job.block


def columns_task(
    name: str,
    columns: Device[[Any, int, int, int, int], None],
    rows: Device[[Any, int, int, int, int], None] | None = None,
) -> Task:
    """Return a task that calls a function for each unit.

    Args:
        name: the name of the task.
        columns: processes a unit; takes the job, A, the result, the unit's index in ``outer``, and its first
            column.
        rows: processes a unit if ``inner`` is 1; takes the job, A, the result, and the first and last index
            in ``outer``. By default, rows are processed as columns.
    """
    by_column = _by_column(columns)
    return Task(by_column.function if rows is None else _by_row_or_column(rows, by_column), name)


def _by_column(columns: Device[[Any, int, int, int, int], None]) -> Device[[int, ColumnsJob, int, int], None]:
    def run(call: int, job: ColumnsJob, out: int, x: int) -> None:
        outer, _, inner, block = load_sizes(job)
        across = (inner + block - 1) // block
        for unit in each_unit(call, outer * across):
            row = unit // across
            columns(job, x, out, row, (unit - row * across) * block)

    return device(run)


def _by_row_or_column(
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
    some = max(UNIT_SIZE // length, 1)
    block = some if inner == 1 else -(-some // LANES) * LANES
    return {"outer": outer, "length": length, "inner": inner, "block": block}


def run_columns(task: Task, x: Array, out: Array, job: Array) -> None:
    """Run a task on a contiguous array."""
    parallel_for(task.address, job, out, x, UNUSED, UNUSED, threads_for(moved=2 * x.nbytes))


# Layouts whose plans are cached.
MAX_PLANS = 16


class ColumnsPlan(NamedTuple):
    """The memory order of the axes, the axis order of the result, and the job, for data of one layout."""

    order: Sequence[int]
    back: Sequence[int]
    job: Array


def columns_kernel(
    task: Task, make_plan: Callable[[tuple[int, ...], tuple[int, ...]], ColumnsPlan]
) -> Kernel:
    """Return an f32 kernel whose result has the shape of its first input.

    Args:
        task: the task; the result has the memory layout of the data.
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
    """The plan to reduce or change data of one layout along axes.

    Args:
        order: the memory order of the axes.
        sizes: ``[outer, length, inner]``.
        shape: the shape of the result, with its axes in that order.
        back: the order of the axes of the result.
    """

    order: tuple[int, ...]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: tuple[int, ...]


def known_axes(data: Value, axes: Value) -> frozenset[int] | None:
    """Return the nonnegative axes if they are constant and valid and the data is f32, else ``None``."""
    rank, known = data.shape.rank, axes.ints()
    if not is_f32(data) or not rank or not known or any(not -rank <= axis < rank for axis in known):
        return None
    along = frozenset(axis % rank for axis in known)
    return along if len(along) == len(known) else None


def plan_axes(
    shape: tuple[int, ...], strides: tuple[int, ...], along: frozenset[int], keep_dims: bool
) -> AxesPlan:
    """Return the plan for data with a shape and strides.

    Axes that are not adjacent in memory are made adjacent.
    """
    order = sorted(range(len(shape)), key=lambda axis: -abs(strides[axis]))
    places = [place for place, axis in enumerate(order) if axis in along]
    if places[-1] - places[0] >= len(along):  # they are brought together
        order = [axis for axis in range(len(shape)) if axis not in along] + sorted(along)
        places = list(range(len(shape) - len(along), len(shape)))
    lengths = [shape[axis] for axis in order]
    first, last = places[0], places[-1] + 1
    outer, length, inner = map(math.prod, (lengths[:first], lengths[first:last], lengths[last:]))
    left = order if keep_dims else [axis for axis in order if axis not in along]
    found = [1 if axis in along else shape[axis] for axis in left]
    return AxesPlan(tuple(order), (outer, length, inner), tuple(found), tuple(np.argsort(left).tolist()))
