"""Parts of a tensor as views, where they are known when compiling."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Any

from ...ir.tensor import Array, Value
from ...ops.movement.gather import Gather, Gather1, Gather7, Pick
from ...ops.movement.split import Split, VariadicSplit
from .. import Kernel
from ._backend import backend

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


@backend.accelerates(VariadicSplit)
def apart(op: VariadicSplit, data: Value, axis: Value, split_lengths: Value) -> Kernel | None:
    """Parts of known lengths, one of which may be what the others leave."""
    lengths, place = split_lengths.ints(), _place(data, axis)
    if lengths is None or place is None or len(lengths) < 2 or lengths.count(-1) > 1 or min(lengths) < -1:
        return None
    fixed = sum(n for n in lengths if n >= 0)

    def kernel(x: Array, axis: Array, split_lengths: Array) -> Array | tuple[Array, ...]:
        left = x.shape[place] - fixed
        if left < 0 or (left and -1 not in lengths):
            return op.evaluate(x, axis, split_lengths)  # says what is wrong
        return _cut(x, place, [left if n < 0 else n for n in lengths])

    return kernel


@backend.accelerates(Split)
def equally(op: Split, data: Value, axis: Value) -> Kernel | None:
    """Parts of one length."""
    place, count = _place(data, axis), op.num_splits
    if place is None or count < 2:
        return None

    def kernel(x: Array, axis: Array) -> Array | tuple[Array, ...]:
        length, rest = divmod(x.shape[place], count)
        return op.evaluate(x, axis) if rest else _cut(x, place, [length] * count)

    return kernel


def _place(data: Value, axis: Value) -> int | None:
    """The axis counted from the start, if it is known."""
    known, rank = axis.ints(), data.shape.rank
    return None if not known or rank is None else known[0] % rank if rank else None


def _cut(x: Array, axis: int, lengths: Sequence[int]) -> tuple[Array, ...]:
    before = (slice(None),) * axis
    return tuple(x[(*before, slice(a, b))] for a, b in pairwise(accumulate(lengths, initial=0)))
