"""The pass ``kv-cache``: append to key and value caches in place, and quantize them on request.

`ir.quantized_cache` is the format of quantized caches; `backends.native.kernels.quantized_cache` has kernels that read them.
"""

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
from ..backends.core.replay import call_after, compute_before
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
    After: ``kernels`` has the kernels of cache layers. If caches are kept in 8 bits, ``variables`` has the kernels that
    read and assign them, and ``fusions`` the attention that reads them.
    """
    if program.fold:
        program.kernels = cache_kernels(program.graph, _copy(options))
        _quantize_caches(program, options)


def _copy(options: Options) -> Copy | None:
    """Return a function that copies arrays in recorded runs, from the first backend that has one, else ``None``."""
    return next((backend.copy() for backend in options.backends if backend.copy is not None), None)


def _quantize_caches(program: Program, options: Options) -> None:
    """Keep caches quantized between runs, if this is requested and the first backend supports it."""
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


# Entries of the smallest buffer; each larger capacity is 1.5 times the one before. Capacities depend on the length alone,
# so recorded runs can be replayed for the same length.
ROOM = 64

Copy: TypeAlias = Callable[[Array, Array], bool]
"""Copies an array to another one by a call that is recorded; returns false if it cannot."""


class GrowingCache(NamedTuple):
    """The layers of a cache: the read of the variable, the beam reordering, the Concat, and the Assign."""

    read: Layer
    gather: Layer | None
    concat: Layer
    assign: Layer

    @property
    def axis(self) -> int:
        """The axis along which the cache grows."""
        assert self.concat.op is not None
        axis: int = self.concat.op.attributes()["axis"]
        return axis


def cache_kernels(graph: Graph, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return the kernels of the Concats and Gathers of caches, by layer id."""
    kernels: dict[int, Kernel] = {}
    for cache in growing_caches(graph):
        kernels[cache.concat.id] = append_kernel(cache.axis, copy)
        if cache.gather is not None:
            kernels[cache.gather.id] = _gather_kernel(cache.gather)
    return kernels


def growing_caches(graph: Graph) -> Iterator[GrowingCache]:
    """Yield the caches of a graph."""
    for assign in graph.of_type("Assign"):
        if (cache := _pattern(graph, assign)) is not None:
            yield cache


def _pattern(graph: Graph, assign: Layer) -> GrowingCache | None:
    join = _producer(graph, assign, 0)
    if join is None or join.op is None or join.type != "Concat" or len(join.inputs) != 2:
        return None
    first = _producer(graph, join, 0)
    if first is None:
        return None
    if _reads(first, assign):
        return GrowingCache(first, None, join, assign)
    if first.type == "Gather" and (gathered := _producer(graph, first, 0)) and _reads(gathered, assign):
        return GrowingCache(gathered, first, join, assign)
    return None


def _producer(graph: Graph, layer: Layer, index: int) -> Layer | None:
    sources = graph.sources(layer)
    source = sources[index] if index < len(sources) else None
    return None if source is None else graph[source.layer]


def _reads(layer: Layer, assign: Layer) -> bool:
    name = assign.attributes.get("variable_id")
    return layer.type == "ReadValue" and layer.attributes.get("variable_id") == name


