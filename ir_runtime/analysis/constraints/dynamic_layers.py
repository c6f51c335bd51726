"""The part of a graph that depends on the dynamic dims of its inputs."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from ...ir.dimension import Dimension, Symbol
from ...ir.graph import Graph, Layer, Port
from ...ir.tensor import TensorType, Value
from ...limits import current
from .oracle import Dim

__all__ = ["DynamicLayers", "Step", "open_dims"]

# More floating-point numbers than this are weights: no shape depends on what they are.
MAX_FOLLOWED = 64


class Step(NamedTuple):
    """A layer to infer."""

    layer: Layer
    op: int
    """A number that layers with equal operations and attributes share."""
    sources: tuple[Port | None, ...]
    ports: tuple[Port, ...]


class DynamicLayers:
    """The layers downstream of dynamic dims, in topological order.

    Args:
        graph: the layers.
        known: the values inferred with dynamic lengths.
        parameters: the types of the Parameters, by id.
    """

    def __init__(
        self, graph: Graph, known: Mapping[Port, Value], parameters: Mapping[int, TensorType]
    ) -> None:
        self.graph, self.parameters = graph, parameters
        self.dims = open_dims(graph, parameters)
        self.symbols = {dim: Symbol(f"{graph[dim.layer].name}.{dim.axis}") for dim in self.dims}
        """A symbol for each dynamic dim."""
        inside = set(self._downstream())
        self.steps = tuple(_steps(graph, inside))
        used = {source for step in self.steps for source in step.sources if source is not None}
        self.constants = {
            port: _without_weights(value)
            for port, value in known.items()
            if port in used and port.layer not in inside
        }
        """The values from outside that the layers read."""
        self.warned = frozenset(step.layer.id for step in self.steps if _always_warns(step, known))
        """Layers with suspicious values whatever the lengths are."""

    def bounds(self, dim: Dim) -> Dimension:
        """Return the lengths that the Parameter allows."""
        return self.parameters[dim.layer].shape[dim.axis]

    def _downstream(self) -> Iterator[int]:
        """Yield the layers that depend on a dynamic dim; those on a cycle are not reached."""
        inside = {dim.layer for dim in self.dims}
        for layer in self.graph:
            sources = self.graph.sources(layer)
            if layer.id in inside or any(s is not None and s.layer in inside for s in sources):
                inside.add(layer.id)
                yield layer.id


def open_dims(graph: Graph, parameters: Mapping[int, TensorType]) -> tuple[Dim, ...]:
    """Return the dims of Parameters that are not static.

    Raises:
        LimitError: if there are too many.
    """
    dims = tuple(
        Dim(layer.id, axis)
        for layer in graph.of_type("Parameter")
        if (shape := parameters[layer.id].shape).rank is not None
        for axis, dim in enumerate(shape)
        if dim.is_dynamic
    )
    limits = current()
    if len(dims) > limits.open_lengths:
        limits.check("open_lengths", len(dims), graph[dims[limits.open_lengths].layer].where)
    return dims


def _steps(graph: Graph, inside: set[int]) -> Iterator[Step]:
    kinds: dict[Hashable, int] = {}
    for layer in graph:
        if layer.id in inside and layer.type != "Parameter":
            kind = kinds.setdefault(_signature(layer), len(kinds))
            ports = layer.output_ports
            yield Step(layer, kind, graph.sources(layer), ports)


def _signature(layer: Layer) -> Hashable:
    """Return a key that is equal for layers that give equal outputs for equal inputs."""
    if layer.op is None or layer.bodies():
        return layer.id
    key = (type(layer.op), repr(layer.op.attributes()), len(layer.outputs))
    has_blob = len(vars(layer.op)) > len(layer.op.attributes())
    return (*key, layer.id) if has_blob else key


def _always_warns(step: Step, known: Mapping[Port, Value]) -> bool:
    inputs = [known[s] for s in step.sources if s is not None and s in known]
    if step.layer.op is None or len(inputs) < len(step.sources):
        return False
    try:
        return any(True for _ in step.layer.op.audit(*inputs))
    except MemoryError:
        raise
    except Exception:  # inference reports what is wrong with the layer
        return False


def _without_weights(value: Value) -> Value:
    """Drop the data of a constant that is a weight, so that layers differing only in weights are equal."""
    many = value.data is not None and value.data.size > MAX_FOLLOWED and value.element.real
    return Value(value.type) if many else value
