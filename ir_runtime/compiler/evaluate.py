"""Evaluate layers with constant inputs, within the current limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..analysis.error_context import Expected, expected, with_context
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, Value, bytes_of, check_lengths, empty_results
from ..limits import current

__all__ = ["GROWTH", "SMALL", "TEMPORARY", "evaluated", "foldable", "is_pure", "size_of"]

GROWTH, SMALL = 16, 1 << 20
"""The most times that a folded constant may be larger than its inputs, or its size in bytes, before
recomputing is cheaper.
"""
TEMPORARY = 1 << 26
"""Bytes of a result that is not kept, as all that follows from it are constants that are not too large."""


def foldable(
    graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int, is_temporary: bool = False
) -> bool:
    """Return whether a layer has constant inputs, and outputs not much larger than these.

    Args:
        graph: its graph.
        layer: the layer.
        values: the `Value` of every output.
        left: the most bytes of its outputs.
        is_temporary: whether its outputs are temporary, and so may be larger.
    """
    sources = [s for s in graph.sources(layer) if s is not None]
    if not is_pure(layer, sources) or any(
        values[s].known() is None and graph[s.layer].type != "Constant" for s in sources
    ):
        return False
    made_of = sum(bytes_of(values[s].type) for s in sources)
    most = TEMPORARY if is_temporary else max(GROWTH * made_of, SMALL)
    return size_of(layer, values) <= min(most, left)


def is_pure(layer: Layer, sources: Collection[Port]) -> bool:
    """Return whether the results of a layer depend only on its inputs."""
    return layer.op is not None and layer.op.pure and bool(sources) and bool(layer.outputs)


def size_of(layer: Layer, values: Mapping[Port, Value]) -> int:
    """Return the minimum size of a layer's outputs in bytes."""
    return sum(bytes_of(values[port].type) for port in layer.output_ports)


def _contents(layer: Layer, value: Value) -> Value:
    """Return the contents of a constant, even if packed."""
    if layer.op is None or value.known() is not None:
        return value
    return Value(value.type, layer.op.evaluate())


@dataclass(frozen=True, slots=True)
class _Folding:
    """A layer evaluated at compile time, for error messages."""

    layer: Layer
    expected: Expected
    also: tuple[Layer, ...] = ()


def evaluated(graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int) -> Sequence[Array]:
    """Return the outputs of a layer with known inputs.

    Args:
        graph: its graph.
        layer: the layer.
        values: the `Value` of every output.
        left: the most bytes of its outputs.

    Raises:
        LimitError: if the outputs are larger.
        ExecutionError: if it fails.
    """
    reads = [s for s in graph.sources(layer) if s is not None]
    inputs = [_contents(graph[s.layer], values[s]) for s in reads]
    arrays = [array for v in inputs if (array := v.known()) is not None]
    inference = expected(graph, (layer,), reads, [v.element for v in inputs])
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
