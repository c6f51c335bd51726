"""Lower a graph to operations that a release reads, wherever they give exactly the same results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count

from ...analysis.infer import Inferred
from ...codes import Code
from ...compiler.evaluate import evaluated, foldable
from ...diagnostics import Diagnostic
from ...errors import ValidationError
from ...io.reader.replacing import Rebuilt, Tensor, Unused
from ...ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ...ir.operation import Operation
from ...ir.tensor import Value
from ...limits import current
from ...ops import Op
from ..features import LayerFeatures, features_of, known_of_body
from ..needs import Need, needs_of
from ..release import Release
from .place import Place, rules

__all__ = ["MODULES", "lower"]

_PASSES = 10
"""Maximum number of passes: replacements are lowered in turn, and no chain of versions is longer."""

MODULES = ("composed", "elementwise", "former", "movement")
"""Modules that register rules."""


def lower(
    graph: Graph, known: Inferred, release: Release, infer: Callable[[Graph], Inferred]
) -> tuple[Graph, Inferred]:
    """Return an equivalent graph that a release reads, and its inferred types.

    Args:
        graph: the layers.
        known: their inferred types.
        release: the release that is to read them.
        infer: infers the types of a changed graph.

    Raises:
        ValidationError: if there are layers that cannot be lowered; it names them, with the reasons.
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    names = {layer.name for layer in graph.everywhere()}
    reasons: dict[str, str] = {}
    original = [need for need in needs_of(graph, known) if not need.is_met(release)]
    for _ in range(_PASSES):
        features = {id(entry.layer): entry for entry in features_of(graph, known)}
        if (lowered := _Pass(release, names, reasons, features).run(graph, known)) is graph:
            break
        graph, known = lowered, infer(lowered)
    unmet = [need for need in needs_of(graph, known) if not need.is_met(release)]
    if unmet:
        raise ValidationError.of(
            [_obstacle(release, n, reasons) for n in _blame_original_layers(unmet, original)]
        )
    return graph, known


def _blame_original_layers(unmet: Sequence[Need], original: Sequence[Need]) -> Sequence[Need]:
    """Return unmet needs in terms of the original layers, not of their replacements."""
    left = {(need.layer, need.feature) for need in unmet}
    same = [need for need in original if (need.layer, need.feature) in left]
    replaced = {need.layer for need in unmet} - {need.layer for need in same}
    return [need for need in original if need in same or need.layer in replaced] or unmet


def _obstacle(release: Release, need: Need, reasons: Mapping[str, str]) -> Diagnostic:
    """Return the finding for a layer that cannot be lowered."""
    message = f"OpenVINO {release} does not read {need.text}"
    later = f"save it for {need.first} or later, or " if need.first else ""
    hint = f"{later}change the layer in the original model"
    if need.code is Code.RELEASE_SHAPE:
        hint = f"{later}give its inputs lengths with Model.reshape"
    elif need.code is Code.RELEASE_TYPE:
        message += "; only constants of it can be converted"
    else:
        why = reasons.get(need.layer or "", "no older operations compute exactly the same")
        message += f", and nothing can take its place: {why}"
    return Diagnostic(need.code, message, need.where, hint=hint)


