"""Memory planning without an arena: when a plan frees memory, which slots it uses, and how much it needs at once.

Each result is allocated and freed on its own. Freed memory is kept for the next one, by the allocator and for large
results by `backends.common.kept_memory`, so that an arena would save nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ..executor.plan import ExecutionPlan
from ..executor.step import Step
from ..ir.tensor import Array

__all__ = ["Peak", "with_frees", "peak", "reuse_slots"]


class Peak(NamedTuple):
    """The most bytes that are in use at once, and the step that is running then."""

    bytes: int
    step: Step | None = None


def peak(
    steps: Iterable[Step], always: int, sizes: Sequence[int], inside: Mapping[int, int] | None = None
) -> Peak:
    """Return the peak memory of steps, from the sizes of the slots that they write and free.

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


def with_frees(steps: Sequence[Step], wanted: Sequence[int]) -> list[Step]:
    """Return the steps with the slots that each is the last to read, which it frees; constants and outputs stay."""
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
class _SlotAllocator:
    """Renumbers slots, so that arrays that are never live at the same time share one.

    Args:
        shared: the slots that may be shared; each of the others gets one for itself.
    """

    shared: frozenset[int]
    of: dict[int, int] = field(default_factory=dict)
    """The new number of each slot."""
    free: list[int] = field(default_factory=list)
    """Free numbers, the latest last: its array is still in the processor's cache."""
    count: int = 0

    def renumbered(self, step: Step) -> Step:
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
        """Return the new number of a slot."""
        if slot not in self.of:
            if slot in self.shared and self.free:
                self.of[slot] = self.free.pop()
            else:
                self.of[slot], self.count = self.count, self.count + 1
        return self.of[slot]


def reuse_slots(
    steps: Sequence[Step],
    inputs: Iterable[int],
    outputs: Iterable[int],
    slots: Sequence[Array | None],
    **more: Any,
) -> ExecutionPlan:
    """Return the plan of steps that know which slots they free, with as few slots as possible.

    A run of a long model then touches few slots, and equal steps share instructions.

    Args:
        steps: in order.
        inputs: the slots of the inputs.
        outputs: the slots of the outputs.
        slots: the slots before a run: constants, the rest empty.
        more: other fields of the plan.
    """
    made = frozenset(slot for step in steps for slot in step.writes if slots[slot] is None)
    allocator = _SlotAllocator(made)
    given = tuple(map(allocator.place, inputs))
    renumbered = tuple(map(allocator.renumbered, steps))
    wanted = tuple(map(allocator.place, outputs))
    arrays: list[Array | None] = [None] * allocator.count
    for slot, place in allocator.of.items():
        arrays[place] = slots[slot] if slot not in made else None
    return ExecutionPlan(renumbered, given, wanted, tuple(arrays), **more)
