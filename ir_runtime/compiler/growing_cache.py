"""KV caches that grow in place: a variable is concatenated with new keys or values, and assigned again.

A model that generates text does so for every token, ``ReadValue → Gather → Concat → Assign``; joining again
would copy the whole cache each time. Here the result is in a buffer with room after it, and the next
run writes into that room. The part before it is never written again, so arrays that others hold stay
as they are; where another run has extended the buffer meanwhile, or beams are reordered, a copy is made.
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
    """The layers of a cache: what reads the variable, reorders its beams, joins it with what is new, and assigns it."""

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
    """Return the kernels of the layers of each such pattern, by layer id."""
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
    if first.type == "Gather" and (held := _feeding(graph, first, 0)) and _reads(held, assign):
        return GrowingCache(held, first, join, assign)
    return None


def _feeding(graph: Graph, layer: Layer, index: int) -> Layer | None:
    sources = graph.sources(layer)
    source = sources[index] if index < len(sources) else None
    return None if source is None else graph[source.layer]


def _reads(layer: Layer, assign: Layer) -> bool:
    name = assign.attributes.get("variable_id")
    return layer.type == "ReadValue" and layer.attributes.get("variable_id") == name


def _gather_kernel(layer: Layer) -> Kernel:
    """Return a kernel for a Gather that does not copy the cache if no beam is reordered."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def picked(data: Array, indices: Array, axis: Array) -> Array:
        if indices.ndim == 1 and indices.tolist() == list(range(data.shape[axis.item()])):
            return data
        found: Array = evaluate(data, indices, axis)
        return found

    def pick(data: Array, indices: Array, axis: Array) -> Array:
        return made_before(picked(data, indices, axis), picked, data, indices, axis)

    def result_shape(data: Array, indices: Array, axis: Array) -> tuple[int, ...] | None:
        if indices.ndim != 1 or axis.size != 1:
            return None
        at = axis.item() % data.ndim
        return (*data.shape[:at], len(indices), *data.shape[at + 1 :])

    return Kernel(pick, accepts=any_lengths, result_shape=result_shape, has_host_calls=True)


class _Buffer(np.ndarray):
    """An array with room along an axis behind what is used of it, from its beginning."""

    axis: int
    used: weakref.ref[Array]

    def claim(self, held: Array, axis: int) -> bool:
        """Return whether an array is what is used of it, and no other one extends that: then only the caller may."""
        used = vars(self).get("used")
        is_used = used is not None and used() is held and self.axis == axis
        return is_used and vars(self).pop("used", None) is used  # of several threads, one gets it


def _until(axis: int, stop: int, start: int = 0) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def append_kernel(axis: int, copy: Copy | None = None) -> Kernel:
    """Concat of two tensors, the first of which may be in a buffer with room for the second.

    Args:
        axis: along which they are joined.
        copy: copies the second one where a run is recorded.
    """

    def append(held: Array, new: Array) -> Array:
        at = axis % held.ndim
        length = held.shape[at]
        total = length + new.shape[at]
        longer = _longer(held, at, total)
        room = longer[_until(at, total, length)]
        if copy is not None and copy(new, room):
            return made_before(longer, partial(_longer, axis=at, length=total), held)
        room[...] = new
        return longer

    def result_shape(held: Array, new: Array) -> tuple[int, ...]:
        at = axis % held.ndim
        return (*held.shape[:at], held.shape[at] + new.shape[at], *held.shape[at + 1 :])

    return Kernel(append, accepts=partial(_joinable, axis), result_shape=result_shape, has_host_calls=True)


def _joinable(axis: int, held: Array, new: Array) -> bool:
    """Return whether two tensors differ along one axis only."""
    at = axis % held.ndim
    return held.shape[:at] == new.shape[:at] and held.shape[at + 1 :] == new.shape[at + 1 :]


def _longer(held: Array, axis: int, length: int) -> Array:
    """Return an array that begins with ``held`` and has room for what is new: in the same buffer, or in a new one."""
    shape = (*held.shape[:axis], length, *held.shape[axis + 1 :])
    if held.dtype.hasobject:
        longer = np.empty(shape, held.dtype)
        longer[_until(axis, held.shape[axis])] = held
        return longer
    buffer = held.base
    if not isinstance(buffer, _Buffer) or length > buffer.shape[axis] or not buffer.claim(held, axis):
        buffer = _Buffer((*shape[:axis], _capacity(length), *shape[axis + 1 :]), held.dtype)
        buffer.axis = axis
        buffer[_until(axis, held.shape[axis])] = held
    longer = np.ndarray(shape, held.dtype, buffer, 0, buffer.strides)
    buffer.used = weakref.ref(longer)
    return longer


def _capacity(length: int) -> int:
    """Return how many entries a buffer has room for, some of which are in use."""
    found = ROOM
    while found < length:
        found += found // 2
    return found
