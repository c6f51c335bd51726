"""The oracle of the constraint solver: answers queries about dynamic lengths by inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...diagnostics import Diagnostic
from ...ir.dimension import Dimension
from ...ir.graph import Layer

__all__ = ["Answer", "Dim", "Lengths", "BudgetExceededError"]


class Dim(NamedTuple):
    """A dynamic length of an input: the id of its Parameter, and the axis."""

    layer: int
    axis: int


Lengths = Mapping[Dim, int | Dimension]


class BudgetExceededError(Exception):
    """The budget of queries, or of layers inferred for them, is used up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of inference at some lengths."""

    steps: int
    """Number of layers inferred before one refuses, or of all."""
    refusal: Diagnostic | None = None
    layer: Layer | None = None
    """The layer that refuses."""
    near: tuple[int, ...] = ()
    """Lengths in the inputs of the refusing layer, often including the expected one."""
    inconclusive: bool = False
    """Whether values known at the reference point are too large to propagate here, so that nothing is decided."""

    @property
    def accepted(self) -> bool | None:
        """Whether the graph accepts the lengths; ``None`` if undecided."""
        return False if self.refusal else None if self.inconclusive else True
