"""The shapes of one layer's inputs and outputs, from which its cost is computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from .formula import Count, Formula, product
from .tensor import Array

__all__ = ["Lengths", "Operands", "size"]

Lengths: TypeAlias = Sequence[Count]
"""The length of each axis of a tensor."""


@dataclass(frozen=True, slots=True)
class Operands:
    """The inputs and outputs of a layer, from which its operation counts its arithmetic.

    Args:
        inputs: the lengths of each input.
        outputs: the lengths of each output.
        contents: the contents of each input, where they are known.
        bodies: the FLOPs of one pass of each body, in the order of the bodies.
        symbol: gives the symbol of a number known only at run time, by what it counts, such as ``trips``.
    """

    inputs: tuple[Lengths, ...]
    outputs: tuple[Lengths, ...]
    contents: tuple[Array | None, ...] = ()
    bodies: tuple[Count, ...] = ()
    symbol: Callable[[str], str] = str

    @property
    def result(self) -> Count:
        """The number of elements of the first output."""
        return size(self.outputs[0]) if self.outputs else 0

    @property
    def data(self) -> Count:
        """The number of elements of the first input."""
        return size(self.inputs[0]) if self.inputs else 0

    def content(self, index: int) -> Array | None:
        """Return the contents of an input, or ``None`` if they are not known or the input is absent."""
        return self.contents[index] if index < len(self.contents) else None

    def unknown(self, what: str) -> Formula:
        """Return a symbol for a number known only at run time, such as the iterations of a loop."""
        return Formula.symbol(self.symbol(what))


def size(lengths: Lengths) -> Count:
    """Return the number of elements of a tensor."""
    return product(lengths)
