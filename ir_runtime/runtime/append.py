"""Caches that grow: what a variable holds is joined with what is new, and assigned again.

A model that generates text does so for every token, ``ReadValue → Gather → Concat → Assign``; joining anew
would copy the whole cache each time. Here the result lies in a buffer with room behind it, and the next
run writes into that room. What lies before it is never written again, so arrays that others hold stay
as they are; where a buffer has gone another way meanwhile, or beams are reordered, a copy is made.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator

import numpy as np

from ..backends import Kernel
from ..ir.graph import Graph, Layer
from ..ir.tensor import Array

__all__ = ["appending", "growing"]

# Room for so many more entries at least, and for half as many as there are.
ROOM = 64


def growing(graph: Graph) -> dict[int, Kernel]:
    """Kernels for the layers of each such pattern, by layer id."""
    kernels: dict[int, Kernel] = {}
    for assign in graph.of_type("Assign"):
        for layers in _pattern(graph, assign):
            kernels |= layers
    return kernels


def _pattern(graph: Graph, assign: Layer) -> Iterator[dict[int, Kernel]]:
    join = _feeding(graph, assign, 0)
    if join is None or join.op is None or join.type != "Concat" or len(join.inputs) != 2:
        return
    first = _feeding(graph, join, 0)
    if first is None:
        return
    axis = join.op.attributes()["axis"]
    if _reads(first, assign):
        yield {join.id: appending(axis)}
    elif first.type == "Gather" and (held := _feeding(graph, first, 0)) and _reads(held, assign):
        yield {join.id: appending(axis), first.id: _picking(first)}


def _feeding(graph: Graph, layer: Layer, index: int) -> Layer | None:
    sources = graph.sources(layer)
    source = sources[index] if index < len(sources) else None
    return None if source is None else graph[source.layer]


def _reads(layer: Layer, assign: Layer) -> bool:
    name = assign.attributes.get("variable_id")
    return layer.type == "ReadValue" and layer.attributes.get("variable_id") == name


def _picking(layer: Layer) -> Kernel:
    """Gather, which leaves the cache as it is where every beam goes on with itself."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def pick(data: Array, indices: Array, axis: Array) -> Array:
        stays = indices.ndim == 1 and len(indices) == data.shape[int(axis.item())]
        if stays and np.array_equal(indices, np.arange(len(indices))):
            return data
        return evaluate(data, indices, axis)  # type: ignore[no-any-return]

    return pick


class _Buffer:
    """An array with room behind what is used of it along an axis."""

    def __init__(self, whole: Array, axis: int, used: int) -> None:
        self.whole = weakref.ref(whole)
        self.axis, self.used = axis, used

    def holds(self, held: Array, more: int) -> bool:
        """Whether ``held`` is all that is used, and there is room for ``more`` entries behind it."""
        whole = self.whole()
        return (
            whole is not None
            and held.shape[self.axis] == self.used
            and held.strides == whole.strides
            and held.__array_interface__["data"] == whole.__array_interface__["data"]
            and held.dtype == whole.dtype
            and whole.shape[self.axis] >= self.used + more
        )


_buffers: dict[int, _Buffer] = {}
_lock = threading.Lock()


def appending(axis: int) -> Kernel:
    """Concat of two tensors, the first of which may lie in a buffer with room for the second."""

    def append(held: Array, new: Array) -> Array:
        at = axis % held.ndim
        length = held.shape[at] + new.shape[at]
        before, after = _span(at, 0, length), _span(at, held.shape[at], length)
        with _lock:
            whole = held.base
            buffer = _buffers.get(id(whole))
            free = buffer is not None and buffer.axis == at and buffer.holds(held, new.shape[at])
            if buffer is not None and free:
                buffer.used = length
        if not free or whole is None:
            whole = _allocate(held, at, length)
            whole[_span(at, 0, held.shape[at])] = held
        whole[after] = new
        return whole[before]

    return append


def _span(axis: int, start: int, stop: int) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def _allocate(held: Array, axis: int, length: int) -> Array:
    shape = list(held.shape)
    shape[axis] = length + max(length // 2, ROOM)
    whole = np.empty(shape, held.dtype)
    key = id(whole)
    _buffers[key] = _Buffer(whole, axis, length)
    weakref.finalize(whole, _buffers.pop, key, None).atexit = False
    return whole
