"""The kernel language: Python functions to translate, and instructions emitted as LLVM IR.

This module only declares kernels. `build` turns them into libraries of machine code, and
`machine_code` loads one.

Inner loops take every value as a parameter, however many there are: LLVM inlines the calls and keeps
parameters in registers, whereas fields of a descriptor would be reloaded after every store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar

if TYPE_CHECKING:
    from .vectors import Value

__all__ = [
    "ROUTINES",
    "Callee",
    "Chunks",
    "Device",
    "Instruction",
    "Routine",
    "Scratch",
    "Units",
    "device",
    "instruction",
    "routine",
    "types",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")


types = SimpleNamespace(int64="int64", float32="float32", void="void")
"""Type names for the parameters and results of kernels."""


class Callee:
    """A function that kernels can call by name."""

    def __init__(self, function: Callable[..., object], kinds: tuple[str, ...] = ()) -> None:
        self.function, self.kinds = function, kinds


class Device(Callee, Generic[_P, _T]):
    """A function that is compiled into each kernel that calls it; Python can call it, too."""

    function: Callable[_P, _T]

    def __init__(self, function: Callable[_P, _T]) -> None:
        super().__init__(function)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call the Python function."""
        return self.function(*args, **kwargs)


class Instruction(Callee):
    """A function that emits LLVM IR at the call site.

    Args:
        function: takes an `Emit` and the arguments.
        kinds: the argument types.
        returns: the result type.
    """

    def __init__(self, function: Callable[..., Value | None], kinds: tuple[str, ...], returns: str) -> None:
        super().__init__(function, kinds)
        self.returns = returns

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, *arguments: Any) -> Any: ...


class Scratch(Callee):
    """A memory allocator; the calling kernel function owns the memory until it returns.

    If an allocation fails, all functions of the kernel return at once and the task reports the failure, so
    callers neither check for it nor release memory.

    Args:
        allocate: takes a number of bytes and returns an address, 0 on failure.
        release: takes an address.
    """

    def __init__(self, allocate: Instruction, release: Instruction) -> None:
        super().__init__(allocate.function, allocate.kinds)
        self.allocate, self.release = allocate, release

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, size: int) -> int: ...


class Routine(Callee):
    """A function of scalars that is compiled separately, under a symbol that other kernels call.

    A `Device` is compiled again for each kernel; for matrix tiles that would take seconds.

    Args:
        function: the function.
        kinds: the argument types.
        returns: the result type.
        is_baseline: whether to compile it for every processor of the family, whatever the target.
    """

    failure: ClassVar[Device[..., Any] | None] = None
    """Called with the arguments if scratch memory runs out; routines without it must not allocate any."""
    reads_words: ClassVar[bool] = False
    """Whether the function's parameters after the first are the words at the address in the first."""

    def __init__(
        self,
        function: Callable[..., object],
        kinds: tuple[str, ...],
        returns: str = "void",
        is_baseline: bool = False,
    ) -> None:
        super().__init__(function, kinds)
        self.returns, self.is_baseline = returns, is_baseline
        place = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"
        self.name = f"ir_runtime_{place.replace('.', '_')}"
        ROUTINES[self.name] = self

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, *arguments: Any) -> Any: ...

    def dependencies(self) -> Iterator[Routine]:
        """Return the routines called directly or through devices."""
        return _called(self.function, set())


class Units:
    """A loop over units of work shared by threads: ``for unit in each_unit(call, units)``.

    Args:
        take: takes a place and the number of units; returns a unit, or that number when none is left.
    """

    def __init__(self, take: Routine | Device[..., Any]) -> None:
        self.take = take

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, place: int, units: int) -> Iterator[int]: ...


class Chunks:
    """A loop over chunks of elements: ``for start, end in each_chunk(call, elements, size)``; a unit is a chunk.

    Args:
        units: takes the units.
    """

    def __init__(self, units: Units) -> None:
        self.units = units

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, place: int, elements: int, size: int) -> Iterator[tuple[int, int]]: ...


ROUTINES: dict[str, Routine] = {}
"""All routines by symbol name."""


def _called(function: Callable[..., object], seen: set[Device[..., object]]) -> Iterator[Routine]:
    enclosed = (cell.cell_contents for cell in function.__closure__ or ())
    for named in (*map(function.__globals__.get, function.__code__.co_names), *enclosed):
        loop = named.units if isinstance(named, Chunks) else named
        known: object = loop.take if isinstance(loop, Units) else loop
        if isinstance(known, Routine):
            yield known
        elif isinstance(known, Device) and known not in seen:
            seen.add(known)
            yield from _called(known.function, seen)


def device(function: Callable[_P, _T]) -> Device[_P, _T]:
    """Declare a function that is compiled into the kernels that call it."""
    return Device(function)


def routine(
    *kinds: str, returns: str = "void", is_baseline: bool = False
) -> Callable[[Callable[..., object]], Routine]:
    """Declare a routine: a function of scalars with at most one result."""
    return lambda function: Routine(function, kinds, returns, is_baseline)


def instruction(*kinds: str, returns: str = "void") -> Callable[[Callable[..., Value | None]], Instruction]:
    """Declare a function that emits LLVM IR as an instruction that kernels can call.

    Args:
        kinds: the argument types, after the leading `Emit`.
        returns: the result type.
    """
    return lambda write: Instruction(write, kinds, returns)
