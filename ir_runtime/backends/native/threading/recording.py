"""Records of task calls: the arguments of `parallel_for` while a run is recorded."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ...core.host_calls import HOST_CALLS, HostCalls

__all__ = [
    "RECORD",
    "Call",
    "Record",
    "is_recording",
    "recorded",
    "uses_constant",
    "was_refused",
    "workspace",
]


class Call(NamedTuple):
    """A task call: its address, its job, result and inputs, and the number of threads."""

    task: int
    job: Array
    arrays: tuple[Array, Array, Array, Array, Array]
    threads: int


@dataclass(slots=True, eq=False)
class Record:
    """The record of a step.

    Args:
        calls: its calls, in order.
        workspaces: arrays that calls overwrite before reading.
        refusals: addresses of counters that tasks increment when they refuse data.
        constants: arrays owned by the kernel.
        is_cheap: whether NumPy is as fast in other runs, so that the step alone is not worth a replay.
        host: the Python functions that it called.
    """

    calls: list[Call] = field(default_factory=list)
    workspaces: list[Array] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    constants: list[Array] = field(default_factory=list)
    is_cheap: bool = False
    host: HostCalls = field(default_factory=HostCalls)


RECORD: ContextVar[Record | None] = ContextVar("record", default=None)
"""The record of the current step; ``None`` in runs that are not recorded."""


def recorded(run: Callable[[], None]) -> Record:
    """Call a function and record its task calls."""
    record = Record()
    RECORD.set(record)
    HOST_CALLS.set(record.host)
    try:
        run()
    finally:
        RECORD.set(None)
        HOST_CALLS.set(None)
    return record


def workspace(size: int) -> Array:
    """Return uninitialised f32 memory for a task."""
    found = empty(size, np.float32)
    if (record := RECORD.get()) is not None:
        record.workspaces.append(found)
    return found


def is_recording() -> bool:
    """Return whether a run is being recorded; kernels for few numbers leave other runs to NumPy."""
    if (record := RECORD.get()) is None:
        return False
    record.is_cheap = True
    return True


def was_refused(job: Array, index: int) -> bool:
    """Return whether a task has incremented its job's refusal counter, the i64 at ``index``."""
    words = job.view(np.int64)
    if (record := RECORD.get()) is not None:
        record.refusals.append(words.ctypes.data + 8 * index)
    return bool(words[index])


def uses_constant(array: Array) -> None:
    """Declare that tasks will read a constant array owned by the kernel."""
    if (record := RECORD.get()) is not None:
        record.constants.append(array)
