"""The Python functions of a replay, called before and after its recorded calls: see `core.host_calls`.

Functions before the calls work on a list of arrays: the initial contents of slots, constants, and results of
earlier functions. An array is identified by its index in that list, its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

from ...._util.arrays import DType
from ....ir.tensor import Array
from ...core.host_calls import Before
from ...core.replay import Slots

__all__ = ["HostSteps", "Values"]

Values: TypeAlias = list[Any]
"""The array at each place; ``None`` before it is computed."""


class _Load(NamedTuple):
    """The required contents of a slot when the replay begins."""

    place: int
    slot: int
    shape: tuple[int, ...]
    dtype: DType


class _Call(NamedTuple):
    """A function, the places of its arguments, and the expected result."""

    function: Callable[..., Array]
    args: tuple[int, ...]
    place: int
    shape: tuple[int, ...]
    dtype: DType


@dataclass(eq=False, slots=True)
class HostSteps:
    """The functions to call before the calls of a part."""

    constants: Values = field(default_factory=list)
    """The initial list of arrays: constants, and ``None`` elsewhere."""
    loads: list[_Load] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    holds: dict[int, int] = field(default_factory=dict)
    """The places of slot contents that a function computed and no recorded call has read."""

    def constant(self, array: Array | None) -> int:
        """Return the place of an array that never changes between replays."""
        self.constants.append(array)
        return len(self.constants) - 1

    def load(self, slot: int, array: Array) -> int:
        """Return the place of a slot's initial array, of this shape and dtype."""
        for known in self.loads:
            if known.slot == slot:
                return known.place
        self.loads.append(_Load(self.constant(None), slot, array.shape, array.dtype))
        return self.loads[-1].place

    def call(self, before: Before, args: Sequence[int]) -> int:
        """Return the place of the result of a function, given the places of its arguments."""
        place, made = self.constant(None), before.made
        self.calls.append(_Call(before.function, tuple(args), place, made.shape, made.dtype))
        return place

    def mark(self) -> tuple[int, int, int]:
        """Return a mark for `undo`."""
        return len(self.constants), len(self.loads), len(self.calls)

    def undo(self, mark: tuple[int, int, int]) -> None:
        """Remove all additions since a mark."""
        constants, loads, calls = mark
        del self.constants[constants:], self.loads[loads:], self.calls[calls:]

    def run(self, slots: Slots) -> Values | None:
        """Return the arrays of a replay; ``None`` if a shape differs from the recording."""
        values = [*self.constants]
        for place, slot, shape, dtype in self.loads:
            values[place] = array = slots[slot]
            if array.shape != shape or array.dtype is not dtype:
                return None
        for function, args, place, shape, dtype in self.calls:
            values[place] = array = function(*[values[arg] for arg in args])
            if array.shape != shape or array.dtype is not dtype:
                return None
        return values
