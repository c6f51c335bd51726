"""The kernel language: declarations of Python functions that are compiled to machine code, and of emitters of LLVM IR.

`build` compiles the declared functions to libraries of machine code; `machine_code` loads one of these.

Functions with inner loops take every value as a parameter, even if there are many: LLVM inlines the calls and keeps parameters
in registers, but would reload the fields of a descriptor after every store.
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
    """A function that kernels can call.

    Args:
        function: the Python function.
        kinds: the argument types.
    """

    def __init__(self, function: Callable[..., object], kinds: tuple[str, ...] = ()) -> None:
        self.function, self.kinds = function, kinds


class Device(Callee, Generic[_P, _T]):
    """A function that is compiled into each kernel that calls it. Python can call it, too, without compilation."""

    function: Callable[_P, _T]

    def __init__(self, function: Callable[_P, _T]) -> None:
        super().__init__(function)

    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Call the Python function."""
        return self.function(*args, **kwargs)


class Instruction(Callee):
    """A function that emits LLVM IR in place of each call in a kernel.

    Args:
        function: the emitter; takes an `Emit` and the arguments.
        kinds: the argument types.
        returns: the result type.
    """

    def __init__(self, function: Callable[..., Value | None], kinds: tuple[str, ...], returns: str) -> None:
        super().__init__(function, kinds)
        self.returns = returns

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, *arguments: Any) -> Any: ...


class Scratch(Callee):
    """An allocator of memory that is released when the kernel function that allocated it returns.

    Kernels neither release memory nor check for failure: if an allocation fails, all functions of the kernel return at
    once, and the task reports the failure.

    Args:
        allocate: takes a number of bytes, and returns an address, or 0 on failure.
        release: takes an address.
    """

    def __init__(self, allocate: Instruction, release: Instruction) -> None:
        super().__init__(allocate.function, allocate.kinds)
        self.allocate, self.release = allocate, release

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, size: int) -> int: ...


class Routine(Callee):
    """A function that is compiled once, under a symbol that kernels call.

    A `Device`, in contrast, is compiled again for each kernel, which for matrix tiles would take seconds.

    Args:
        function: the Python function; its parameters are scalars.
        kinds: the argument types.
        returns: the result type.
        is_baseline: whether to compile it for the baseline processor of the family instead of the target.
    """

    failure: ClassVar[Device[..., Any] | None] = None
    """Called with the arguments if scratch memory runs out; routines without it must not use scratch memory."""
    reads_words: ClassVar[bool] = False
    """Whether the parameters of the function after the first are loaded from the words at the address in the first."""

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
        """Yield the routines that this one calls directly or through devices; some may be repeated."""
        return _find_routines(self.function, set())


class Units:
    """A kernel loop over units of work that threads share: ``for unit in each_unit(call, units)``.

    Args:
        take: takes the next unit for this thread, given the first argument of the loop and the number of units; returns
            that number when none is left.
    """

    def __init__(self, take: Routine | Device[..., Any]) -> None:
        self.take = take

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, place: int, units: int) -> Iterator[int]: ...


class Chunks:
    """A kernel loop over chunks of elements: ``for start, end in each_chunk(call, elements, size)``.

    A chunk is the elements from ``start`` to ``end``, which is exclusive, at most ``size`` of them.

    Args:
        units: the loop over units of work, each of which is one chunk.
    """

    def __init__(self, units: Units) -> None:
        self.units = units

    if TYPE_CHECKING:  # only kernels call it

        def __call__(self, place: int, elements: int, size: int) -> Iterator[tuple[int, int]]: ...


ROUTINES: dict[str, Routine] = {}
"""All routines by symbol name."""


def _find_routines(function: Callable[..., object], visited: set[Device[..., object]]) -> Iterator[Routine]:
    enclosed = (cell.cell_contents for cell in function.__closure__ or ())
    for value in (*map(function.__globals__.get, function.__code__.co_names), *enclosed):
        loop = value.units if isinstance(value, Chunks) else value
        callee: object = loop.take if isinstance(loop, Units) else loop
        if isinstance(callee, Routine):
            yield callee
        elif isinstance(callee, Device) and callee not in visited:
            visited.add(callee)
            yield from _find_routines(callee.function, visited)


def device(function: Callable[_P, _T]) -> Device[_P, _T]:
    """Declare a function as a `Device`, which is compiled into the kernels that call it."""
    return Device(function)


def routine(
    *kinds: str, returns: str = "void", is_baseline: bool = False
) -> Callable[[Callable[..., object]], Routine]:
    """Declare a function as a `Routine`, which is compiled once.

    Args:
        kinds: the argument types.
        returns: the result type.
        is_baseline: whether to compile it for the baseline processor of the family.
    """
    return lambda function: Routine(function, kinds, returns, is_baseline)


def instruction(*kinds: str, returns: str = "void") -> Callable[[Callable[..., Value | None]], Instruction]:
    """Declare an emitter of LLVM IR as an `Instruction`, which kernels can call.

    Args:
        kinds: the argument types, after the leading `Emit`.
        returns: the result type.
    """
    return lambda write: Instruction(write, kinds, returns)
