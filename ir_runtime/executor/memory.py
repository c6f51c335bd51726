"""Memory planning without an arena: when a plan frees memory, which slots it uses, and how much it needs at once.

Each result is allocated and freed on its own. The allocator keeps freed memory, so that an arena would save nothing,
but would keep what is needed only once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..ir.tensor import Array
from .plan import ExecutionPlan
from .step import Step

__all__ = ["Peak", "freeing", "peak", "settled"]


class Peak(NamedTuple):
    """The most bytes that are in use at once, and the step that is running then."""

    bytes: int
    step: Step | None = None


def peak(
    steps: Iterable[Step], always: int, sizes: Sequence[int], inside: Mapping[int, int] | None = None
) -> Peak:
    """Follow the slots through the steps.

    Args:
        steps: in order, each with the slots that it frees.
        always: bytes in use from the start to the end: inputs, and constants that are not in the file.
        sizes: bytes of each slot that a step writes, or the least that they may be.
        inside: bytes that the bodies of a layer need, by its id.
    """
    used = always
    most = Peak(always)
    for step in steps:
        used += sum(sizes[slot] for slot in step.writes)
        now = used + (inside or {}).get(step.layer.id, 0)
        if now > most.bytes:
            most = Peak(now, step)
        used -= sum(sizes[slot] for slot in step.frees)
    return most


def freeing(steps: Sequence[Step], wanted: Sequence[int]) -> list[Step]:
    """Tell each step which slots it is the last to read; constants and outputs stay."""
    kept = set(wanted)
    made = {slot for step in steps for slot in step.writes}
    read_later: set[int] = set()
    freed = []
    for step in reversed(steps):
        touched = set(step.reads) | set(step.writes)
        frees = tuple(sorted(s for s in touched if s in made and s not in kept and s not in read_later))
        read_later |= touched
        freed.append(replace(step, frees=frees))
    return freed[::-1]


@dataclass(slots=True)
class _Places:
    """Numbers slots again: what is never there at the same time may have the same place.

    Args:
        shared: the slots that may change places with others; each of the rest has a separate place.
    """

    shared: frozenset[int]
    of: dict[int, int] = field(default_factory=dict)
    """The place of a slot."""
    free: list[int] = field(default_factory=list)
    """Places that are not used now, the latest last: that is still in the processor's cache."""
    count: int = 0

    def moved(self, step: Step) -> Step:
        """Return the step on reused slots; steps must come in order. A result may take a slot that the step frees."""
        unread = {slot for slot in step.writes if slot in step.frees}
        reads = tuple(map(self.place, step.reads))
        ending = [slot for slot in step.frees if slot in self.shared]
        self.free += [self.of[slot] for slot in ending if slot not in unread]
        for slot in sorted(step.writes, key=unread.__contains__):
            self.place(slot)
        self.free += [self.of[slot] for slot in ending if slot in unread]
        overwritten = {self.of[slot] for slot in step.writes if slot not in unread}
        frees = tuple(sorted({self.of[slot] for slot in step.frees} - overwritten))
        return replace(step, reads=reads, writes=tuple(map(self.place, step.writes)), frees=frees)

    def place(self, slot: int) -> int:
        """Where a slot is from now on."""
        if slot not in self.of:
            if slot in self.shared and self.free:
                self.of[slot] = self.free.pop()
            else:
                self.of[slot], self.count = self.count, self.count + 1
        return self.of[slot]


def settled(
    steps: Sequence[Step],
    inputs: Iterable[int],
    outputs: Iterable[int],
    slots: Sequence[Array | None],
    **more: Any,
) -> ExecutionPlan:
    """Return the plan of steps that know which slots they free, with as few slots as possible.

    A run of a long model then touches few of them, and steps that are alike do the same to the same ones.

    Args:
        steps: in order.
        inputs: where the inputs go.
        outputs: where the outputs are at the end.
        slots: constants in place, the rest empty.
        more: what else the plan is to know.
    """
    made = frozenset(slot for step in steps for slot in step.writes if slots[slot] is None)
    places = _Places(made)
    given = tuple(map(places.place, inputs))
    moved = tuple(map(places.moved, steps))
    wanted = tuple(map(places.place, outputs))
    arrays: list[Array | None] = [None] * places.count
    for slot, place in places.of.items():
        arrays[place] = slots[slot] if slot not in made else None
    return ExecutionPlan(moved, given, wanted, tuple(arrays), **more)
