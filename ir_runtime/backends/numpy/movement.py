"""Parts of a tensor as views, where they are known when compiling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import Any

import numpy as np

from ...ir.tensor import Array, Value
from ...ops.movement.concat import Concat
from ...ops.movement.gather import Gather, Gather1, Gather7, Pick
from ...ops.movement.split import Split, VariadicSplit
from .. import Kernel
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
