"""Parts of a tensor as views, where they are known when compiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ...ir.element import ElementType
from ...ir.tensor import Array, Value
from ...ops.movement.concat import Concat
from ...ops.movement.gather import Gather, Gather1, Gather7, Pick
from ...ops.movement.pad import Pad1, Pad12, Padding
from ...ops.movement.split import Split, VariadicSplit
from .. import Kernel, Unary
from ._backend import backend
from .views import nothing, unary

__all__: list[str] = []


@backend.accelerates(Gather, Gather1, Gather7)
def one(op: Pick, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """One slice along a known axis: what models take queries, keys and values apart with."""
    known, place = indices.known(), _place(data, axis)
    if known is None or known.ndim or place is None:
        return None
    index = int(known)
    where: Any = (*(slice(None),) * place, index, ...)

    def kernel(x: Array, i: Array, axis: Array) -> Array:
        if -x.shape[place] <= index < x.shape[place]:
            one: Array = x[where]
            return one
        return op.evaluate(x, i, axis)

    return kernel


@backend.accelerates(Gather, Gather1, Gather7)
def several(op: Pick, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """Slices along a known axis, as NumPy takes them; where an index is outside, it is left to the operation."""
    place = _place(data, axis)
    if op.batch or place is None or not indices.shape.rank or indices.element not in _INDICES:
        return None

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, place)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return kernel


@backend.accelerates(Pad1, Pad12)
def unpadded(op: Padding, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Nothing is added: what exporters write who do not know whether windows fit."""
    before, after = begin.known(), end.known()
    if before is None or after is None or before.any() or after.any():
        return None
    return Unary(lambda x: x, view=True) if data.shape.rank == before.size == after.size else None


_INDICES = (ElementType.i32, ElementType.i64)


@backend.accelerates(Split, VariadicSplit)
def apart(op: Split | VariadicSplit, data: Value, axis: Value, *lengths: Value) -> Kernel | None:
    """Parts of known lengths, one of which may be what the others leave."""
    known, place = [value.known() for value in (axis, *lengths)], _place(data, axis)
    if place is None or any(array is None for array in known):
        return None

    def cuts(shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        parts = op.evaluate(nothing(shape), *known)  # type: ignore[arg-type]
        return _cuts(place, [part.shape[place] for part in (parts if isinstance(parts, tuple) else (parts,))])

    return unary(data.shape, cuts, _taking)


def _taking(cuts: Sequence[tuple[slice, ...]]) -> Callable[[Array], Any]:
    return itemgetter(*cuts)


@backend.accelerates(Concat)
def joined(op: Concat, *parts: Value) -> Kernel:
    """Without a look at anything but the axis."""
    join, axis = np.concatenate, op.axis
    return lambda *arrays: join(arrays, axis)


def _place(data: Value, axis: Value) -> int | None:
    """The axis counted from the start, if it is known."""
    known, rank = axis.ints(), data.shape.rank
    return None if not known or rank is None else known[0] % rank if rank else None


def _cuts(axis: int, lengths: Sequence[int]) -> list[tuple[slice, ...]]:
    """Where the parts of such lengths lie, one behind the other."""
    before = (slice(None),) * axis
    return [(*before, slice(a, b)) for a, b in pairwise(accumulate(lengths, initial=0))]
