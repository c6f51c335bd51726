"""Kernels that change data along axes: they bring the axes together in memory, and run a task on columns or rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ... import Kernel
from ...common.kept_memory import empty
from ...core.lengths import any_lengths
from ..threading.capture import replayed
from ..threading.task import Task
from ._columns_task import run_columns
from .contiguous import contiguous

__all__ = ["ColumnsPlan", "columns_kernel"]

# Layouts whose plans are cached.
MAX_PLANS = 16


class ColumnsPlan(NamedTuple):
    """The order of axes in memory, that of the axes of the result, and the job for data of one layout."""

    order: Sequence[int]
    back: Sequence[int]
    job: Array


def columns_kernel(
    task: Task, make_plan: Callable[[tuple[int, ...], tuple[int, ...]], ColumnsPlan]
) -> Kernel:
    """Return a kernel whose result has the shape of its first input, of f32.

    Args:
        task: writes a result that is stored as the data is.
        make_plan: takes the shape and the strides of data that is not empty.
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
