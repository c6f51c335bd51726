"""Observe as many tensors of another runtime as can be seen without changing its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.graph import Port
from ..ir.tensor import Array

__all__ = ["observed", "same_bits"]

Look = Callable[[Sequence[Port]], Mapping[Port, Array] | None]
"""Takes tensors; returns what it sees of them, or ``None`` if looking at them changes the result."""


def observed(ports: Sequence[Port], look: Look, tries: int) -> dict[Port, Array]:
    """Look at all tensors at once; where that changes the result, at the halves of them, and so on.

    Args:
        ports: the tensors.
        look: what runs the model.
        tries: how often that may be called; what has not been observed after that is given up.
    """
    found: dict[Port, Array] = {}
    waiting = [ports] if ports else []
    while waiting and tries > 0:
        wanted = waiting.pop(0)
        tries -= 1
        if (seen := look(wanted)) is not None:
            found |= seen
        elif len(wanted) > 1:
            middle = len(wanted) // 2
            waiting += [wanted[:middle], wanted[middle:]]
    return found


def same_bits(ours: Sequence[Array], theirs: Sequence[Array]) -> bool:
    """Return whether arrays have the same shapes and are equal bit for bit."""
    pairs = zip(ours, theirs, strict=True)
    return all(a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
