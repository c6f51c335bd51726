"""Parts of a tensor as views, where they are known when compiling."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import cache, lru_cache
from itertools import accumulate, pairwise
from operator import methodcaller
from typing import Any

import numpy as np

from ....errors import IRError
from ....ir.element import ElementType
from ....ir.graph import Layer
from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase
from ....ops.movement.pad import Pad1, Pad12, PadBase
from ....ops.movement.slice import Slice
from ....ops.movement.split import Split, VariadicSplit
from ....ops.movement.strided_slice import StridedSlice
from ... import Fusion, Kernel, MatchContext, Unary
from .._backend import backend
from .views import SHARED, Index, Shape, bounds, nothing, taking, unary

__all__: list[str] = []

_INDICES = (ElementType.i32, ElementType.i64)
_REGIONS = (Slice, Split, StridedSlice, VariadicSplit)
# Elements of a tensor whose regions are joined in one step.
FEW = 1 << 14


@backend.accelerates(Gather, Gather1, Gather7)
def one(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """One slice along a known axis: what models take queries, keys and values apart with."""
    known, place = indices.known(), _place(data, axis)
    if known is None or known.ndim or place is None:
        return None
    index = int(known)
    where: Any = (*(slice(None),) * place, index, ...)
    if _inside(data, place, known):
        return Unary(taking(where), view=True)

    def kernel(x: Array, i: Array, axis: Array) -> Array:
        if -x.shape[place] <= index < x.shape[place]:
            one: Array = x[where]
            return one
        return op.evaluate(x, i, axis)

    return kernel


@backend.accelerates(Gather, Gather1, Gather7)
def several(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """Slices along a known axis, as NumPy takes them; where an index is outside, it is left to the operation."""
    known, place = indices.known(), _place(data, axis)
    if op.batch or place is None or not indices.shape.rank or indices.element not in _INDICES:
        return None
    if known is not None and _inside(data, place, known):
        return Unary(methodcaller("take", known.astype(np.intp), place))

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, place)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return kernel


def _inside(data: Value, axis: int, indices: Array) -> bool:
    """Whether indices lie on an axis for certain."""
    least = data.shape[axis].min
    return bool(((-least <= indices) & (indices < least)).all()) if data.shape[axis].is_static else False


@backend.accelerates(Pad1, Pad12)
def unpadded(op: PadBase, data: Value, begin: Value, end: Value, *fill: Value) -> Kernel | None:
    """Nothing is added: what exporters write who do not know whether windows fit."""
    before, after = begin.known(), end.known()
    if before is None or after is None or before.any() or after.any():
        return None
    return Unary(lambda x: x, view=True) if data.shape.rank == before.size == after.size else None


@backend.accelerates(Split, VariadicSplit)
def apart(
    op: Split | VariadicSplit, data: Value, *others: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Parts of known lengths, one of which may be what the others leave; where one alone is read, that one."""
    if (cuts := _cutting(op, data, others)) is None:
        return None
    count = op.num_splits if isinstance(op, Split) else others[-1].shape.static[0]
    read = [index for index in range(count) if index not in unread]
    if count == 1 or len(read) != 1:
        return unary(data.shape, cuts, lambda found: taking(*found))
    return unary(data.shape, lambda shape: cuts(shape)[read[0]], taking, only=(read[0], count))


def _cutting(
    op: Split | VariadicSplit, data: Value, others: Sequence[Value]
) -> Callable[[Shape], list[Index]] | None:
    """The regions of the parts in data of a shape, if what says so is known."""
    known, place = [value.known() for value in others], _place(data, others[0])
    if place is None or any(array is None for array in known):
        return None

    def cuts(shape: Shape) -> list[Index]:
        parts = op.evaluate(nothing(shape), *known)  # type: ignore[arg-type]
        return _cuts(place, [part.shape[place] for part in (parts if isinstance(parts, tuple) else (parts,))])

    return cuts


@backend.accelerates(Concat)
def joined(op: Concat, *parts: Value) -> Kernel:
    """Without a look at anything but the axis."""
    return _joining(op.axis)


@cache
def _joining(axis: int) -> Kernel:
    join = np.concatenate
    return lambda *arrays: join(arrays, axis)


@backend.pattern(Concat)
def regrouped(context: MatchContext, layer: Layer) -> Fusion | None:
    """Regions of one tensor that are joined, as in shuffles, rolls and space to depth: views, and one copy.

    Of few elements only, for which every call counts; others are left to kernels that have threads.
    """
    ports = context.sources(layer)
    makers = [context.graph[port.layer] for port in ports]
    if len(makers) < 2 or not all(isinstance(maker.op, _REGIONS) for maker in makers):
        return None
    (data, *more) = {context.sources(maker)[0] for maker in makers}
    shape = context.value(data).shape
    if more or not shape.is_static or math.prod(shape.static) > FEW:
        return None
    regions = [_region(context, maker, port.number) for maker, port in zip(makers, ports, strict=True)]
    known = [region for region in regions if region is not None]
    if len(known) < len(regions) or not isinstance(layer.op, Concat):
        return None
    inner = {maker.id: maker for maker in makers}
    reads = dict.fromkeys([data, *(port for maker in inner.values() for port in context.sources(maker))])
    return Fusion((*inner.values(), layer), tuple(reads), Unary(_regrouping(taking(*known), layer.op.axis)))


@lru_cache(SHARED)
def _regrouping(take: Callable[[Any], Any], axis: int) -> Callable[[Array], Array]:
    join = np.concatenate
    return lambda x: join(take(x), axis)


def _region(context: MatchContext, maker: Layer, output: int) -> Index | None:
    """What a layer takes of its first input for an output."""
    data, *others = map(context.value, context.sources(maker))
    op: Any = maker.op
    try:
        if isinstance(op, Slice | StridedSlice):
            found = bounds(op, others)
            return None if found is None else found(data.shape.static)
        cuts = _cutting(op, data, others)
        return None if cuts is None else cuts(data.shape.static)[output]
    except (IRError, ValueError, IndexError):
        return None  # what is wrong, the operation says when it runs


def _place(data: Value, axis: Value) -> int | None:
    """The axis counted from the start, if it is known."""
    known, rank = axis.ints(), data.shape.rank
    return None if not known or rank is None else known[0] % rank if rank else None


def _cuts(axis: int, lengths: Sequence[int]) -> list[tuple[slice, ...]]:
    """Where the parts of such lengths lie, one behind the other."""
    before = (slice(None),) * axis
    return [(*before, slice(a, b)) for a, b in pairwise(accumulate(lengths, initial=0))]
