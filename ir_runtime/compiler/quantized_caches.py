"""KV caches stored in 8 bits between runs: those read only by attention and ShapeOf, and their kernels.

Rows are packed (`ir.quantized_cache`) and have another shape and element type than declared, so every layer
that reads them needs a kernel for them. In the run that starts a cache, attention reads the exact keys and
values, and only the variable gets packed ones; likewise after a caller sets the variable. Later runs pack new
rows and append them.

In the run that starts a cache, attention reads the exact keys and values, and only the variable gets packed ones; likewise after a caller sets the variable. Later runs pack new rows and append them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..backends import Kernel, MatchContext
from ..backends.core.host_calls import called_after, made_before
from ..backends.core.kv_cache import CachedAttention, CacheKernels
from ..executor.context import RUN, VARIABLES
from ..executor.guard import reserve
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.quantized_cache import QuantizedCache, unpacked_shape
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ..ops.shape.shape_of import ShapeOfBase
from .growing_cache import Copy, GrowingCache, append_kernel, growing_caches

__all__ = ["APPEND", "QuantizedCaches", "find_quantized_caches", "packed_cache_kernels", "variable_kernels"]

APPEND = "append_u8"
"""The name in profiles of kernels that append to packed caches."""

# Keys and values are [batch, heads, tokens, width].
_RANK, _TOKENS = 4, 2


@dataclass(frozen=True)
class QuantizedCaches:
    """Quantized caches, and the layers that read them.

    Args:
        kernels: the backend's kernels for packing and attention.
        caches: the layers of each cache.
        measured: the layers that read their shapes.
        attention: the kernels of attention, by the id of its last layer.
    """

    kernels: CacheKernels
    caches: tuple[GrowingCache, ...] = ()
    measured: tuple[Layer, ...] = ()
    attention: dict[int, CachedAttention] = field(default_factory=dict)


def find_quantized_caches(
    context: MatchContext, outputs: Collection[Port], kernels: CacheKernels
) -> QuantizedCaches:
    """Return the caches that can be quantized.

    Args:
        context: the graph, and the values of its ports.
        outputs: the computed ports, which are not packed.
        kernels: the kernels of a backend.
    """
    graph = context.graph
    joined = {
        Port(cache.concat.id, 0): cache for cache in growing_caches(graph) if _suits(context, cache, outputs)
    }
    readers = [kernels.attention(context, layer) for layer in graph.of_type("ScaledDotProductAttention")]
    matches = [match for match in readers if match is not None and _is_closed(graph, match, outputs)]
    while True:
        matches = [match for match in matches if _sources(match) <= joined.keys()]
        inside = {layer.id for match in matches for layer in match.layers}
        packable = {port: cache for port, cache in joined.items() if _is_read_by(graph, cache, inside)}
        if len(packable) == len(joined):
            break
        joined = packable
    measured = tuple(layer for cache in joined.values() for layer in _measuring(graph, cache))
    return QuantizedCaches(
        kernels, tuple(joined.values()), measured, {match.layers[-1].id: match for match in matches}
    )


def _sources(attention: CachedAttention) -> set[Port]:
    """Return the ports of keys and values."""
    return {attention.reads[1], attention.reads[attention.value]}


def _is_closed(graph: Graph, attention: CachedAttention, outputs: Collection[Port]) -> bool:
    """Return whether intermediate results of attention have no other consumers."""
    inside = {layer.id for layer in attention.layers}
    intermediate = [port for layer in attention.layers[:-1] for port in layer.output_ports]
    return not any(
        port in outputs or any(reader.layer not in inside for reader in graph.readers(port))
        for port in intermediate
    )


def _suits(context: MatchContext, cache: GrowingCache, outputs: Collection[Port]) -> bool:
    """Return whether a cache has a suitable type and structure, and its variable no other users."""
    graph, value = context.graph, context.value(Port(cache.concat.id, 0))
    shape = value.shape
    if value.element is not ElementType.f32 or shape.rank != _RANK or not shape[_RANK - 1].is_static:
        return False
    if cache.axis % _RANK != _TOKENS or graph.readers(Port(cache.assign.id, 0)):
        return False
    if cache.gather is not None and not _gathers_beams(context, cache.gather):
        return False
    name = cache.read.attributes.get("variable_id")
    users = [la for la in graph.of_type("ReadValue", "Assign") if la.attributes.get("variable_id") == name]
    return len(users) == 2 and not any(port in outputs for port in _ports(cache))


def _gathers_beams(context: MatchContext, gather: Layer) -> bool:
    """Return whether a Gather selects whole rows along the first axis."""
    _, indices, axis = context.sources(gather)
    return (
        context.value(axis).ints() == (0,)
        and context.value(indices).shape.rank == 1
        and getattr(gather.op, "batch_dims", 0) == 0
    )


def _ports(cache: GrowingCache) -> Iterator[Port]:
    """Yield the ports with possibly packed arrays."""
    for layer in cache:
        if layer is not None:
            yield Port(layer.id, 0)


def _is_read_by(graph: Graph, cache: GrowingCache, attention: Collection[int]) -> bool:
    """Return whether a cache is read only by attention, its own layers, and ShapeOf."""
    own = {layer.id for layer in cache if layer is not None}
    return all(
        reader.layer in own
        or isinstance(graph[reader.layer].op, ShapeOfBase)
        or (port.layer == cache.concat.id and reader.layer in attention)
        for port in _ports(cache)
        for reader in graph.readers(port)
    )


def _measuring(graph: Graph, cache: GrowingCache) -> Iterator[Layer]:
    """Return the layers that read its shape."""
    for port in _ports(cache):
        for reader in graph.readers(port):
            if isinstance(graph[reader.layer].op, ShapeOfBase):
                yield graph[reader.layer]


def packed_cache_kernels(caches: QuantizedCaches, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return the kernels of layers that extend and measure caches, by layer id."""
    kernels: dict[int, Kernel] = {
        cache.concat.id: _append(cache, caches.kernels.pack, copy) for cache in caches.caches
    }
    return kernels | {layer.id: _measure(layer) for layer in caches.measured}


