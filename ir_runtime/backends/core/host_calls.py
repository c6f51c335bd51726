"""Functions that a replay calls in Python, before its recorded calls and after them.

Variables belong to a run, and caches grow into buffers that differ from run to run: no recorded call knows them. The kernels of
such layers note what they do in Python, so that the replay of a whole run need not end at each of them.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ...ir.tensor import Array

__all__ = ["After", "Before", "HOST_CALLS", "HostCalls", "called_after", "made_before"]

Made = TypeVar("Made")


class Before(NamedTuple):
    """An array that replays make before their recorded calls, by a function of arrays that they have then."""

    made: Any
    function: Callable[..., Any]
    args: tuple[Array, ...]


class After(NamedTuple):
    """A function of an array that replays call after their recorded calls."""

    function: Callable[..., object]
    array: Array


@dataclass(slots=True, eq=False)
class HostCalls:
    """What the kernel of a step did in Python."""

    before: list[Before] = field(default_factory=list)
    after: list[After] = field(default_factory=list)


HOST_CALLS: ContextVar[HostCalls | None] = ContextVar("host_calls", default=None)
"""Those of the current step; ``None`` in runs that are not recorded."""


def made_before(made: Made, function: Callable[..., object], *args: Array) -> Made:
    """Note that a replay makes an array by a function before its recorded calls; returns the array.

    Args:
        made: what the function returns in this run.
        function: has no side effects, but what calling it again repeats; called only if ``args`` have the same shapes and dtypes.
        args: inputs of the step.
    """
    if (calls := HOST_CALLS.get()) is not None:
        calls.before.append(Before(made, function, args))
    return made


def called_after(function: Callable[..., object], array: Array) -> None:
    """Note that a replay calls a function of an array after its recorded calls."""
    if (calls := HOST_CALLS.get()) is not None:
        calls.after.append(After(function, array))