@dataclass(slots=True)
class _Pass:
    """A pass over a graph and its bodies."""

    release: Release
    names: set[str]
    """Layer names already in use."""
    reasons: dict[str, str]
    """Reasons why layers could not be replaced, by layer name."""
    features: Mapping[int, LayerFeatures]
    """Features of layers, by `id` of the layer."""
    rebuilt: dict[int, Rebuilt] = field(default_factory=dict)
    """Replacements of the layers of this graph, by layer id."""

    def run(self, graph: Graph, known: Inferred) -> Graph:
        """Return the graph with layers replaced; the same object if none is."""
        unused = Unused(count(max(graph.layers, default=-1) + 1), self.names)
        layers: list[Layer] = []
        for layer in graph.layers.values():
            kept = self._with_bodies(layer, known)
            unmet = self._unmet(layer)
            if any("@" in name or name.startswith("opset:") for name in unmet):
                assert isinstance(layer.op, Op)
                layers.append(replace(kept, version=f"opset{layer.op.since}"))
            elif (unmet or self._reads_unmet(graph, layer)) and (
                new := self._replacement(graph, layer, known, unused)
            ):
                self.rebuilt[layer.id] = new
                layers += map(_renumber_ports, new.layers)
            else:
                layers.append(kept)
        if not self.rebuilt and all(map(_is_same, layers, graph.layers.values())):
            return graph
        return _drop_unused_constants(graph, Graph(layers, self._edges(graph), graph.severed))

    def _unmet(self, layer: Layer) -> Sequence[str]:
        return [name for name in self.features[id(layer)].own if not self.release.reads(name)]

    def _reads_unmet(self, graph: Graph, layer: Layer) -> bool:
        """Return whether a layer reads a constant of an element type unknown to the release."""
        sources = (graph[source.layer] for source in graph.reads(layer))
        return any(source.type == "Constant" and self._unmet(source) for source in sources)

    def _with_bodies(self, layer: Layer, known: Inferred) -> Layer:
        """Return the layer with its bodies lowered."""
        if layer.op is None or not (bodies := layer.bodies()):
            return layer
        changed: dict[str, Body] = {}
        for body in bodies:
            inner = replace(self, rebuilt={})
            lowered = inner.run(body.graph, known_of_body(known, layer, body))
            if lowered is not body.graph:
                changed[body.name] = replace(body, graph=lowered)
        return replace(layer, op=_with(layer.op, changed)) if changed else layer

    def _replacement(self, graph: Graph, layer: Layer, known: Inferred, unused: Unused) -> Rebuilt | None:
        """Return the replacement of a layer; ``None`` if there is no exact one."""
        sources = graph.sources(layer)
        if not isinstance(layer.op, Op) or not layer.outputs or not sources or None in sources:
            return None
        values = [known[source] for source in sources if source is not None]
        place = Place(
            layer,
            tuple(map(_tensor, sources, values, layer.inputs)),
            unused,
            tuple(values),
            tuple(bool(graph.readers(port)) for port in layer.output_ports),
            self.release,
        )
        rule = rules().get(layer.op.versioned_name())
        try:
            outputs = rule(place, layer.op) if rule else None
        except ValidationError as reason:
            self.reasons[layer.name] = reason.message
            outputs, place.drafts = None, []
        if outputs is None:
            outputs = self._fold(graph, layer, known, place)
        if outputs is None:
            return None
        rebuilt = place.finish([outputs] if isinstance(outputs, Tensor) else outputs)
        layers = [
            replace(new, rt_info=layer.rt_info) if new.id == layer.id else new for new in rebuilt.layers
        ]
        return rebuilt._replace(layers=layers)

    def _fold(self, graph: Graph, layer: Layer, known: Inferred, place: Place) -> tuple[Tensor, ...] | None:
        """Return the results of a layer that reads only constants; ``None`` for others."""
        left = current().memory
        if not foldable(graph, layer, known, left):
            return None
        elements = [known[port].element for port in layer.output_ports]
        arrays = evaluated(graph, layer, known, left)
        return tuple(map(place.constant, arrays, elements))

    def _edges(self, graph: Graph) -> list[Edge]:
        """Return the edges of the new graph."""
        moved = {
            Port(number, index): tensor.port
            for number, new in self.rebuilt.items()
            for index, tensor in enumerate(new.outputs)
            if tensor.port is not None
        }
        edges = [
            Edge(moved.get(source, source), target)
            for source, target in graph.edges
            if target.layer not in self.rebuilt
        ]
        for new in self.rebuilt.values():
            own = {layer.id for layer in new.layers}
            edges += [
                Edge(source if source.layer in own else moved.get(source, source), target)
                for source, target in new.edges
            ]
        return edges


def _tensor(source: Port | None, value: Value, spec: PortSpec) -> Tensor:
    return Tensor(source, value.element, spec)


def _is_same(one: Layer, other: Layer) -> bool:
    return one is other


def _with(op: Operation, bodies: Mapping[str, Body]) -> Operation:
    return op.replace(**bodies)


def _renumber_ports(layer: Layer) -> Layer:
    """Number the ports of a layer, which may have more inputs than the layer that it replaces."""
    inputs = tuple(replace(port, id=number) for number, port in enumerate(layer.inputs))
    outputs = tuple(replace(port, id=number) for number, port in enumerate(layer.outputs, len(inputs)))
    return replace(layer, inputs=inputs, outputs=outputs)


def _drop_unused_constants(before: Graph, graph: Graph) -> Graph:
    """Drop constants that only replaced layers read."""

    def is_unused(layer: Layer) -> bool:
        port = Port(layer.id, 0)
        return layer.type == "Constant" and bool(before.readers(port)) and not graph.readers(port)

    kept = [layer for layer in graph.layers.values() if not is_unused(layer)]
    return Graph(kept, graph.edges, graph.severed)
