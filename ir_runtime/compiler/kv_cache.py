"""The pass ``kv-cache``: append to key and value caches in place, and quantize them on request."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..backends import Fusion, Kernel, MatchContext, any_lengths
from ..backends.core.backend import CachedAttention, CacheKernels
from ..backends.core.replay import called_after, made_before
from ..executor.context import RUN, VARIABLES
from ..executor.guard import reserve
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.quantized_cache import QuantizedCache, unpacked_shape
from ..ir.shape import PartialShape
from ..ir.tensor import Array, Value
from ..ops.shape import ShapeOfBase
from .program import Options, Program

__all__ = [
    "APPEND",
    "Copy",
    "GrowingCache",
    "QuantizedCaches",
    "append_kernel",
    "append_to_caches",
    "cache_kernels",
    "find_quantized_caches",
    "growing_caches",
    "packed_cache_kernels",
    "variable_kernels",
]


def append_to_caches(program: Program, options: Options) -> None:
    """Let a Concat that extends a KV cache append in place.

    Before: no kernel is chosen, no pattern matched.
    After: ``kernels`` has those of the layers of caches; where caches are held in 8 bits, ``variables`` and ``fusions`` have
    those of the layers that read and assign them, and of attention.
    """
    if program.fold:
        program.kernels = cache_kernels(program.graph, _copy(options))
        _quantize_caches(program, options)


def _copy(options: Options) -> Copy | None:
    """Return the function that copies to caches in recorded runs."""
    return next((backend.copy() for backend in options.backends if backend.copy is not None), None)


def _quantize_caches(program: Program, options: Options) -> None:
    """Quantize caches between runs, if requested and supported by the first backend."""
    first = options.backends[0] if options.backends else None
    if options.precision.kv_cache == "f32" or first is None or first.quantized_cache is None:
        return
    if not any(growing_caches(program.graph)):
        return
    context = MatchContext(program.graph, program.visible_value)
    caches = find_quantized_caches(context, program.outputs, first.quantized_cache())
    program.kernels = {**program.kernels, **packed_cache_kernels(caches, _copy(options))}
    program.variables = variable_kernels(caches)
    name = f"{first.name}: cached_attention"
    program.fusions |= {
        id: Fusion(fusion.layers, fusion.reads, fusion.kernel, name)
        for id, fusion in caches.attention.items()
    }


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

        def rows_of(*arrays: Array) -> Any:
            current = VARIABLES.get(name)
            return current.packed if isinstance(current, QuantizedCache) else compute(*arrays)

        def read(*arrays: Array) -> Any:
            return made_before(rows_of(*arrays), rows_of, *arrays)

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