def variable_kernels(caches: QuantizedCaches) -> dict[int, Callable[[Kernel], Kernel]]:
    """Return wrappers of the f32 kernels that read and assign cache variables, by layer id."""
    pack = caches.kernels.pack
    reading = {cache.read.id: _reading(cache.read) for cache in caches.caches}
    return reading | {cache.assign.id: _assigning(cache.assign, pack) for cache in caches.caches}


def _reading(layer: Layer) -> Callable[[Kernel], Kernel]:
    """Return a wrapper for ReadValue kernels that also returns packed rows."""
    name = layer.attributes["variable_id"]

    def reading(exact: Kernel) -> Kernel:
        compute = exact.whole

        def read(*arrays: Array) -> Any:
            current = VARIABLES.get(name)
            rows: Any = current.packed if isinstance(current, QuantizedCache) else compute(*arrays)
            return made_before(rows, read, *arrays)

        return Kernel(read, has_host_calls=True)

    return reading


def _assigning(layer: Layer, pack: Callable[[Array], Array]) -> Callable[[Kernel], Kernel]:
    """Return a wrapper for Assign kernels that packs unpacked rows."""
    name = layer.attributes["variable_id"]

    def hold(packed: Array) -> None:
        VARIABLES[name] = QuantizedCache(packed)

    def assign(rows: Array) -> Array:
        packed = rows if rows.dtype == np.uint8 else pack(rows)
        hold(packed)
        called_after(hold, packed)
        return rows

    return lambda exact: Kernel(assign, has_host_calls=True)


def _append(cache: GrowingCache, pack: Callable[[Array], Array], copy: Copy | None) -> Kernel:
    """Return the kernel for the Concat of a possibly packed cache and new f32 rows."""
    op, join = cache.concat.op, append_kernel(cache.axis, copy).run
    assert op is not None

    def append(cached: Array, new: Array) -> Any:
        shape = unpacked_shape(cached) if cached.dtype == np.uint8 else cached.shape
        axis = cache.axis % len(shape)
        if new.shape[:axis] != shape[:axis] or new.shape[axis + 1 :] != shape[axis + 1 :]:
            op.infer_types(*map(_unknown, (shape, new.shape)))  # reports the error
        if not shape[axis]:
            return new
        more = new if cached.dtype != np.uint8 else pack(new)
        if (run := RUN.get(None)) is not None:
            count = math.prod(cached.shape) + math.prod(more.shape)
            run.limits.check("elements", count)
            reserve(run, count * cached.itemsize)
        return join(cached, more)

    return Kernel(append, name=APPEND, checks_inputs=True, has_host_calls=True)


def _unknown(shape: tuple[int, ...]) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(shape))


def _measure(layer: Layer) -> Kernel:
    """Return the kernel for ShapeOf of possibly packed rows."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def measure(data: Array) -> Any:
        packed = data.dtype == np.uint8
        return evaluate(np.broadcast_to(np.float32(0), unpacked_shape(data)) if packed else data)

    return Kernel(measure, checks_inputs=True)
