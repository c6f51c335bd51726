"""Questions about the open lengths of a graph's inputs, and what inference answers."""

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
    """There are no questions, or there is no time, left."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What inference says to lengths."""

    steps: int
    """How many layers were inferred: all of them, or those before the one that refuses."""
    refusal: Diagnostic | None = None
    layer: Layer | None = None
    """The layer that refuses."""
    near: tuple[int, ...] = ()
    """Lengths that the layer saw: what it wants is often among them."""
    blind: bool = False
    """Numbers that are known at other lengths are too many to be followed at these: nothing was decided."""

    @property
    def accepted(self) -> bool | None:
        """Whether the graph takes the lengths; ``None`` if that cannot be told."""
        return False if self.refusal else None if self.blind else True
