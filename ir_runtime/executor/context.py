"""The context of a run, for kernels that need more than their inputs: observers and variables."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import numpy as np

from ..ir.quantized_cache import Held
from ..ir.tensor import Array
from ..limits import DEFAULT, Limits

if TYPE_CHECKING:
    from .step import Observer, Patch

__all__ = ["RUN", "Advance", "Run", "State", "VARIABLES", "advance"]

Advance: TypeAlias = Callable[[object, int], int]
"""Advances the random sequence of an operation by a count, and returns its previous position."""


def _restart(operation: object, count: int) -> int:
    """Return position 0: every sequence starts from the beginning."""
    return 0


@dataclass(slots=True)
class State:
    """The variables of a request during one run. Assigned values take effect once the run succeeds.

    Sequences of random numbers belong to the compiled model: each run continues where the previous one stopped.
    """

    values: dict[str, Held] = field(default_factory=dict)
    assigned: dict[str, Held] = field(default_factory=dict)
    advance: Advance = _restart

    @property
    def arrays(self) -> list[Array]:
        """The arrays held by variables; results may share memory with them."""
        return [value for value in self.values.values() if isinstance(value, np.ndarray)]

    def commit(self, feeds: Sequence[Array]) -> None:
        """Make the assigned values visible to the next run, copying those that share memory with inputs."""
        if not self.assigned:
            return
        fresh = {
            name: array.copy() if _is_shared(array, feeds) else array for name, array in self.assigned.items()
        }
        self.values.update(fresh)  # in one call, so that an interrupt leaves all or nothing


@dataclass(slots=True, eq=False)
class Run:
    """The state of one run, and of the bodies that run inside it."""

    observers: Sequence[Observer]
    state: State
    limits: Limits = DEFAULT
    ends: float = math.inf
    """Its deadline, on the clock of `time.monotonic`."""
    left: float = 0
    """Bytes that may be allocated before live memory must be counted again."""
    envs: list[tuple[Sequence[Any], Sequence[Array | None]]] = field(default_factory=list)
    """The slots of the model and of running bodies, each with its constants."""
    patch: Patch | None = None
    """A function that changes results of steps."""


def _is_shared(value: Held, feeds: Sequence[Array]) -> TypeGuard[Array]:
    """Return whether an array shares memory with an input; packed rows never do."""
    return isinstance(value, np.ndarray) and any(np.may_share_memory(value, feed) for feed in feeds)


RUN: ContextVar[Run] = ContextVar("run")


class _Variables(MutableMapping[str, "Held"]):
    """The variables of the current run; assignments take effect after it."""

    def __getitem__(self, name: str) -> Held:
        return RUN.get().state.values[name]

    def get(self, name: str, default: Any = None) -> Any:  # also in `Mapping`, but slower
        return RUN.get().state.values.get(name, default)

    def __setitem__(self, name: str, value: Held) -> None:
        RUN.get().state.assigned[name] = value

    def __delitem__(self, name: str) -> None:
        raise TypeError("a layer cannot delete a variable")

    def __iter__(self) -> Iterator[str]:
        return iter(RUN.get().state.values)

    def __len__(self) -> int:
        return len(RUN.get().state.values)


VARIABLES = _Variables()


def advance(operation: object, count: int) -> int:
    """Advance a random sequence of the current run by ``count`` positions; return the previous one."""
    return RUN.get().state.advance(operation, count)