def _gather_kernel(layer: Layer) -> Kernel:
    """Return a kernel for the Gather of a cache, which returns its data uncopied if the indices leave all beams in place."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def reorder(data: Array, indices: Array, axis: Array) -> Array:
        if indices.ndim == 1 and indices.tolist() == list(range(data.shape[axis.item()])):
            return data
        reordered: Array = evaluate(data, indices, axis)
        return reordered

    def pick(data: Array, indices: Array, axis: Array) -> Array:
        return compute_before(reorder(data, indices, axis), reorder, data, indices, axis)

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
        """Return whether an array is the used part, and the caller may extend it along ``axis``; true for one caller only."""
        used = vars(self).get("used")
        is_used = used is not None and used() is array and self.axis == axis
        return is_used and vars(self).pop("used", None) is used  # `pop` succeeds in one thread only


def _until(axis: int, stop: int, start: int = 0) -> tuple[slice, ...]:
    return (slice(None),) * axis + (slice(start, stop),)


def append_kernel(axis: int, copy: Copy | None = None) -> Kernel:
    """Return a kernel for a Concat of two tensors, which appends in place if the first has room for the second.

    Args:
        axis: the axis of the concatenation, which may be negative.
        copy: copies the second tensor in recorded runs; ``None`` if no backend can.
    """

    def append(cache: Array, new: Array) -> Array:
        at = axis % cache.ndim
        length = cache.shape[at]
        total = length + new.shape[at]
        longer = _longer(cache, at, total)
        room = longer[_until(at, total, length)]
        if copy is not None and copy(new, room):
            return compute_before(longer, partial(_longer, axis=at, length=total), cache)
        room[...] = new
        return longer

    def result_shape(cache: Array, new: Array) -> tuple[int, ...]:
        at = axis % cache.ndim
        return (*cache.shape[:at], cache.shape[at] + new.shape[at], *cache.shape[at + 1 :])

    return Kernel(append, accepts=partial(_joinable, axis), result_shape=result_shape, has_host_calls=True)


def _joinable(axis: int, cache: Array, new: Array) -> bool:
    """Return whether the shapes of two tensors are equal except along ``axis``."""
    at = axis % cache.ndim
    return cache.shape[:at] == new.shape[:at] and cache.shape[at + 1 :] == new.shape[at + 1 :]


def _longer(cache: Array, axis: int, length: int) -> Array:
    """Return an array of ``length`` elements along an axis that begins with ``cache``, in the buffer of that or a new one."""
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
    """Return the length of a buffer for ``length`` elements along the axis along which it grows."""
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
    """The caches to keep quantized, and the layers that read them.

    Args:
        kernels: the backend's kernels for packing and attention.
        caches: the layers of each cache.
        measured: the ShapeOf layers that read the caches.
        attention: each fused attention that reads caches, by the id of its last layer.
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
        outputs: the outputs of the program, which are never quantized.
        kernels: the kernels of a backend for quantized caches.
    """
    graph = context.graph
    joined = {
        Port(cache.concat.id, 0): cache
        for cache in growing_caches(graph)
        if _is_quantizable(context, cache, outputs)
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
    measured = tuple(layer for cache in joined.values() for layer in _shape_readers(graph, cache))
    return QuantizedCaches(
        kernels, tuple(joined.values()), measured, {match.layers[-1].id: match for match in matches}
    )


def _sources(attention: CachedAttention) -> set[Port]:
    """Return the ports of the keys and values of attention."""
    return {attention.reads[1], attention.reads[attention.value]}


def _is_closed(graph: Graph, attention: CachedAttention, outputs: Collection[Port]) -> bool:
    """Return whether intermediate results of attention have no other consumers."""
    inside = {layer.id for layer in attention.layers}
    intermediate = [port for layer in attention.layers[:-1] for port in layer.output_ports]
    return not any(
        port in outputs or any(reader.layer not in inside for reader in graph.readers(port))
        for port in intermediate
    )


def _is_quantizable(context: MatchContext, cache: GrowingCache, outputs: Collection[Port]) -> bool:
    """Return whether the type and structure of a cache allow quantizing it, and no other layer uses its variable."""
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
    """Return whether a Gather selects whole rows along the first axis, by indices of rank 1."""
    _, indices, axis = context.sources(gather)
    return (
        context.value(axis).ints() == (0,)
        and context.value(indices).shape.rank == 1
        and getattr(gather.op, "batch_dims", 0) == 0
    )


def _ports(cache: GrowingCache) -> Iterator[Port]:
    """Yield the outputs of the layers of a cache, whose arrays may be packed."""
    for layer in cache:
        if layer is not None:
            yield Port(layer.id, 0)


def _is_read_by(graph: Graph, cache: GrowingCache, attention: Collection[int]) -> bool:
    """Return whether only attention, ShapeOf, and the cache's own layers read it."""
    own = {layer.id for layer in cache if layer is not None}
    return all(
        reader.layer in own
        or isinstance(graph[reader.layer].op, ShapeOfBase)
        or (port.layer == cache.concat.id and reader.layer in attention)
        for port in _ports(cache)
        for reader in graph.readers(port)
    )


