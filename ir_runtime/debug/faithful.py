"""Observe as many tensors of another runtime as possible without changing its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.graph import Port
from ..ir.tensor import Array

__all__ = ["observed", "same_bits"]

Look = Callable[[Sequence[Port]], Mapping[Port, Array] | None]
"""A function from tensors to their values, or ``None`` if observing changes the result."""


def observed(ports: Sequence[Port], look: Look, tries: int) -> dict[Port, Array]:
    """Observe all tensors at once; if that changes the result, bisect them.

    Args:
        ports: the tensors.
        look: the function that runs the model.
        tries: the most calls; remaining tensors stay unobserved.
    """
    tensors: dict[Port, Array] = {}
    waiting = [ports] if ports else []
    while waiting and tries > 0:
        selection = waiting.pop(0)
        tries -= 1
        if (seen := look(selection)) is not None:
            tensors |= seen
        elif len(selection) > 1:
            middle = len(selection) // 2
            waiting += [selection[:middle], selection[middle:]]
    return tensors


def same_bits(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Return whether arrays are bitwise equal."""
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
