"""The context of a run, for kernels that need more than their inputs: observers and variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..ir.tensor import Array
from ..limits import DEFAULT, Limits

if TYPE_CHECKING:
    from .step import Observer, Patch

__all__ = ["RUN", "Advance", "Run", "State", "VARIABLES", "advance"]

Advance: TypeAlias = Callable[[object, int], int]
"""Advances the sequence of random numbers of an operation, and returns its former position."""


def _from_the_start(operation: object, count: int) -> int:
    """Let every sequence start again."""
    return 0


@dataclass(slots=True)
class State:
    """The variables of a request, in one run. What it assigns takes effect when it has succeeded.

    Sequences of random numbers belong to the compiled model: whichever run draws goes on where the last one was.
    """

    values: dict[str, Array] = field(default_factory=dict)
    assigned: dict[str, Array] = field(default_factory=dict)
    advance: Advance = _from_the_start

    def commit(self, feeds: Sequence[Array]) -> None:
        """Let what was assigned be what the next run reads; the caller may change its inputs meanwhile."""
        if not self.assigned:
            return
        fresh = {
            name: array.copy() if any(np.may_share_memory(array, feed) for feed in feeds) else array
            for name, array in self.assigned.items()
        }
        self.values.update(fresh)  # in one call, whenever an interrupt comes


@dataclass(slots=True, eq=False)
class Run:
    """One run, with the runs of bodies inside it."""

    observers: Sequence[Observer]
    state: State
    limits: Limits = DEFAULT
    ends: float = math.inf
    """When its time is up."""
    left: float = 0
    """Bytes that may still be made before those that are alive have to be counted again."""
    envs: list[tuple[Sequence[Any], Sequence[Array | None]]] = field(default_factory=list)
    """The slots of the model, and of bodies that are running, each with the constants among them."""
    patch: Patch | None = None
    """Changes results of steps."""


RUN: ContextVar[Run] = ContextVar("run")


class _Variables(MutableMapping[str, "Array"]):
    """The variables of the run that is going on: reads what was before it, assigns for after it."""

    def __getitem__(self, name: str) -> Array:
        return RUN.get().state.values[name]

    def __setitem__(self, name: str, value: Array) -> None:
        RUN.get().state.assigned[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a layer cannot delete a variable")

    def __iter__(self) -> Iterator[str]:
        return iter(RUN.get().state.values)

    def __len__(self) -> int:
        return len(RUN.get().state.values)


VARIABLES = _Variables()


def advance(operation: object, count: int) -> int:
    """Let a sequence of random numbers go on, in the run that is going on."""
    return RUN.get().state.advance(operation, count)