def _shape_readers(graph: Graph, cache: GrowingCache) -> Iterator[Layer]:
    """Yield the ShapeOf layers that read a cache."""
    for port in _ports(cache):
        for reader in graph.readers(port):
            if isinstance(graph[reader.layer].op, ShapeOfBase):
                yield graph[reader.layer]


def packed_cache_kernels(caches: QuantizedCaches, copy: Copy | None = None) -> dict[int, Kernel]:
    """Return the kernels of the Concats and ShapeOfs of quantized caches, by layer id."""
    kernels: dict[int, Kernel] = {
        cache.concat.id: _append_kernel(cache, caches.kernels.pack, copy) for cache in caches.caches
    }
    return kernels | {layer.id: _shape_kernel(layer) for layer in caches.measured}


def variable_kernels(caches: QuantizedCaches) -> dict[int, Callable[[Kernel], Kernel]]:
    """Return functions that adapt the kernels of ReadValue and Assign to quantized caches, by layer id."""
    pack = caches.kernels.pack
    reading = {cache.read.id: _adapt_read(cache.read) for cache in caches.caches}
    return reading | {cache.assign.id: _adapt_assign(cache.assign, pack) for cache in caches.caches}


def _adapt_read(layer: Layer) -> Callable[[Kernel], Kernel]:
    """Return a function that adapts a ReadValue kernel, so that it also returns packed rows."""
    name = layer.attributes["variable_id"]

    def reading(exact: Kernel) -> Kernel:
        compute = exact.whole

        def rows_of(*arrays: Array) -> Any:
            current = VARIABLES.get(name)
            return current.packed if isinstance(current, QuantizedCache) else compute(*arrays)

        def read(*arrays: Array) -> Any:
            return compute_before(rows_of(*arrays), rows_of, *arrays)

        return Kernel(read, has_host_calls=True)

    return reading


def _adapt_assign(layer: Layer, pack: Callable[[Array], Array]) -> Callable[[Kernel], Kernel]:
    """Return a function that replaces an Assign kernel by one that packs its rows."""
    name = layer.attributes["variable_id"]

    def hold(packed: Array) -> None:
        VARIABLES[name] = QuantizedCache(packed)

    def assign(rows: Array) -> Array:
        packed = rows if rows.dtype == np.uint8 else pack(rows)
        hold(packed)
        call_after(hold, packed)
        return rows

    return lambda exact: Kernel(assign, has_host_calls=True)


def _append_kernel(cache: GrowingCache, pack: Callable[[Array], Array], copy: Copy | None) -> Kernel:
    """Return a kernel for the Concat of a cache, which may be packed, and new f32 rows."""
    op, join = cache.concat.op, append_kernel(cache.axis, copy).run
    assert op is not None

    def append(cached: Array, new: Array) -> Any:
        shape = unpacked_shape(cached) if cached.dtype == np.uint8 else cached.shape
        axis = cache.axis % len(shape)
        if new.shape[:axis] != shape[:axis] or new.shape[axis + 1 :] != shape[axis + 1 :]:
            op.infer_types(*map(_unknown_value, (shape, new.shape)))  # reports the error
        if not shape[axis]:
            return new
        more = new if cached.dtype != np.uint8 else pack(new)
        if (run := RUN.get(None)) is not None:
            count = math.prod(cached.shape) + math.prod(more.shape)
            run.limits.check("elements", count)
            reserve(run, count * cached.itemsize)
        return join(cached, more)

    return Kernel(append, name=APPEND, checks_inputs=True, has_host_calls=True)


def _unknown_value(shape: tuple[int, ...]) -> Value:
    return Value.unknown(ElementType.f32, PartialShape(shape))


def _shape_kernel(layer: Layer) -> Kernel:
    """Return a kernel for the ShapeOf of a cache, which may be packed: it gives the unpacked shape."""
    assert layer.op is not None
    evaluate = layer.op.evaluate

    def measure(data: Array) -> Any:
        packed = data.dtype == np.uint8
        return evaluate(np.broadcast_to(np.float32(0), unpacked_shape(data)) if packed else data)

    return Kernel(measure, checks_inputs=True)
