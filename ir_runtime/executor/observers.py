"""Observers for common tasks."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..ir.tensor import Array
from .step import Step

__all__ = ["Profile", "TimedStep"]


class TimedStep(NamedTuple):
    """An executed step.

    Args:
        step: the step.
        start: the start time, by ``time.perf_counter``.
        seconds: the duration.
        depth: the nesting depth in bodies of steps.
    """

    step: Step
    start: float
    seconds: float
    depth: int


@dataclass
class Profile:
    """Measures each step, in the order in which they end."""

    steps: list[TimedStep] = field(default_factory=list)
    _depth: int = 0

    @property
    def times(self) -> list[tuple[Step, float]]:
        """Pairs of a step and its seconds."""
        return [(timed.step, timed.seconds) for timed in self.steps]

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Record the start of a step."""
        self._depth += 1

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the duration of a step."""
        self._depth -= 1
        self.steps.append(TimedStep(step, time.perf_counter() - seconds, seconds, self._depth))
