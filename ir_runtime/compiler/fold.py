"""The pass ``fold``: constant folding at compile time."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from .._util import deadline
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Value, bytes_of
from ..limits import current
from .deferred_weights import defer_weights
from .evaluate import GROWTH, SMALL, TEMPORARY, evaluated, foldable, is_pure, size_of
from .program import Options, Program

__all__ = ["fold", "fold_constants"]


def fold(program: Program, options: Options) -> None:
    """Fold layers with constant inputs; weights stored as integers only on demand.

    Before: ``packed`` is final; weights that stay as they are stored are not computed.
    After: ``values`` have the contents of all that follows from constants, or how to compute them (`DeferredValue`).
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
    """Evaluate every pure layer with constant inputs; add results to ``values``.

    Contents used only by folded layers are dropped: for weights decompressed in several steps, only the file
    bytes and the final result are kept.
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


def _temporary(
    graph: Graph, layers: Sequence[Layer], values: Mapping[Port, Value], outputs: Collection[Port]
) -> set[int]:
    """Return folded layers whose results are too large to keep, though later folded results are not.

    An example are filters that sum products of a few numbers for each of many points.
    """
    made_of: dict[int, int] = {}
    """The size of the largest constant that a layer follows from, if it follows from constants alone."""
    for layer in layers:
        sources = [s for s in graph.sources(layer) if s is not None]
        made_of |= {s.layer: bytes_of(values[s].type) for s in sources if graph[s.layer].type == "Constant"}
        if all(values[port].known() is not None for port in layer.output_ports):
            made_of[layer.id] = size_of(layer, values)
        elif is_pure(layer, sources) and all(s.layer in made_of for s in sources):
            made_of[layer.id] = max(made_of[s.layer] for s in sources)
    needed, retained, temporary = {layer.id for layer in layers}, set[int](), set[int]()
    for layer in reversed(layers):
        if layer.id not in made_of:
            continue
        size, ports = size_of(layer, values), layer.output_ports
        if size <= max(GROWTH * made_of[layer.id], SMALL):
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
