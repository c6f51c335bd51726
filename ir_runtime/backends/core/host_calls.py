"""Python functions that a replay calls before and after its recorded calls.

Variables belong to a run, and cache buffers differ from run to run, so recorded calls cannot refer to them.
Kernels of such layers register Python calls instead, so that a replay need not stop at them.
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
    """An array computed before the recorded calls of a replay."""

    made: Any
    function: Callable[..., Any]
    args: tuple[Array, ...]


class After(NamedTuple):
    """A function of an array called after the recorded calls of a replay."""

    function: Callable[..., object]
    array: Array


@dataclass(slots=True, eq=False)
class HostCalls:
    """The Python calls of a step's kernel."""

    before: list[Before] = field(default_factory=list)
    after: list[After] = field(default_factory=list)


HOST_CALLS: ContextVar[HostCalls | None] = ContextVar("host_calls", default=None)
"""Those of the current step; ``None`` in runs that are not recorded."""


def made_before(made: Made, function: Callable[..., object], *args: Array) -> Made:
    """Register an array that replays compute before their recorded calls; return the array.

    Args:
        made: the result of the function in this run.
        function: an idempotent function, called only if ``args`` have the same shapes and dtypes.
        args: inputs of the step.
    """
    if (calls := HOST_CALLS.get()) is not None:
        calls.before.append(Before(made, function, args))
    return made


def called_after(function: Callable[..., object], array: Array) -> None:
    """Register a function that replays call after their recorded calls."""
    if (calls := HOST_CALLS.get()) is not None:
        calls.after.append(After(function, array))
