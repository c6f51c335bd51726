"""Instructions: a step as a function of the slots.

Most layers have few inputs, and one output. For those there are functions that build no list of
arguments: a layer that does next to nothing then costs some 0.1 µs besides its kernel. Steps that do the
same to the same slots share one function: what a run goes through stays in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

from ..backends import Kernel, Unary
from ..errors import ExecutionError

__all__ = ["Move", "Moving", "Slots", "given", "moves_of"]

Slots: TypeAlias = list[Any]
"""An array for each slot, ``None`` in empty ones."""

Move: TypeAlias = Callable[[Slots], None]
"""Takes the slots, puts results into them, and empties those that nothing reads any more.

It changes no slot if the kernel fails."""

_Slots: TypeAlias = tuple[int, ...]


class Moving(Protocol):
    """A step, as far as the slots are concerned."""

    @property
    def kernel(self) -> Kernel:
        """What it computes."""

    @property
    def reads(self) -> _Slots:
        """Where the inputs are."""

    @property
    def writes(self) -> _Slots:
        """Where the outputs go."""

    @property
    def frees(self) -> _Slots:
        """What nothing reads afterwards."""


def moves_of(steps: Iterable[Moving]) -> tuple[Move, ...]:
    """For each step the function that reads, calls the kernel, writes and frees."""
    made: dict[tuple[int, _Slots, _Slots, _Slots], Move] = {}
    moves = []
    for step in steps:
        kernel, reads, writes, frees = _called(step)
        key = (id(kernel), reads, writes, frees)
        if key not in made:
            made[key] = _move(kernel, reads, writes, frees)
        moves.append(made[key])
    return tuple(moves)


def _called(step: Moving) -> tuple[Kernel, _Slots, _Slots, _Slots]:
    """What is called, what that takes and gives, and what is to be emptied then."""
    kernel, reads, writes = step.kernel, step.reads, step.writes
    if not isinstance(kernel, Unary):
        return kernel, reads, writes, step.frees
    reads = (reads[kernel.place],)
    if kernel.only is None:
        return kernel.run, reads, writes, step.frees
    unread = {*writes} - {(out := writes[kernel.only[0]]), *step.reads}
    return kernel.run, reads, (out,), tuple(slot for slot in step.frees if slot not in unread)


def _move(kernel: Kernel, reads: _Slots, writes: _Slots, frees: _Slots) -> Move:
    if len(writes) == 1 and len(reads) in _BY_ARITY:
        if len(reads) == 1 and not frees:
            return _lone(kernel, *reads, *writes)
        return _BY_ARITY[len(reads)](kernel, *reads, *writes, frees)
    if len(writes) > 1 and len(reads) == 1:
        return _parting(kernel, *reads, writes, frees)
    return _several(kernel, reads, writes, frees)


def _lone(kernel: Kernel, a: int, out: int) -> Move:
    """The commonest: one input; if nothing reads it any more, the result takes its place."""

    def move(slots: Slots) -> None:
        result = kernel(slots[a])
        slots[out] = result[0] if result.__class__ is tuple else result

    return move


def _unary(kernel: Kernel, a: int, out: int, frees: _Slots) -> Move:
    def move(slots: Slots) -> None:
        result = kernel(slots[a])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _binary(kernel: Kernel, a: int, b: int, out: int, frees: _Slots) -> Move:
    def move(slots: Slots) -> None:
        result = kernel(slots[a], slots[b])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _ternary(kernel: Kernel, a: int, b: int, c: int, out: int, frees: _Slots) -> Move:
    def move(slots: Slots) -> None:
        result = kernel(slots[a], slots[b], slots[c])
        slots[out] = result[0] if result.__class__ is tuple else result
        for slot in frees:
            slots[slot] = None

    return move


def _parting(kernel: Kernel, a: int, writes: _Slots, frees: _Slots) -> Move:
    """One input, several outputs."""

    def move(slots: Slots) -> None:
        for slot, array in _pairs(writes, kernel(slots[a])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return move


def _several(kernel: Kernel, reads: _Slots, writes: _Slots, frees: _Slots) -> Move:
    def move(slots: Slots) -> None:
        for slot, array in _pairs(writes, kernel(*[slots[slot] for slot in reads])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return move


def _pairs(writes: _Slots, results: Any) -> Iterable[tuple[int, Any]]:
    return zip(writes, given(results, len(writes)))  # noqa: B905 - it has looked


def given(results: Any, count: int) -> tuple[Any, ...]:
    """What a kernel gave, as a tuple; an operation may have more outputs than its layer, but not fewer.

    Raises:
        ExecutionError: if they are fewer than ``count``.
    """
    outputs = results if isinstance(results, tuple) else (results,)
    if len(outputs) < count:
        raise ExecutionError(f"it has {count} outputs, but its code returned {len(outputs)}", hint=_LACKING)
    return outputs


_LACKING = "it must return an array for each of them"

_BY_ARITY: dict[int, Callable[..., Move]] = {1: _unary, 2: _binary, 3: _ternary}
