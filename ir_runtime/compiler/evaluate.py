"""Evaluation of layers with constant inputs, within the current limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..analysis.error_context import Expected, describe_step, with_context
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value, bytes_of, check_lengths, empty_results
from ..limits import current

__all__ = ["GROWTH", "SMALL", "TEMPORARY", "evaluate_constant", "is_foldable", "is_pure", "size_of"]

GROWTH, SMALL = 16, 1 << 20
"""A folded constant may be ``GROWTH`` times larger than its inputs, or have ``SMALL`` bytes. Recomputing larger ones in
each run is cheaper.
"""
TEMPORARY = 1 << 26
"""Maximum bytes of an intermediate result that is only needed to fold smaller constants, and then dropped."""


def is_foldable(
    graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int, is_temporary: bool = False
) -> bool:
    """Return whether a layer is pure, with constant inputs and outputs that are not much larger than them.

    Args:
        graph: the graph of the layer.
        layer: the layer.
        values: the `Value` of every output in the graph.
        left: the maximum bytes of the layer's outputs.
        is_temporary: whether its outputs are dropped after folding, so that at most ``TEMPORARY`` bytes are allowed instead of a
            multiple of its inputs.
    """
    sources = [s for s in graph.sources(layer) if s is not None]
    if not is_pure(layer, sources) or any(
        values[s].known() is None and graph[s.layer].type != "Constant" for s in sources
    ):
        return False
    input_bytes = sum(bytes_of(values[s].type) for s in sources)
    most = TEMPORARY if is_temporary else max(GROWTH * input_bytes, SMALL)
    return size_of(layer, values) <= min(most, left)


def is_pure(layer: Layer, sources: Collection[Port]) -> bool:
    """Return whether a layer has inputs and outputs, and its results depend only on its inputs."""
    return layer.op is not None and layer.op.pure and bool(sources) and bool(layer.outputs)


def size_of(layer: Layer, values: Mapping[Port, Value]) -> int:
    """Return the total size of a layer's outputs in bytes, with dynamic lengths at their minimum."""
    return sum(bytes_of(values[port].type) for port in layer.output_ports)


def _contents(layer: Layer, value: Value) -> Value:
    """Return a value with its contents, which are evaluated if its layer is a Constant that is stored packed."""
    if layer.op is None or value.known() is not None:
        return value
    return Value(value.type, layer.op.evaluate())


@dataclass(frozen=True, slots=True)
class _Folding:
    """A layer evaluated at compile time, as `with_context` expects it."""

    layer: Layer
    expected: Expected
    also: tuple[Layer, ...] = ()


def evaluate_constant(graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int) -> Sequence[Array]:
    """Evaluate a layer with constant inputs; return its outputs.

    Args:
        graph: the graph of the layer.
        layer: the layer.
        values: the `Value` of every output in the graph.
        left: the maximum bytes of the layer's outputs.

    Raises:
        LimitError: if the outputs are larger.
        ExecutionError: if the layer fails on its inputs.
    """
    reads = [s for s in graph.sources(layer) if s is not None]
    inputs = [_contents(graph[s.layer], values[s]) for s in reads]
    arrays = [array for v in inputs if (array := v.known()) is not None]
    inference = describe_step(graph, (layer,), reads, [v.element for v in inputs])
    try:
        types = inference.types(arrays)
        for type in (*types, *(value.type for value in inputs)):
            check_lengths(type, current())
        if (empty := empty_results(types)) is not None:
            return empty
        if (need := sum(map(bytes_of, types))) > left:
            current().check("memory", current().memory - left + need)
        return evaluate_layer(layer, arrays, [value.element for value in inputs])
    except Exception as reason:
        raise with_context(_Folding(layer, inference), arrays, reason) from reason
