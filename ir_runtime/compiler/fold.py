"""Constant folding: compute what follows from constants when a model is compiled."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._util import deadline
from ..analysis.error_context import with_context
from ..analysis.expected import Expected, expected
from ..ir.graph import Graph, Layer, Port
from ..ir.sizes import bytes_of, check_lengths, empty_results
from ..ir.tensor import Array, Value
from ..limits import current

__all__ = ["evaluated", "fold", "foldable"]

# A folded constant may be this much larger than what it is computed from, before it is cheaper to compute it again.
_GROWTH = 16
_SMALL = 1 << 20
# Bytes of a result that is not kept, as all that follows from it are constants that are not too large.
_TEMPORARY = 1 << 26


def fold(graph: Graph, layers: Sequence[Layer], values: dict[Port, Value], outputs: Collection[Port]) -> None:
    """Evaluate every pure layer whose inputs are all constants; the results are added to ``values``.

    Contents that only such layers read are forgotten: of a weight that is decompressed in several
    steps, its bytes in the file and the last result are all that stays.
    """
    needed, done = {layer.id for layer in layers}, set()
    left, temporary = current().memory, _temporary(graph, layers, values, outputs)
    for layer in layers:
        deadline.check(layer.where)
        ports = layer.output_ports
        sources = [s for s in graph.sources(layer) if s is not None]
        if any(values[p].known() is None for p in ports):
            if not foldable(graph, layer, values, left, layer.id in temporary):
                continue
            arrays = evaluated(graph, layer, values, left)
            left -= sum(array.nbytes for array in arrays)
            values |= {p: Value.constant(a, values[p].element) for p, a in zip(ports, arrays, strict=False)}
        done.add(layer.id)
        for source in sources:
            readers = {reader.layer for reader in graph.readers(source)} & needed
            if source.layer in done and source not in outputs and readers <= done:
                values[source] = Value(values[source].type)


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
    if not _is_pure(layer, sources) or any(
        values[s].known() is None and graph[s.layer].type != "Constant" for s in sources
    ):
        return False
    made_of = sum(bytes_of(values[s].type) for s in sources)
    most = _TEMPORARY if is_temporary else max(_GROWTH * made_of, _SMALL)
    return _size(layer, values) <= min(most, left)


def _is_pure(layer: Layer, sources: Collection[Port]) -> bool:
    """Return whether results of a layer follow from its inputs."""
    return layer.op is not None and layer.op.pure and bool(sources) and bool(layer.outputs)


def _size(layer: Layer, values: Mapping[Port, Value]) -> int:
    return sum(bytes_of(values[port].type) for port in layer.output_ports)


def _temporary(
    graph: Graph, layers: Sequence[Layer], values: Mapping[Port, Value], outputs: Collection[Port]
) -> set[int]:
    """Return layers whose results are too large to keep, where all that follows from them are constants that are not.

    Such are filters that sum products of a few numbers for each of many points.
    """
    made_of: dict[int, int] = {}
    """The size of the largest constant that a layer follows from, if it follows from constants alone."""
    for layer in layers:
        sources = [s for s in graph.sources(layer) if s is not None]
        made_of |= {s.layer: bytes_of(values[s].type) for s in sources if graph[s.layer].type == "Constant"}
        if all(values[port].known() is not None for port in layer.output_ports):
            made_of[layer.id] = _size(layer, values)
        elif _is_pure(layer, sources) and all(s.layer in made_of for s in sources):
            made_of[layer.id] = max(made_of[s.layer] for s in sources)
    needed, kept, found = {layer.id for layer in layers}, set[int](), set[int]()
    for layer in reversed(layers):
        if layer.id not in made_of:
            continue
        size, ports = _size(layer, values), layer.output_ports
        if size <= max(_GROWTH * made_of[layer.id], _SMALL):
            kept.add(layer.id)
            continue
        readers = {reader.layer for port in ports for reader in graph.readers(port)} & needed
        if size <= _TEMPORARY and readers <= kept | found and not any(port in outputs for port in ports):
            found.add(layer.id)
    return found


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
    assert layer.op is not None
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
        with np.errstate(all="ignore"):
            results = layer.op.evaluator([v.element for v in inputs])(*arrays)
    except Exception as reason:
        raise with_context(_Folding(layer, known), arrays, reason) from reason
    return results if isinstance(results, tuple) else (results,)
