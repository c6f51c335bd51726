"""Pad with constant pads: the data are copied once, in their memory order, and borders from the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.movement.pad import Pad1, Pad12, PadBase
from ... import Kernel, Unary
from ...core.lengths import accepting, any_lengths
from .._backend import backend

__all__: list[str] = []

# How far a mirror stands from the outermost element.
_GAPS = {"reflect": 1, "symmetric": 0}
# Shapes whose regions are cached.
MAX_REMEMBERED = 64


@backend.accelerates(Pad1, Pad12)
def no_padding(op: PadBase, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Return the identity for a padding of zero elements, which exporters write."""
    before, after = begin.known(), end.known()
    if before is None or after is None or before.any() or after.any():
        return None
    return Unary(lambda x: x, view=True) if data.shape.rank == before.size == after.size else None


@backend.accelerates(Pad1, Pad12)
def padding(op: PadBase, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Return a kernel for constant pads that are not negative."""
    before, after, rank = begin.ints(), end.ints(), data.shape.rank
    if before is None or after is None or data.element in (ElementType.string, ElementType.dynamic):
        return None
    if not rank or not rank == len(before) == len(after) or min(*before, *after) < 0:
        return None

    @lru_cache(maxsize=MAX_REMEMBERED)
    def regions(lengths: tuple[int, ...]) -> _Regions | None:
        return _regions(op.pad_mode, lengths, before, after)

    def kernel(x: Array, begin: Array, end: Array, *fill: Array) -> Array:
        if (found := regions(x.shape)) is None:
            return op.evaluate(x, begin, end, *fill)  # which raises
        y = np.empty_like(x, shape=found.shape)
        y[found.inside] = x
        for target, source in found.borders:
            y[target] = y[source] if source is not None else fill[0] if fill else 0
        return y

    return accepting(kernel, any_lengths)


_Region: TypeAlias = tuple[slice, ...]


class _Regions(NamedTuple):
    """Where the data are in the result, and for each border where it is copied from; ``None``: it is filled."""

    shape: tuple[int, ...]
    inside: _Region
    borders: list[tuple[_Region, _Region | None]]


def _regions(
    mode: str, lengths: Sequence[int], before: Sequence[int], after: Sequence[int]
) -> _Regions | None:
    """Return the regions for data of these lengths, ``None`` if a mirror image is too short."""
    region = [slice(first, first + n) for first, n in zip(before, lengths, strict=True)]
    shape = tuple(b + n + a for b, n, a in zip(before, lengths, after, strict=True))
    inside, borders = tuple(region), []
    for axis, length in enumerate(lengths):
        pads = before[axis], after[axis]
        if any(pads) and length < {"constant": 0, "edge": 1}.get(mode, max(pads) + _GAPS.get(mode, 0)):
            return None
        for target, source in _borders(mode, pads[0], pads[0] + length, pads[1]):
            region[axis] = target
            place = tuple(region)
            region[axis] = source or target
            borders.append((place, tuple(region) if source else None))
        region[axis] = slice(None)  # of the axes before, with their borders
    return _Regions(shape, inside, borders)


def _borders(mode: str, first: int, end: int, after: int) -> Iterator[tuple[slice, slice | None]]:
    """Yield the borders of an axis whose data are from ``first`` to ``end``, and what is copied there."""
    gap = _GAPS.get(mode, 0)
    if first:
        mirrored = slice(2 * first - 1 + gap, first - 1 + gap, -1)
        yield slice(0, first), {"constant": None, "edge": slice(first, first + 1)}.get(mode, mirrored)
    if after:
        last = end - 1 - gap
        mirrored = slice(last, last - after if last >= after else None, -1)
        yield slice(end, end + after), {"constant": None, "edge": slice(end - 1, end)}.get(mode, mirrored)
