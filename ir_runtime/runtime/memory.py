"""When a plan gives memory back, and how much it needs at once, as far as it is known before it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from .plan import Step

__all__ = ["Peak", "freeing", "peak"]


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
