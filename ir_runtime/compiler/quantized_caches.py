"""KV caches that variables hold in 8 bits between runs: those that only attention and ShapeOf read, and their kernels.

Their rows are packed (`ir.quantized_cache`). Packed rows have another shape and element type than the file says of the
ports, so every layer that reads one must have a kernel for them.

While a run starts a cache, attention reads the exact keys and values: only the variable gets the packed ones. The same
holds where a caller has set the variable. Later runs pack what is new, and append it.
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
"""What profiles call the kernels that append to packed caches."""

# Keys and values are [batch, heads, tokens, width].
_RANK, _TOKENS = 4, 2


@dataclass(frozen=True)
class QuantizedCaches:
    """Caches that are held in 8 bits, and the layers that read them.

    Args:
        kernels: pack rows, and compute attention.
        caches: the layers of each cache.
        measured: layers that read their shapes.
        attention: the kernels of attention to them, by the id of its last layer.
    """

    kernels: CacheKernels
    caches: tuple[GrowingCache, ...] = ()
    measured: tuple[Layer, ...] = ()
    attention: dict[int, CachedAttention] = field(default_factory=dict)


def find_quantized_caches(
    context: MatchContext, outputs: Collection[Port], kernels: CacheKernels
) -> QuantizedCaches:
    """Return the caches that can be held in 8 bits.

    Args:
        context: the graph, and the values of its ports.
        outputs: what is computed; nothing of that is packed.
        kernels: those of a backend.
    """
    graph = context.graph
    joined = {
        Port(cache.concat.id, 0): cache for cache in growing_caches(graph) if _suits(context, cache, outputs)
    }
    readers = [kernels.attention(context, layer) for layer in graph.of_type("ScaledDotProductAttention")]
    matches = [each for each in readers if each is not None and _is_closed(graph, each, outputs)]
    while True:
        matches = [each for each in matches if _sources(each) <= joined.keys()]
        inside = {layer.id for each in matches for layer in each.layers}
        kept = {port: cache for port, cache in joined.items() if _is_read_by(graph, cache, inside)}
        if len(kept) == len(joined):
            break
        joined = kept
    measured = tuple(layer for cache in joined.values() for layer in _measuring(graph, cache))
    return QuantizedCaches(
        kernels, tuple(joined.values()), measured, {each.layers[-1].id: each for each in matches}
    )


def _sources(attention: CachedAttention) -> set[Port]:
    """Return the ports of keys and values."""
    return {attention.reads[1], attention.reads[attention.value]}


def _is_closed(graph: Graph, attention: CachedAttention, outputs: Collection[Port]) -> bool:
    """Return whether nothing else reads what the layers before the last one compute."""
    inside = {layer.id for layer in attention.layers}
    made = [port for layer in attention.layers[:-1] for port in layer.output_ports]
    return not any(
        port in outputs or any(reader.layer not in inside for reader in graph.readers(port)) for port in made
    )


def _suits(context: MatchContext, cache: GrowingCache, outputs: Collection[Port]) -> bool:
    """Return whether a cache has the type and the layers of keys or values, and only its own layers use the variable."""
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
    """Return whether a Gather picks along the first axis, whole rows for a list of indices."""
    _, indices, axis = context.sources(gather)
    return (
        context.value(axis).ints() == (0,)
        and context.value(indices).shape.rank == 1
        and getattr(gather.op, "batch_dims", 0) == 0
    )


def _ports(cache: GrowingCache) -> Iterator[Port]:
    """Return the ports whose arrays may be packed."""
    for layer in cache:
        if layer is not None:
            yield Port(layer.id, 0)


def _is_read_by(graph: Graph, cache: GrowingCache, attention: Collection[int]) -> bool:
    """Return whether nothing but these layers of attention, the cache's own, and ShapeOf reads it."""
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


def packed_cache_kernels(found: QuantizedCaches, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return kernels of the layers that extend and measure caches, by layer id."""
    kernels: dict[int, Kernel] = {
        cache.concat.id: _append(cache, found.kernels.pack, copy) for cache in found.caches
    }
    return kernels | {layer.id: _measure(layer) for layer in found.measured}


def variable_kernels(found: QuantizedCaches) -> dict[int, Callable[[Kernel], Kernel]]:
    """Return what makes kernels that read and assign such a variable of those for f32, by layer id."""
    pack = found.kernels.pack
    reading = {cache.read.id: _reading(cache.read) for cache in found.caches}
    return reading | {cache.assign.id: _assigning(cache.assign, pack) for cache in found.caches}


def _reading(layer: Layer) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel of ReadValue that also returns packed rows."""
    name = layer.attributes["variable_id"]

    def reading(exact: Kernel) -> Kernel:
        compute = exact.whole

        def read(*arrays: Array) -> Any:
            held = VARIABLES.get(name)
            found: Any = held.packed if isinstance(held, QuantizedCache) else compute(*arrays)
            return made_before(found, read, *arrays)

        return Kernel(read, has_host_calls=True)

    return reading


def _assigning(layer: Layer, pack: Callable[[Array], Array]) -> Callable[[Kernel], Kernel]:
    """Return what makes a kernel of Assign that packs rows which are not packed yet."""
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
    """Return the kernel for Concat of a cache, which may be packed, and new f32 rows."""
    op, join = cache.concat.op, append_kernel(cache.axis, copy).run
    assert op is not None

    def append(held: Array, new: Array) -> Any:
        shape = unpacked_shape(held) if held.dtype == np.uint8 else held.shape
        axis = cache.axis % len(shape)
        if new.shape[:axis] != shape[:axis] or new.shape[axis + 1 :] != shape[axis + 1 :]:
            op.infer_types(*map(_unknown, (shape, new.shape)))  # which says what is wrong
        if not shape[axis]:
            return new
        more = new if held.dtype != np.uint8 else pack(new)
        if (run := RUN.get(None)) is not None:
            count = math.prod(held.shape) + math.prod(more.shape)
            run.limits.check("elements", count)
            reserve(run, count * held.itemsize)
        return join(held, more)

    return Kernel(append, name=APPEND, checks_inputs=True, has_host_calls=True)


def _unknown(shape: tuple[int, ...]) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(shape))


def _measure(layer: Layer) -> Kernel:
    """Return the kernel for ShapeOf of what may be packed rows."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def measure(data: Array) -> Any:
        packed = data.dtype == np.uint8
        return evaluate(np.broadcast_to(np.float32(0), unpacked_shape(data)) if packed else data)

    return Kernel(measure, checks_inputs=True)
