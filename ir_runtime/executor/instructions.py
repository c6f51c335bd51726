"""Instructions: a step as a function of the slots.

Most layers have few inputs and one output. Their instructions build no list of arguments, and cost about 0.1 µs besides
the kernel. Steps that call the same kernel on the same slots share one instruction, so that the code of a run stays in
the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from numpy import ndarray

from ..backends import Compute
from ..backends.core.replay import Instruction, Slots
from .step import Step, as_array, as_outputs

__all__ = ["instructions_of"]

_Slots: TypeAlias = tuple[int, ...]


def instructions_of(steps: Iterable[Step]) -> tuple[Instruction, ...]:
    """Return the instruction of each step."""
    shared: dict[tuple[int, _Slots, _Slots, _Slots], Instruction] = {}
    instructions = []
    for step in steps:
        reads, writes, frees = _access(step)
        key = (id(step.kernel.run), reads, writes, frees)
        if key not in shared:
            shared[key] = _instruction(step.kernel.run, reads, writes, frees)
        instructions.append(shared[key])
    return tuple(instructions)


def _access(step: Step) -> tuple[_Slots, _Slots, _Slots]:
    """Return the slots that a kernel reads, writes and frees."""
    kernel, reads, writes, frees = step.kernel, step.reads, step.writes, step.frees
    if kernel.operands is not None:
        reads = tuple(reads[place] for place in kernel.operands)
    if kernel.only is None:
        return reads, writes, frees
    unread = {*writes} - {(out := writes[kernel.only[0]]), *step.reads}
    return reads, (out,), tuple(slot for slot in frees if slot not in unread)


def _instruction(run: Compute, reads: _Slots, writes: _Slots, frees: _Slots) -> Instruction:
    if len(writes) == 1 and len(reads) in _BY_ARITY:
        if len(reads) == 1 and not frees:
            return _unary_in_place(run, *reads, *writes)
        return _BY_ARITY[len(reads)](run, *reads, *writes, frees)
    if len(writes) > 1 and len(reads) == 1:
        return _unary_many_outputs(run, *reads, writes, frees)
    return _any_arity(run, reads, writes, frees)


def _unary_in_place(run: Compute, a: int, out: int) -> Instruction:
    """Return the most common instruction: one input, whose slot may be reused, and no slots to free."""

    def instruction(slots: Slots) -> None:
        result = run(slots[a])
        slots[out] = result if result.__class__ is ndarray else _only(result)

    return instruction


def _unary(run: Compute, a: int, out: int, frees: _Slots) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _binary(run: Compute, a: int, b: int, out: int, frees: _Slots) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a], slots[b])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _ternary(run: Compute, a: int, b: int, c: int, out: int, frees: _Slots) -> Instruction:
    def instruction(slots: Slots) -> None:
        result = run(slots[a], slots[b], slots[c])
        slots[out] = result if result.__class__ is ndarray else _only(result)
        for slot in frees:
            slots[slot] = None

    return instruction


def _unary_many_outputs(run: Compute, a: int, writes: _Slots, frees: _Slots) -> Instruction:
    """Return an instruction with one input and several outputs."""

    def instruction(slots: Slots) -> None:
        for slot, array in _pairs(writes, run(slots[a])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return instruction


def _any_arity(run: Compute, reads: _Slots, writes: _Slots, frees: _Slots) -> Instruction:
    def instruction(slots: Slots) -> None:
        for slot, array in _pairs(writes, run(*[slots[slot] for slot in reads])):
            slots[slot] = array
        for slot in frees:
            slots[slot] = None

    return instruction


def _only(result: Any) -> Any:
    """Return the first of several results as an array."""
    return as_array(result[0] if isinstance(result, tuple) else result)


def _pairs(writes: _Slots, results: Any) -> Iterable[tuple[int, Any]]:
    return zip(writes, as_outputs(results, len(writes)))  # noqa: B905 - `as_outputs` checks the lengths


_BY_ARITY: dict[int, Callable[..., Instruction]] = {1: _unary, 2: _binary, 3: _ternary}
