"""The language of kernels: Python that numba translates, and instructions that are written in LLVM's language.

What stands here only takes down what there is. Machine code is made of it by `jit.translate` and `jit.compiler`, once for a
machine, and loaded by `_machine`; so a process that finds all of it in the cache never imports numba, which takes
half a second. Numba meets these objects as names in what it translates, and asks them what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

__all__ = ["ROUTINES", "Device", "Instruction", "Routine", "device", "instruction", "routine", "types"]

types: Any = SimpleNamespace(int64="int64", float32="float32", void="void")
"""The names of numba's types, for what kernels take and give."""


class _Known:
    """What kernels may call by name."""

    def __init__(self, function: Callable[..., Any], kinds: tuple[str, ...] = ()) -> None:
        self.function, self.kinds = function, kinds

    @property
    def _numba_type_(self) -> Any:
        """Numba asks for this where it does not know an object."""
        from ..jit.translate import type_of

        return type_of(self)


class Device(_Known):
    """A function that becomes a part of each kernel that calls it; Python may call it, too."""

    def __call__(self, *arguments: Any) -> Any:
        """What it returns, without machine code."""
        return self.function(*arguments)


class Instruction(_Known):
    """A function that writes instructions, where a kernel calls it.

    Args:
        function: takes an `Emit`, then the arguments.
        kinds: the types of the arguments.
        gives: the type of what it returns.
    """

    def __init__(self, function: Callable[..., Any], kinds: tuple[str, ...], gives: str) -> None:
        super().__init__(function, kinds)
        self.gives = gives


class Routine(_Known):
    """A function of numbers, with machine code of its own and a name by which kernels call it.

    A `Device` is translated anew for each kernel; the tiles of products take seconds of that.
    """

    def __init__(self, function: Callable[..., None], kinds: tuple[str, ...]) -> None:
        super().__init__(function, kinds)
        place = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.name = f"ir_runtime_{place.replace('.', '_')}"
        ROUTINES[self.name] = self

    def needs(self) -> Iterator[Routine]:
        """The routines that it calls, itself or in what becomes a part of it."""
        return _called(self.function, set())


ROUTINES: dict[str, Routine] = {}
"""All that there are, by name."""


def _called(function: Callable[..., Any], seen: set[Device]) -> Iterator[Routine]:
    for name in function.__code__.co_names:
        known = function.__globals__.get(name)
        if isinstance(known, Routine):
            yield known
        elif isinstance(known, Device) and known not in seen:
            seen.add(known)
            yield from _called(known.function, seen)


def device(function: Callable[..., Any]) -> Any:
    """A function that kernels call; it is compiled into them."""
    return Device(function)


def routine(*kinds: str) -> Callable[[Callable[..., None]], Any]:
    """Make a routine of a function that takes numbers of these types and returns nothing."""
    return lambda function: Routine(function, kinds)


def instruction(*kinds: str, gives: str = "void") -> Callable[[Callable[..., Any]], Any]:
    """Make a function that writes instructions one that kernels can call.

    Args:
        kinds: the types of the arguments, after the `Emit` that the function takes first.
        gives: the type of what it returns.
    """
    return lambda write: Instruction(write, kinds, gives)
