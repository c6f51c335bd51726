"""Write a graph with operations that a release reads, where these compute exactly the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from itertools import count

from ...analysis.infer import Inferred
from ...codes import Code
from ...diagnostics import Diagnostic
from ...errors import ValidationError
from ...ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ...ir.operation import Operation
from ...ir.tensor import Value
from ...limits import current
from ...ops import Op
from ...reader.replacing import Rebuilt, Tensor, Unused
from ...transform.fold import evaluated, foldable
from ..features import LayerFeatures, features_of, known_of_body
from ..needs import Need, needs_of
from ..release import Release
from .place import Place, rules

__all__ = ["MODULES", "lower"]

_PASSES = 10
"""Maximum passes: replacements may be replaced in turn, but no chain of versions is longer."""

MODULES = ("composed", "elementwise", "former", "movement")
"""The modules that have the rules."""


def lower(
    graph: Graph, known: Inferred, release: Release, infer: Callable[[Graph], Inferred]
) -> tuple[Graph, Inferred]:
    """Return a graph that a release reads, and what is known of it.

    Args:
        graph: the layers.
        known: what was inferred of them.
        release: the release that is to read them.
        infer: infers a graph that was changed.

    Raises:
        ValidationError: if layers stand in the way; it says which, and why.
    """
    for name in MODULES:
        import_module(f"{__package__}.{name}")
    names = {layer.name for layer in graph.everywhere()}
    reasons: dict[str, str] = {}
    original = [need for need in needs_of(graph, known) if not need.is_met(release)]
    for _ in range(_PASSES):
        features = {id(found.layer): found for found in features_of(graph, known)}
        if (lowered := _Pass(release, names, reasons, features).run(graph, known)) is graph:
            break
        graph, known = lowered, infer(lowered)
    unmet = [need for need in needs_of(graph, known) if not need.is_met(release)]
    if unmet:
        raise ValidationError.of([_obstacle(release, n, reasons) for n in _as_in_the_model(unmet, original)])
    return graph, known


def _as_in_the_model(unmet: Sequence[Need], original: Sequence[Need]) -> Sequence[Need]:
    """Return needs that are not met as those of the layers that the model has, not of what replaced them."""
    left = {(need.layer, need.feature) for need in unmet}
    same = [need for need in original if (need.layer, need.feature) in left]
    replaced = {need.layer for need in unmet} - {need.layer for need in same}
    return [need for need in original if need in same or need.layer in replaced] or unmet


def _obstacle(release: Release, need: Need, reasons: Mapping[str, str]) -> Diagnostic:
    """Say that a layer stands in the way, and why."""
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
    """One pass over a graph and its bodies."""

    release: Release
    names: set[str]
    """Names of layers that are taken."""
    reasons: dict[str, str]
    """Why layers could not be replaced, by their names."""
    features: Mapping[int, LayerFeatures]
    """Features by the identity of layers."""
    rebuilt: dict[int, Rebuilt] = field(default_factory=dict)
    """What replaces layers of this graph, by their ids."""

    def run(self, graph: Graph, known: Inferred) -> Graph:
        """Return the graph with layers replaced; itself if none is."""
        unused = Unused(count(max(graph.layers, default=-1) + 1), self.names)
        layers: list[Layer] = []
        for layer in graph.layers.values():
            kept = self._with_bodies(layer, known)
            unmet = self._unmet(layer)
            if any("@" in name or name.startswith("opset:") for name in unmet):
                assert isinstance(layer.op, Op)
                layers.append(replace(kept, version=f"opset{layer.op.since}"))
            elif (unmet or self._reads_unmet(graph, layer)) and (
                new := self._new(graph, layer, known, unused)
            ):
                self.rebuilt[layer.id] = new
                layers += map(_renumbered, new.layers)
            else:
                layers.append(kept)
        if not self.rebuilt and all(map(_is_same, layers, graph.layers.values())):
            return graph
        return _without_unread(graph, Graph(layers, self._edges(graph), graph.severed))

    def _unmet(self, layer: Layer) -> Sequence[str]:
        return [name for name in self.features[id(layer)].own if not self.release.reads(name)]

    def _reads_unmet(self, graph: Graph, layer: Layer) -> bool:
        """Return whether a layer reads a constant of a type that the release does not have."""
        sources = (graph[source.layer] for source in graph.reads(layer))
        return any(source.type == "Constant" and self._unmet(source) for source in sources)

    def _with_bodies(self, layer: Layer, known: Inferred) -> Layer:
        """Return a layer whose bodies are lowered."""
        if layer.op is None or not (bodies := layer.bodies()):
            return layer
        changed: dict[str, Body] = {}
        for body in bodies:
            inner = replace(self, rebuilt={})
            lowered = inner.run(body.graph, known_of_body(known, layer, body))
            if lowered is not body.graph:
                changed[body.name] = replace(body, graph=lowered)
        return replace(layer, op=_with(layer.op, changed)) if changed else layer

    def _new(self, graph: Graph, layer: Layer, known: Inferred, unused: Unused) -> Rebuilt | None:
        """Return the replacement of a layer; ``None`` if no exact lowering exists."""
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
            outputs = self._folded(graph, layer, known, place)
        if outputs is None:
            return None
        rebuilt = place.finish([outputs] if isinstance(outputs, Tensor) else outputs)
        layers = [
            replace(new, rt_info=layer.rt_info) if new.id == layer.id else new for new in rebuilt.layers
        ]
        return rebuilt._replace(layers=layers)

    def _folded(self, graph: Graph, layer: Layer, known: Inferred, place: Place) -> tuple[Tensor, ...] | None:
        """Fold a layer that reads only constants."""
        left = current().memory
        if not foldable(graph, layer, known, left):
            return None
        elements = [known[port].element for port in layer.output_ports]
        arrays = evaluated(graph, layer, known, left)
        return tuple(map(place.constant, arrays, elements))

    def _edges(self, graph: Graph) -> list[Edge]:
        """Return the edges with those of the new layers in the place of those of the old ones."""
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


def _renumbered(layer: Layer) -> Layer:
    """Return a layer whose ports have ids of their own: it may have more inputs than the one before."""
    inputs = tuple(replace(port, id=number) for number, port in enumerate(layer.inputs))
    outputs = tuple(replace(port, id=number) for number, port in enumerate(layer.outputs, len(inputs)))
    return replace(layer, inputs=inputs, outputs=outputs)


def _without_unread(before: Graph, graph: Graph) -> Graph:
    """Return the graph without unused constants."""

    def is_left_over(layer: Layer) -> bool:
        port = Port(layer.id, 0)
        return layer.type == "Constant" and bool(before.readers(port)) and not graph.readers(port)

    kept = [layer for layer in graph.layers.values() if not is_left_over(layer)]
    return Graph(kept, graph.edges, graph.severed)
