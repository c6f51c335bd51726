"""The pass ``fold``: constant folding at compile time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import numpy as np

from .._util import deadline
from ..ir.deferred import DeferredValue
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value, bytes_of
from ..limits import current
from ..ops.arithmetic import Multiply, Subtract
from ..ops.convolution import ForwardConvolution
from ..ops.infrastructure import Constant
from ..ops.type import Convert
from .evaluate import GROWTH, SMALL, TEMPORARY, evaluate_constant, is_foldable, is_pure, size_of
from .program import Options, Program

__all__ = ["defer_weights", "fold", "fold_constants"]


def fold(program: Program, options: Options) -> None:
    """Evaluate layers with constant inputs; dequantize convolution weights only on demand.

    Before: ``packed`` is final; the layers that dequantize these weights are not evaluated.
    After: ``values`` have the contents of folded ports, or a `DeferredValue` that computes them on demand.
    """
    if not program.fold:
        return
    left = {layer.id for stored in program.packed.values() for layer in stored.layers}
    deferred = defer_weights(program.graph, program.layers, program.values, program.outputs)
    left |= {layer.id for layer in deferred}
    used = {port for layer in deferred for port in program.reads(layer)}
    layers = [layer for layer in program.layers if layer.id not in left]
    fold_constants(program.graph, layers, program.values, used.union(program.outputs))


def fold_constants(
    graph: Graph, layers: Sequence[Layer], values: dict[Port, Value], outputs: Collection[Port]
) -> None:
    """Evaluate every pure layer with constant inputs and results that are not too large, and add the results to ``values``.

    Contents that only folded layers read are dropped: for weights decompressed in several steps, only the file
    bytes and the final result are kept.

    Args:
        graph: the layers.
        layers: the layers to consider, in topological order.
        values: the `Value` of every output, changed in place.
        outputs: ports whose contents are kept.
    """
    needed, done = {layer.id for layer in layers}, set()
    left, temporary = current().memory, _find_temporary(graph, layers, values, outputs)
    for layer in layers:
        deadline.check(layer.where)
        ports = layer.output_ports
        sources = [s for s in graph.sources(layer) if s is not None]
        if any(values[p].known() is None for p in ports):
            if not is_foldable(graph, layer, values, left, layer.id in temporary):
                continue
            arrays = evaluate_constant(graph, layer, values, left)
            left -= sum(array.nbytes for array in arrays)
            values |= {p: Value.constant(a, values[p].element) for p, a in zip(ports, arrays, strict=False)}
        done.add(layer.id)
        for source in sources:
            readers = {reader.layer for reader in graph.readers(source)} & needed
            if source.layer in done and source not in outputs and readers <= done:
                values[source] = Value(values[source].type)


def _find_temporary(
    graph: Graph, layers: Sequence[Layer], values: Mapping[Port, Value], outputs: Collection[Port]
) -> set[int]:
    """Return the ids of layers to fold although their results are too large to keep.

    All their consumers are folded to smaller results. Examples are filters computed as sums of products of a few
    values for each of many points.
    """
    size_before: dict[int, int] = {}
    """The size in bytes of the largest constant that a layer depends on, for layers that depend on constants only."""
    for layer in layers:
        sources = [s for s in graph.sources(layer) if s is not None]
        size_before |= {
            s.layer: bytes_of(values[s].type) for s in sources if graph[s.layer].type == "Constant"
        }
        if all(values[port].known() is not None for port in layer.output_ports):
            size_before[layer.id] = size_of(layer, values)
        elif is_pure(layer, sources) and all(s.layer in size_before for s in sources):
            size_before[layer.id] = max(size_before[s.layer] for s in sources)
    needed, retained, temporary = {layer.id for layer in layers}, set[int](), set[int]()
    for layer in reversed(layers):
        if layer.id not in size_before:
            continue
        size, ports = size_of(layer, values), layer.output_ports
        if size <= max(GROWTH * size_before[layer.id], SMALL):
            retained.add(layer.id)
            continue
        readers = {reader.layer for port in ports for reader in graph.readers(port)} & needed
        if (
            size <= TEMPORARY
            and readers <= retained | temporary
            and not any(port in outputs for port in ports)
        ):
            temporary.add(layer.id)
    return temporary


def defer_weights(
    graph: Graph, layers: Iterable[Layer], values: dict[Port, Value], outputs: Collection[Port]
) -> list[Layer]:
    """Defer the dequantization of convolution weights; return the layers that dequantize them.

    Args:
        graph: the layers.
        layers: the needed layers.
        values: the `Value` of every output; the values of weights are replaced by a `DeferredValue`.
        outputs: the outputs of the program, which are not deferred.
    """
    deferred: list[Layer] = []
    for layer in layers:
        if not isinstance(layer.op, ForwardConvolution):
            continue
        port = graph.reads(layer)[1]
        chain = _dequantizing_layers(graph, port)
        ports = [Port(step.id, 0) for step in chain]
        is_unknown = all(p not in outputs and not values[p].is_known for p in ports)
        if chain and is_unknown:  # inference has evaluated small constants already
            values[port] = DeferredValue(values[port].type, chain, _evaluate_later(graph, chain, values))
            deferred += chain
    return deferred


def _dequantizing_layers(graph: Graph, port: Port) -> tuple[Layer, ...]:
    """Return the ``Convert``, optional ``Subtract`` and ``Multiply`` that dequantize constant 8-bit integers.

    The result is empty if other layers compute the port, or if an intermediate port has several consumers.
    """
    chain: list[Layer] = []
    for op in (Multiply, Subtract, Convert):
        layer = graph[port.layer]
        if isinstance(layer.op, op):
            if chain and len(graph.readers(port)) != 1:
                return ()
            chain.append(layer)
            port, *others = graph.reads(layer)
            if not all(_is_constant(graph, other) for other in others):
                return ()
        elif op is not Subtract:
            return ()
    constant = graph[port.layer].op
    codes = constant.value if isinstance(constant, Constant) else None
    is_quantized = isinstance(codes, np.ndarray) and codes.dtype in (np.int8, np.uint8)
    return tuple(reversed(chain)) if is_quantized else ()


def _is_constant(graph: Graph, port: Port) -> bool:
    """Return whether a port is the output of a Constant, or of a Convert that reads one."""
    layer = graph[port.layer]
    if isinstance(layer.op, Convert):
        layer = graph[graph.reads(layer)[0].layer]
    return isinstance(layer.op, Constant)


def _evaluate_later(
    graph: Graph, chain: Sequence[Layer], values: Mapping[Port, Value]
) -> Callable[[], Array]:
    """Return a function that evaluates a chain of layers, and returns the output of the last one."""
    before = {port: values[port] for layer in chain for port in (*graph.reads(layer), *layer.output_ports)}

    def compute() -> Array:
        results = dict(before)
        for layer in chain:
            (array,) = evaluate_constant(graph, layer, results, current().memory)
            results[Port(layer.id, 0)] = Value.constant(array, results[Port(layer.id, 0)].element)
        return array

    return compute
