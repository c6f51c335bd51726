"""Kernels that read one input only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ...ir.tensor import Array

__all__ = ["UNREAD", "Unary"]

UNREAD: Array = np.empty(0)
"""What a kernel gives for an output that nothing reads."""


@dataclass(frozen=True, slots=True)
class Unary:
    """A kernel of one input of a layer; from the others, all constants, it has taken what it needs.

    A run calls ``run`` itself, and does not touch the other inputs.

    >>> Unary(np.negative, place=1)(np.zeros(2), np.ones(2))
    array([-1., -1.])

    Args:
        run: takes the input, returns the outputs of the layer.
        place: which input it is.
        view: whether the outputs are always views of that input, and so take no memory.
        only: where ``run`` returns one output of several, of which nothing reads the others: which one, and
            how many there are.
    """

    run: Callable[[Array], Array | tuple[Array, ...]]
    place: int = 0
    view: bool = False
    only: tuple[int, int] | None = None

    def __call__(self, *arrays: Array) -> Array | tuple[Array, ...]:
        found = self.run(arrays[self.place])
        if self.only is None or isinstance(found, tuple):
            return found
        index, count = self.only
        return tuple(found if i == index else UNREAD for i in range(count))
