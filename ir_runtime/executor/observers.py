"""Observers that many programs want."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..ir.tensor import Array
from .step import Step

__all__ = ["Profile"]


@dataclass
class Profile:
    """Measures each step: pairs of a step and its seconds, in the order they ran."""

    times: list[tuple[Step, float]] = field(default_factory=list)

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Nothing to do before a step."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Note how long a step took."""
        self.times.append((step, seconds))
