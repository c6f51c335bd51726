"""KV caches that grow in place: a variable is concatenated with new keys or values, and assigned again.

A model that generates text does so for every token, ``ReadValue → Gather → Concat → Assign``; concatenating
would copy the whole cache each time. Here the result is in a buffer with spare room, and the next run appends
to it. The part before is never overwritten, so arrays held elsewhere stay valid; if another run has extended
the buffer meanwhile, or beams are reordered, a copy is made.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np

from ..backends import Kernel, any_lengths
from ..backends.core.host_calls import made_before
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array

__all__ = ["Copy", "GrowingCache", "append_kernel", "cache_kernels", "growing_caches"]

# Entries of the smallest buffer; others are half as large again. What follows from the length alone is the same in all runs
# that come to it, so that they can be replayed.
ROOM = 64

Copy: TypeAlias = Callable[[Array, Array], bool]
"""Copies an array to another one by a call that is recorded, or returns false."""


class GrowingCache(NamedTuple):
    """The layers of a cache: the read of the variable, the beam reordering, the Concat, and the Assign."""

    read: Layer
    gather: Layer | None
    concat: Layer
    assign: Layer

    @property
    def axis(self) -> int:
        """The axis along which it grows."""
        assert self.concat.op is not None
        axis: int = self.concat.op.attributes()["axis"]
        return axis


def cache_kernels(graph: Graph, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return the kernels of cache layers, by layer id."""
    kernels: dict[int, Kernel] = {}
    for cache in growing_caches(graph):
        kernels[cache.concat.id] = append_kernel(cache.axis, copy)
        if cache.gather is not None:
            kernels[cache.gather.id] = _gather_kernel(cache.gather)
    return kernels


def growing_caches(graph: Graph) -> Iterator[GrowingCache]:
    """Return the caches of a graph."""
    for assign in graph.of_type("Assign"):
        if (cache := _pattern(graph, assign)) is not None:
            yield cache


def _pattern(graph: Graph, assign: Layer) -> GrowingCache | None:
    join = _feeding(graph, assign, 0)
    if join is None or join.op is None or join.type != "Concat" or len(join.inputs) != 2:
        return None
    first = _feeding(graph, join, 0)
    if first is None:
        return None
    if _reads(first, assign):
        return GrowingCache(first, None, join, assign)
    if first.type == "Gather" and (gathered := _feeding(graph, first, 0)) and _reads(gathered, assign):
        return GrowingCache(gathered, first, join, assign)
    return None


def _feeding(graph: Graph, layer: Layer, index: int) -> Layer | None:
    sources = graph.sources(layer)
    source = sources[index] if index < len(sources) else None
    return None if source is None else graph[source.layer]


def _reads(layer: Layer, assign: Layer) -> bool:
    name = assign.attributes.get("variable_id")
    return layer.type == "ReadValue" and layer.attributes.get("variable_id") == name


def _gather_kernel(layer: Layer) -> Kernel:
    """Return a kernel for a Gather that copies the cache only if beams are reordered."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def picked(data: Array, indices: Array, axis: Array) -> Array:
        if indices.ndim == 1 and indices.tolist() == list(range(data.shape[axis.item()])):
            return data
        reordered: Array = evaluate(data, indices, axis)
        return reordered

    def pick(data: Array, indices: Array, axis: Array) -> Array:
        return made_before(picked(data, indices, axis), picked, data, indices, axis)

    def result_shape(data: Array, indices: Array, axis: Array) -> tuple[int, ...] | None:
        if indices.ndim != 1 or axis.size != 1:
            return None
        at = axis.item() % data.ndim
        return (*data.shape[:at], len(indices), *data.shape[at + 1 :])

    return Kernel(pick, accepts=any_lengths, result_shape=result_shape, has_host_calls=True)


class _Buffer(np.ndarray):
    """An array with spare room along an axis after its used part."""

    axis: int
    used: weakref.ref[Array]

    def claim(self, array: Array, axis: int) -> bool:
        """Return whether an array is the used part and may be extended; only one caller gets it."""
        used = vars(self).get("used")
        is_used = used is not None and used() is array and self.axis == axis
        return is_used and vars(self).pop("used", None) is used  # only one of several threads gets it


def _until(axis: int, stop: int, start: int = 0) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def append_kernel(axis: int, copy: Copy | None = None) -> Kernel:
    """Return a Concat of two tensors that appends in place if the first has room for the second.

    Args:
        axis: the axis of the concatenation.
        copy: copies the second one in recorded runs.
    """

    def append(cache: Array, new: Array) -> Array:
        at = axis % cache.ndim
        length = cache.shape[at]
        total = length + new.shape[at]
        longer = _longer(cache, at, total)
        room = longer[_until(at, total, length)]
        if copy is not None and copy(new, room):
            return made_before(longer, partial(_longer, axis=at, length=total), cache)
        room[...] = new
        return longer

    def result_shape(cache: Array, new: Array) -> tuple[int, ...]:
        at = axis % cache.ndim
        return (*cache.shape[:at], cache.shape[at] + new.shape[at], *cache.shape[at + 1 :])

    return Kernel(append, accepts=partial(_joinable, axis), result_shape=result_shape, has_host_calls=True)


def _joinable(axis: int, cache: Array, new: Array) -> bool:
    """Return whether two tensors differ along one axis only."""
    at = axis % cache.ndim
    return cache.shape[:at] == new.shape[:at] and cache.shape[at + 1 :] == new.shape[at + 1 :]


def _longer(cache: Array, axis: int, length: int) -> Array:
    """Return an array that begins with ``cache`` and has room for new entries, in the same or a new buffer."""
    shape = (*cache.shape[:axis], length, *cache.shape[axis + 1 :])
    if cache.dtype.hasobject:
        longer = np.empty(shape, cache.dtype)
        longer[_until(axis, cache.shape[axis])] = cache
        return longer
    buffer = cache.base
    if not isinstance(buffer, _Buffer) or length > buffer.shape[axis] or not buffer.claim(cache, axis):
        buffer = _Buffer((*shape[:axis], _capacity(length), *shape[axis + 1 :]), cache.dtype)
        buffer.axis = axis
        buffer[_until(axis, cache.shape[axis])] = cache
    longer = np.ndarray(shape, cache.dtype, buffer, 0, buffer.strides)
    buffer.used = weakref.ref(longer)
    return longer


def _capacity(length: int) -> int:
    """Return the capacity of a buffer for a number of entries."""
    capacity = ROOM
    while capacity < length:
        capacity += capacity // 2
    return capacity
