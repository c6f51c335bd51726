"""What a step does to the slots, as a function of nothing else.

Most layers have few inputs, and one output. For those there are functions that build no list of
arguments: a layer that does next to nothing then costs some 0.2 µs besides its kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..backends import Kernel, Unary

__all__ = ["Move", "move_of"]

Move: TypeAlias = Callable[[list[Any]], None]
"""Takes the slots, puts results into them, and empties those that nobody reads any more."""

_Slots: TypeAlias = tuple[int, ...]


def move_of(kernel: Kernel, reads: _Slots, writes: _Slots, frees: _Slots) -> Move:
    """The function that reads, calls ``kernel``, writes and frees. It changes no slot if the kernel fails."""
    if isinstance(kernel, Unary):
        reads, kernel = (reads[kernel.place],), kernel.run
    if len(writes) == len(reads) == 1 and reads == frees:
        return _replacing(kernel, *reads, *writes)
    if len(writes) == 1 and len(reads) in _BY_ARITY:
        return _BY_ARITY[len(reads)](kernel, *reads, *writes, frees)
    return _several(kernel, reads, writes, frees)


def _replacing(kernel: Kernel, a: int, out: int) -> Move:
    """The commonest: one input, which nobody reads any more."""

    def move(slots: list[Any]) -> None:
        result = kernel(slots[a])
        slots[a] = None
        slots[out] = result[0] if result.__class__ is tuple else result

    return move


def _unary(kernel: Kernel, a: int, out: int, frees: _Slots) -> Move:
    def move(slots: list[Any]) -> None:
        result = kernel(slots[a])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _binary(kernel: Kernel, a: int, b: int, out: int, frees: _Slots) -> Move:
    def move(slots: list[Any]) -> None:
        result = kernel(slots[a], slots[b])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _ternary(kernel: Kernel, a: int, b: int, c: int, out: int, frees: _Slots) -> Move:
    def move(slots: list[Any]) -> None:
        result = kernel(slots[a], slots[b], slots[c])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _several(kernel: Kernel, reads: _Slots, writes: _Slots, frees: _Slots) -> Move:
    def move(slots: list[Any]) -> None:
        results = kernel(*[slots[slot] for slot in reads])
        outputs = results if isinstance(results, tuple) else (results,)
        for slot, array in zip(writes, outputs, strict=len(outputs) < len(writes)):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return move


_BY_ARITY: dict[int, Callable[..., Move]] = {1: _unary, 2: _binary, 3: _ternary}
