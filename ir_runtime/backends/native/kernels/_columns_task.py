"""Tasks along the axis in the middle of a contiguous array ``[outer, length, inner]``: a unit is some of its columns or rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, device
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk, each_unit, load_args

__all__ = ["ColumnsJob", "Sizes", "column_sizes", "columns_task", "load_sizes", "run_columns"]

Sizes = tuple[int, int, int]
"""Lengths ``[outer, length, inner]``."""

# Elements of a unit of work.
UNIT_SIZE = 1 << 12


class ColumnsJob(Descriptor):
    """The job of tasks on A ``[outer, length, inner]``.

    ``block`` is the number of columns of a unit, if ``inner`` is 1 that of elements of ``outer``.
    """

    outer: i64
    length: i64
    inner: i64
    block: i64


@device
def load_sizes(job: ColumnsJob) -> tuple[int, int, int, int]:
    """Load the lengths of A ``[outer, length, inner]``, and the number of columns of a unit."""
    return (
        job.outer,
        job.length,
        job.inner,
        job.block,
    )


def columns_task(
    name: str,
    columns: Device[[Any, int, int, int, int], None],
    rows: Device[[Any, int, int, int, int], None] | None = None,
) -> Task:
    """Return a task that calls a function for each unit.

    Args:
        name: of the machine code.
        columns: takes the job, A, the result, the index ``outer`` of the unit, and its first column.
        rows: takes the job, A, the result, and the first and last index ``outer`` of a unit, where ``inner`` is 1; by
            default, rows are columns by themselves.
    """
    by_column = _by_column(columns)
    return _named(name, by_column.function if rows is None else _by_row_or_column(rows, by_column))


def _named(name: str, function: Callable[[int], None]) -> Task:
    function.__qualname__ = name
    return Task(function)


def _by_column(columns: Device[[Any, int, int, int, int], None]) -> Device[[int], None]:
    def run(call: int) -> None:
        address, out, x, _, _, _ = load_args(call)
        job = ColumnsJob.at(address)
        outer, _, inner, block = load_sizes(job)
        across = (inner + block - 1) // block
        for unit in each_unit(call, outer * across):
            row = unit // across
            columns(job, x, out, row, (unit - row * across) * block)

    return device(run)


def _by_row_or_column(
    rows: Device[[Any, int, int, int, int], None], by_column: Device[[int], None]
) -> Callable[[int], None]:
    def run(call: int) -> None:
        address, out, x, _, _, _ = load_args(call)
        job = ColumnsJob.at(address)
        outer, _, inner, block = load_sizes(job)
        if inner != 1:
            by_column(call)
            return
        for start, end in each_chunk(call, outer, block):
            rows(job, x, out, start, end)

    return run


def column_sizes(sizes: Sizes) -> dict[str, int]:
    """Return the fields of `ColumnsJob` for sizes ``[outer, length, inner]``, none of which is 0."""
    outer, length, inner = sizes
    some = max(UNIT_SIZE // length, 1)
    block = some if inner == 1 else -(-some // LANES) * LANES
    return {"outer": outer, "length": length, "inner": inner, "block": block}


def run_columns(task: Task, x: Array, out: Array, job: Array) -> None:
    """Run a task on a contiguous array."""
    parallel_for(task.address, job, out, x, UNUSED, UNUSED, threads_for(moved=2 * x.nbytes))
