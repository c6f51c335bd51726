"""Which KV caches can be held in 8 bits: those that nothing but attention and measurements of shapes reads.

Their rows are packed (`ir.quantized_cache`). Packed rows have another shape and element type than the file says of the
ports, so every layer that reads one must have a kernel for them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ..backends import MatchContext
from ..backends.core.kv_cache import CachedAttention, CacheKernels
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ops.shape.shape_of import ShapeOfBase
from .kv_cache import GrowingCache, growing_caches

__all__ = ["QuantizedCaches", "find_quantized_caches"]

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
