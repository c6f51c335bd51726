"""Tapes: calls of NumPy whose arguments are prepared in advance, so that running a layer only makes the calls.

To slice and reshape arrays takes as long as to compute a small layer with them, and holds the GIL. Where a kernel
computes in the same scratch memory again and again, its views are made once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

__all__ = ["Call", "Tape", "replay"]

Call: TypeAlias = tuple[Callable[..., object], tuple[object, ...]]
"""A function and its arguments."""
Tape: TypeAlias = list[Call]


def replay(tape: Tape) -> None:
    """Make the calls of a tape in order."""
    for function, args in tape:
        function(*args)
