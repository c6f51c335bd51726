"""The tree of scopes: boxes with layers and other boxes inside."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .items import Items

__all__ = ["PART_LABEL", "Scope", "Scopes"]

PART_LABEL = re.compile(r"\d+–\d+ of \d+")
"""The label of a part of a scope that has too many boxes."""


@dataclass
class Scope:
    """A box with layers and other scopes inside."""

    label: str
    parent: int
    owner: int = -1
    """The layer whose bodies this is."""
    scopes: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    size: int = 0
    """Layers in it and in the scopes inside."""
    open: bool = False
    copies: int = 0
    """The number of scopes in it if all have the same structure; else 0."""

    @property
    def title(self) -> str:
        """The label, with the number of copies."""
        return f"{self.copies} × {self.label}" if self.copies else self.label

    @property
    def width(self) -> int:
        """The number of boxes inside."""
        return len(self.scopes) + len(self.layers)


@dataclass
class Scopes:
    """The layers, and the tree of scopes. The first scope is the whole model."""

    listing: Items
    scopes: list[Scope]
    of: dict[int, int]
    """The scope of each layer that is not a constant."""
    twins: dict[int, int] = field(default_factory=dict)
    """The layer of the first copy, by each corresponding layer of the other copies."""

    def renumber(self) -> None:
        """Number the scopes so that each comes before those inside it."""
        order, waiting = list[int](), [0]
        while waiting:
            number = waiting.pop()
            order.append(number)
            waiting += reversed(self.scopes[number].scopes)
        place = {number: k for k, number in enumerate(order)}
        for scope in self.scopes:
            scope.parent = place.get(scope.parent, -1)
            scope.scopes = [place[number] for number in scope.scopes]
        self.scopes = [self.scopes[number] for number in order]
        self.of = {index: place[number] for index, number in self.of.items()}
