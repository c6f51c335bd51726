"""The lengths for which a kernel is valid, declared as ``accepts``.

Lengths unknown when a kernel was chosen are checked before it runs (`executor.guard.LengthCheck`), by inference
for each new shape. This takes some 100 µs: too long for lengths that grow with every run, such as those of
caches. A kernel that can decide by a few comparisons defines ``accepts``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from ...ir.tensor import Array

__all__ = ["Accepts", "any_lengths", "attention_lengths", "axis_length", "broadcasts", "filter_lengths"]

Accepts: TypeAlias = Callable[..., bool]
"""Takes the inputs of a kernel. True if their lengths certainly suit it and the operation; else inference decides.

Ranks, lengths that were known when the kernel was chosen, and equal symbols need not be looked at: they hold."""


def any_lengths(*arrays: Array) -> bool:
    """Accept all lengths, for kernels that compute or refuse them like the reference.

    >>> any_lengths(1)
    True
    """
    return True


def axis_length(axis: int, length: int) -> Accepts:
    """Accept a first input with this many elements along an axis."""
    return lambda x, *_: x.shape[axis] == length


def filter_lengths(channels: int, extents: Sequence[int]) -> Accepts:
    """Accept a first input with this many channels, and room for a window without padding along every spatial axis."""
    lowest = tuple(extents)

    def accepts(x: Array, *_: object) -> bool:
        _, found, *lengths = x.shape
        return found == channels and all(map(int.__ge__, lengths, lowest))

    return accepts


def attention_lengths(q: Array, k: Array, v: Array, *rest: Array) -> bool:
    """Accept queries, keys and values with the same heads, and a mask that broadcasts to the scores."""
    *batch, queries, width = q.shape
    *of_keys, keys, depth = k.shape
    if batch != of_keys or width != depth or v.shape[:3] != k.shape[:3]:
        return False
    return not rest or broadcasts(rest[0].shape, (*batch, queries, keys))


def broadcasts(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """Return whether a shape broadcasts to a target without changing it.

    >>> broadcasts((1, 5), (2, 3, 5)), broadcasts((2, 5), (1, 5))
    (True, False)
    """
    return len(shape) <= len(target) and all(
        n in (1, m) for n, m in zip(reversed(shape), reversed(target), strict=False)
    )
