"""Evaluate layers whose inputs are constant, within the limits that hold here."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from ..analysis.error_context import with_context
from ..analysis.expected import Expected, expected
from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.sizes import bytes_of, check_lengths, empty_results
from ..ir.tensor import Array, Value
from ..limits import current

__all__ = ["GROWTH", "SMALL", "TEMPORARY", "evaluated", "foldable", "is_pure", "size_of"]

GROWTH, SMALL = 16, 1 << 20
"""A folded constant may be this many times larger than what it is computed from, or have this many bytes.

Beyond that it is cheaper to compute it again."""
TEMPORARY = 1 << 26
"""Bytes of a result that is not kept, as all that follows from it are constants that are not too large."""


def foldable(
    graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int, is_temporary: bool = False
) -> bool:
    """Return whether a layer reads constants alone, and its outputs are not much larger than they are.

    Args:
        graph: the one that it is in.
        layer: the layer.
        values: the `Value` of every output.
        left: bytes that its outputs may take.
        is_temporary: whether its outputs are not kept, and so may be larger.
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
    """Return whether results of a layer follow from its inputs."""
    return layer.op is not None and layer.op.pure and bool(sources) and bool(layer.outputs)


def size_of(layer: Layer, values: Mapping[Port, Value]) -> int:
    """Return the bytes of the outputs of a layer, at least."""
    return sum(bytes_of(values[port].type) for port in layer.output_ports)


def _contents(layer: Layer, value: Value) -> Value:
    """Return the contents of a constant, also of a packed one."""
    if layer.op is None or value.known() is not None:
        return value
    return Value(value.type, layer.op.evaluate())


@dataclass(frozen=True, slots=True)
class _Folding:
    """A layer that is evaluated when compiling, for when it fails."""

    layer: Layer
    expected: Expected
    also: tuple[Layer, ...] = ()


def evaluated(graph: Graph, layer: Layer, values: Mapping[Port, Value], left: int) -> Sequence[Array]:
    """Return the outputs of a layer whose inputs are known.

    Args:
        graph: the one that it is in.
        layer: what to evaluate.
        values: the `Value` of every output.
        left: bytes that its outputs may take.

    Raises:
        LimitError: if they take more.
        ExecutionError: if it fails.
    """
    reads = [s for s in graph.sources(layer) if s is not None]
    inputs = [_contents(graph[s.layer], values[s]) for s in reads]
    arrays = [array for v in inputs if (array := v.known()) is not None]
    known = expected(graph, (layer,), reads, [v.element for v in inputs])
    try:
        types = known.types(arrays)
        for type in (*types, *(value.type for value in inputs)):
            check_lengths(type, current())
        if (empty := empty_results(types)) is not None:
            return empty
        if (need := sum(map(bytes_of, types))) > left:
            current().check("memory", current().memory - left + need)
        return evaluate_layer(layer, arrays, [value.element for value in inputs])
    except Exception as reason:
        raise with_context(_Folding(layer, known), arrays, reason) from reason
