"""Kernels that look at one input only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..ir.tensor import Array

__all__ = ["Unary"]


@dataclass(frozen=True, slots=True)
class Unary:
    """A kernel of one input of a layer; from the others, all constants, it has taken what it needs.

    A run calls ``run`` itself, and does not touch the other inputs.

    Args:
        run: takes the input, returns the outputs of the layer.
        place: which input it is.
        view: whether the outputs always lie in the memory of that input, and so take none.
    """

    run: Callable[[Array], Array | tuple[Array, ...]]
    place: int = 0
    view: bool = False

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        return self.run(arrays[self.place])
