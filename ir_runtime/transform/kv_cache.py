"""KV caches that grow in place: a variable is concatenated with new keys or values, and assigned again.

A model that generates text does so for every token, ``ReadValue → Gather → Concat → Assign``; joining again
would copy the whole cache each time. Here the result is in a buffer with room behind it, and the next
run writes into that room. The part before it is never written again, so arrays that others hold stay
as they are; where a buffer has gone another way meanwhile, or beams are reordered, a copy is made.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from ..backends import Kernel, accepting, any_lengths
from ..forks import in_child
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array

__all__ = ["GrowingCache", "append_kernel", "cache_kernels", "growing_caches"]

# Room for at least this number of further entries, and for half as many as there are.
ROOM = 64


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


def cache_kernels(graph: Graph) -> dict[int, Kernel]:
    """Return the kernels of the layers of each such pattern, by layer id."""
    kernels: dict[int, Kernel] = {}
    for cache in growing_caches(graph):
        kernels[cache.concat.id] = append_kernel(cache.axis)
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

    def pick(data: Array, indices: Array, axis: Array) -> Array:
        if indices.ndim == 1 and indices.tolist() == list(range(data.shape[axis.item()])):
            return data
        picked: Array = evaluate(data, indices, axis)
        return picked

    def result_shape(data: Array, indices: Array, axis: Array) -> tuple[int, ...] | None:
        if indices.ndim != 1 or axis.size != 1:
            return None
        at = axis.item() % data.ndim
        return (*data.shape[:at], len(indices), *data.shape[at + 1 :])

    vars(pick)["result_shape"] = result_shape
    return accepting(pick, any_lengths)


class _Buffer:
    """An array with room behind what is used of it along an axis."""

    def __init__(self, axis: int, used: Array) -> None:
        self._axis, self._used = axis, weakref.ref(used)

    def more(self, whole: Array, held: Array, axis: int, length: int) -> Array | None:
        """Return the part of ``whole`` behind ``held``, to write to, if it is large enough and no other array extends ``held``."""
        if self._used() is not held or axis != self._axis or length > whole.shape[axis]:
            return None
        longer = whole[_until(axis, length)]
        self._used = weakref.ref(longer)
        return longer


def _until(axis: int, stop: int, start: int = 0) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


_buffers: dict[int, _Buffer] = {}
_lock = threading.Lock()


@in_child
def _renew() -> None:
    global _lock
    _lock = threading.Lock()


def append_kernel(axis: int) -> Kernel:
    """Concat of two tensors, the first of which may be in a buffer with room for the second."""

    def append(held: Array, new: Array) -> Array:
        at = axis % held.ndim
        length, whole = held.shape[at], held.base
        total, longer = length + new.shape[at], None
        if whole is not None and (buffer := _buffers.get(id(whole))) is not None:
            with _lock:
                longer = buffer.more(whole, held, at, total)
        if longer is None:
            longer = _allocate(held, at, total)
            longer[_until(at, length)] = held
        longer[_until(at, total, length)] = new
        return longer

    def result_shape(held: Array, new: Array) -> tuple[int, ...]:
        at = axis % held.ndim
        return (*held.shape[:at], held.shape[at] + new.shape[at], *held.shape[at + 1 :])

    vars(append)["result_shape"] = result_shape
    return accepting(append, partial(_joinable, axis))


def _joinable(axis: int, held: Array, new: Array) -> bool:
    """Return whether two tensors differ along one axis only."""
    at = axis % held.ndim
    return held.shape[:at] == new.shape[:at] and held.shape[at + 1 :] == new.shape[at + 1 :]


def _allocate(held: Array, axis: int, length: int) -> Array:
    """Return the part of a new buffer that is in use: room for ``length`` entries."""
    shape = list(held.shape)
    shape[axis] = length + max(length // 2, ROOM)
    whole = np.empty(shape, held.dtype)
    used = whole[_until(axis, length)]
    key = id(whole)
    _buffers[key] = _Buffer(axis, used)
    weakref.finalize(whole, _buffers.pop, key, None).atexit = False
    return used
