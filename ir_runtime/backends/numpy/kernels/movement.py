"""Gather, Split and Concat; parts that are known at compile time are views."""

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
from ....ops.movement.extend import Concat
from ....ops.movement.gather import Gather, Gather1, Gather7, GatherBase, GatherND5, GatherND8, GatherNDBase
from ....ops.movement.slice import Slice, Split, StridedSlice, VariadicSplit
from ... import Fusion, Kernel, MatchContext
from .._backend import backend
from .views import MAX_SHARED, Index, Shape, region_bounds, shape_only, take_regions, unary_kernel

__all__: list[str] = []

_INDICES = (ElementType.i32, ElementType.i64, ElementType.u32)
_REGION_OPS = (Slice, Split, StridedSlice, VariadicSplit)
# The most elements of a tensor whose regions are concatenated by one kernel.
MAX_ELEMENTS = 1 << 14


@backend.accelerates(Gather, Gather1, Gather7)
def gather_one(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """Return a kernel for a scalar constant index along a known axis, as models separate queries, keys and values, else ``None``."""
    known, axis_index = indices.known(), _axis(data, axis)
    if known is None or known.ndim or axis_index is None:
        return None
    index = int(known)
    region_index: Any = (*(slice(None),) * axis_index, index, ...)
    if _in_range(data, axis_index, known):
        return Kernel.unary(take_regions(region_index), view=True)

    def kernel(x: Array, i: Array, axis: Array) -> Array:
        if -x.shape[axis_index] <= index < x.shape[axis_index]:
            selected: Array = x[region_index]
            return selected
        return op.evaluate(x, i, axis)

    return Kernel(kernel)


@backend.accelerates(Gather, Gather1, Gather7)
def gather(op: GatherBase, data: Value, indices: Value, axis: Value) -> Kernel | None:
    """Return a kernel for an array of indices along a known axis; the reference handles indices out of range."""
    known, axis_index = indices.known(), _axis(data, axis)
    if op.batch or axis_index is None or not indices.shape.rank or indices.element not in _INDICES:
        return None
    if known is not None and _in_range(data, axis_index, known):
        return Kernel.unary(methodcaller("take", known.astype(np.intp), axis_index))

    def kernel(x: Array, indices: Array, axis: Array) -> Array:
        try:
            return x.take(indices, axis_index)
        except IndexError:
            return op.evaluate(x, indices, axis)

    return Kernel(kernel)


@backend.accelerates(GatherND5, GatherND8)
def gather_nd(op: GatherNDBase, data: Value, indices: Value) -> Kernel | None:
    """Return a kernel for index tuples without batch axes; the reference handles empty tuples and indices out of range."""
    if op.batch_dims or not indices.shape.rank or indices.element not in _INDICES:
        return None

    def kernel(x: Array, indices: Array) -> Array:
        if not indices.shape[-1]:
            return op.evaluate(x, indices)
        try:
            if indices.shape[-1] == 1:
                return x.take(indices[..., 0], 0)
            return np.asarray(x[tuple(np.moveaxis(indices, -1, 0))])
        except IndexError:
            return op.evaluate(x, indices)

    return Kernel(kernel)


def _in_range(data: Value, axis: int, indices: Array) -> bool:
    """Return whether indices are known to be in the range of an axis."""
    length = data.shape[axis].min
    return bool(((-length <= indices) & (indices < length)).all()) if data.shape[axis].is_static else False


@backend.accelerates(Split, VariadicSplit)
def split(
    op: Split | VariadicSplit, data: Value, *others: Value, unread: Collection[int] = ()
) -> Kernel | None:
    """Return a kernel for parts of known lengths, including a remainder; ``None`` if the axis or a length is unknown.

    If only one part has consumers, the kernel returns that alone.
    """
    if (part_indices := _split_indices(op, data, others)) is None:
        return None
    count = op.num_splits if isinstance(op, Split) else others[-1].shape.static[0]
    read = [index for index in range(count) if index not in unread]
    if count == 1 or len(read) != 1:
        return unary_kernel(data.shape, part_indices, lambda regions: take_regions(*regions))
    return unary_kernel(
        data.shape, lambda shape: part_indices(shape)[read[0]], take_regions, only=(read[0], count)
    )


def _split_indices(
    op: Split | VariadicSplit, data: Value, others: Sequence[Value]
) -> Callable[[Shape], list[Index]] | None:
    """Return a function from the shape of the data to the index of each part, or ``None`` if axis or lengths are unknown."""
    known, axis_index = [value.known() for value in others], _axis(data, others[0])
    if axis_index is None or any(array is None for array in known):
        return None

    def part_indices(shape: Shape) -> list[Index]:
        parts = op.evaluate(shape_only(shape), *known)  # type: ignore[arg-type]
        return _slices(
            axis_index, [part.shape[axis_index] for part in (parts if isinstance(parts, tuple) else (parts,))]
        )

    return part_indices


@backend.accelerates(Concat)
def concat(op: Concat, *parts: Value) -> Kernel:
    """Return a kernel that concatenates all inputs."""
    return _concatenate(op.axis)


@cache
def _concatenate(axis: int) -> Kernel:
    concatenate = np.concatenate

    def kernel(*arrays: Array) -> Array:
        return concatenate(arrays, axis)

    def result_shape(*arrays: Array) -> Shape | None:
        """Return the shape of the result, or ``None`` if ranks differ; NumPy checks the other lengths."""
        lengths = list(arrays[0].shape)
        if any(array.ndim != len(lengths) for array in arrays) or not -len(lengths) <= axis < len(lengths):
            return None
        lengths[axis] = sum([array.shape[axis] for array in arrays])
        return tuple(lengths)

    return Kernel(kernel, result_shape=result_shape)


@backend.pattern(Concat)
def concat_of_regions(context: MatchContext, layer: Layer) -> Fusion | None:
    """Match concatenated regions of the same tensor, as in channel shuffles, rolls and space to depth, else return ``None``.

    The kernel is views and one copy. It is for small static tensors, where calls dominate; larger ones are left to multithreaded
    kernels.
    """
    ports = context.sources(layer)
    producers = [context.graph[port.layer] for port in ports]
    if len(producers) < 2 or not all(isinstance(producer.op, _REGION_OPS) for producer in producers):
        return None
    (data, *more) = {context.sources(producer)[0] for producer in producers}
    shape = context.value(data).shape
    if more or not shape.is_static or math.prod(shape.static) > MAX_ELEMENTS:
        return None
    regions = [
        _region(context, producer, port.number) for producer, port in zip(producers, ports, strict=True)
    ]
    known = [region for region in regions if region is not None]
    if len(known) < len(regions) or not isinstance(layer.op, Concat):
        return None
    inner = {producer.id: producer for producer in producers}
    reads = dict.fromkeys(
        [data, *(port for producer in inner.values() for port in context.sources(producer))]
    )
    return Fusion(
        (*inner.values(), layer),
        tuple(reads),
        Kernel.unary(_concat_regions(take_regions(*known), layer.op.axis)),
    )


@lru_cache(MAX_SHARED)
def _concat_regions(take: Callable[[Any], Any], axis: int) -> Callable[[Array], Array]:
    concatenate = np.concatenate
    return lambda x: concatenate(take(x), axis)


def _region(context: MatchContext, producer: Layer, output: int) -> Index | None:
    """Return the region of a layer's first input that is its output of index ``output``.

    Returns ``None`` if the region is unknown, or the layer raises an error in every run.
    """
    data, *others = map(context.value, context.sources(producer))
    op: Any = producer.op
    try:
        if isinstance(op, Slice | StridedSlice):
            index = region_bounds(op, others)
            return None if index is None else index(data.shape.static)
        part_indices = _split_indices(op, data, others)
        return None if part_indices is None else part_indices(data.shape.static)[output]
    except (IRError, ValueError, IndexError):
        return None  # the operation raises the error when it runs


def _axis(data: Value, axis: Value) -> int | None:
    """Return the axis, counted from the start, or ``None`` if it is unknown."""
    known, rank = axis.ints(), data.shape.rank
    return None if not known or rank is None else known[0] % rank if rank else None


def _slices(axis: int, lengths: Sequence[int]) -> list[tuple[slice, ...]]:
    """Return the indices of consecutive parts of the given lengths along an axis."""
    before = (slice(None),) * axis
    return [(*before, slice(a, b)) for a, b in pairwise(accumulate(lengths, initial=0))]
