"""Records of calls of tasks: what `parallel_for` is called with while a run is recorded."""

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
    """A call of a task: its address, its job, the result and the inputs, and how many threads share it."""

    task: int
    job: Array
    arrays: tuple[Array, Array, Array, Array, Array]
    threads: int


@dataclass(slots=True, eq=False)
class Record:
    """What a step did.

    Args:
        calls: its calls, in order.
        workspaces: arrays whose contents do not matter before a call.
        refusals: addresses of counters that its tasks increment where they refuse their data.
        constants: arrays of the kernel itself.
        is_cheap: whether NumPy computes it as fast in other runs: by itself it is not worth a replay.
        host: what it did in Python.
    """

    calls: list[Call] = field(default_factory=list)
    workspaces: list[Array] = field(default_factory=list)
    refusals: list[int] = field(default_factory=list)
    constants: list[Array] = field(default_factory=list)
    is_cheap: bool = False
    host: HostCalls = field(default_factory=HostCalls)


RECORD: ContextVar[Record | None] = ContextVar("record", default=None)
"""The record of the current step; ``None`` in most runs."""


def recorded(run: Callable[[], None]) -> Record:
    """Call a function, and record its calls."""
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
    """Return uninitialised f32 for a task to work in."""
    found = empty(size, np.float32)
    if (record := RECORD.get()) is not None:
        record.workspaces.append(found)
    return found


def is_recording() -> bool:
    """Return whether a run is recorded, for a kernel of few numbers: in other runs, it leaves them to NumPy."""
    if (record := RECORD.get()) is None:
        return False
    record.is_cheap = True
    return True


def was_refused(job: Array, index: int) -> bool:
    """Return whether a task has incremented a counter of its job, an i64 at ``index``, which was 0."""
    words = job.view(np.int64)
    if (record := RECORD.get()) is not None:
        record.refusals.append(words.ctypes.data + 8 * index)
    return bool(words[index])


def uses_constant(array: Array) -> None:
    """Say that tasks are going to read an array which the kernel holds, and which never changes."""
    if (record := RECORD.get()) is not None:
        record.constants.append(array)
