"""The oracle of the constraint solver: queries about open lengths, answered by inference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ...diagnostics import Diagnostic
from ...ir.dimension import Dimension
from ...ir.graph import Layer

__all__ = ["Answer", "Dim", "Lengths", "BudgetExceededError"]


class Dim(NamedTuple):
    """One open length of an input: the id of a Parameter, and the axis."""

    layer: int
    axis: int


Lengths = Mapping[Dim, int | Dimension]


class BudgetExceededError(Exception):
    """The number of queries, or of layers inferred for them, is used up."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of inference at some lengths."""

    steps: int
    """Number of layers inferred before one refuses, or of all."""
    refusal: Diagnostic | None = None
    layer: Layer | None = None
    """The layer that refuses."""
    near: tuple[int, ...] = ()
    """Lengths in the inputs of the refusing layer; what it expects is often among them."""
    inconclusive: bool = False
    """Whether values known at the reference point are too large to propagate here, so that nothing is decided."""

    @property
    def accepted(self) -> bool | None:
        """Whether the graph takes the lengths; ``None`` if that cannot be told."""
        return False if self.refusal else None if self.inconclusive else True
