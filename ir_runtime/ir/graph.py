"""Graphs of layers: frozen networkx graphs, whose nodes stand for layers and whose edges know their ports."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Never, TypeAlias

from .._util.forks import cached_property
from ..diagnostics import Location
from .element import ElementType
from .operation import Operation
from .port_map import BackEdge, BodyInput, BodyOutput
from .tensor import TensorType

if TYPE_CHECKING:
    import networkx as nx

__all__ = [
    "IO_TYPES",
    "IR_VERSION",
    "Body",
    "Edge",
    "Graph",
    "Layer",
    "Port",
    "PortSpec",
    "RtInfo",
    "bodies_of",
]

IO_TYPES = ("Parameter", "Result")
"""The types of the layers that are the inputs and outputs of a graph."""

RtInfo: TypeAlias = Mapping[str, object]
IR_VERSION = "version"
"""The entry of runtime information with the IR version that a model was read from, as in OpenVINO; not in
files.
"""
"""Runtime information, by name: texts, or further mappings; programs may set other objects."""


_NO_CONSUMERS: Mapping[int, Mapping[int, Mapping[str, Any]]] = {}


_NOTHING: Mapping[str, Never] = MappingProxyType({})


def _nothing() -> Mapping[str, Never]:
    return _NOTHING


class Port(NamedTuple):
    """One output (or input) of a layer, counted from 0 whatever ids the file uses."""

    layer: int
    number: int


class Edge(NamedTuple):
    """A tensor that goes from an output to an input."""

    source: Port
    target: Port


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port as the file declares it. ``type`` is ``None`` where the file says nothing."""

    id: int
    type: TensorType | None = None
    names: tuple[str, ...] = ()
    line: int | None = None
    rt_info: RtInfo = field(default_factory=_nothing, repr=False)

    def renamed(self, names: Iterable[str]) -> PortSpec:
        """Return the same port with other names of its tensor."""
        return PortSpec(self.id, self.type, tuple(names), self.line, self.rt_info)

    def converted(self, elements: Collection[ElementType], to: ElementType) -> PortSpec:
        """Return the same port of another element type, if its type is one of some."""
        if self.type is None or self.type.element not in elements:
            return self
        return replace(self, type=TensorType(to, self.type.shape))


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: its operation with its attributes, and its ports as declared; the fields are those of ``<layer>``.

    ``op`` is ``None`` where the operation is unknown or its attributes are invalid;
    ``attributes`` always has them as the file wrote them.
    """

    id: int
    name: str
    type: str
    version: str
    op: Operation | None
    where: Location
    inputs: tuple[PortSpec, ...] = ()
    outputs: tuple[PortSpec, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=_nothing)
    rt_info: RtInfo = field(default_factory=_nothing, repr=False)
    is_implied: bool = field(default=False, repr=False)
    """Whether it converts an input or output of the model, as IR version 10 implies; the file does not have it."""

    @classmethod
    def inserted(
        cls,
        id: int,
        name: str,
        op: Operation,
        beside: Location,
        inputs: tuple[PortSpec, ...] = (),
        outputs: tuple[PortSpec, ...] = (),
    ) -> Layer:
        """Return a layer that is not in the file; messages give it the location of another layer."""
        where = replace(beside, layer=name, operation=op.versioned_name())
        return cls(id, name, op.name, f"opset{op.since}", op, where, inputs, outputs)

    def with_ports(self, inputs: tuple[PortSpec, ...], outputs: tuple[PortSpec, ...]) -> Layer:
        """Return the same layer with other ports."""
        return Layer(
            self.id,
            self.name,
            self.type,
            self.version,
            self.op,
            self.where,
            inputs,
            outputs,
            self.attributes,
            self.rt_info,
            self.is_implied,
        )

    @property
    def operation(self) -> str:
        """The operation with its version, such as ``ReduceL2-4``; the type as written where it is unknown."""
        return self.where.operation or self.type

    def bodies(self) -> tuple[Body, ...]:
        """Return the graphs inside the layer."""
        return bodies_of(self.op) if self.op else ()

    @property
    def output_ports(self) -> tuple[Port, ...]:
        """The ports that it writes."""
        return tuple(Port(self.id, index) for index in range(len(self.outputs)))

    def __str__(self) -> str:
        return f"{self.name!r} ({self.operation})"


class Graph:
    """A directed acyclic graph of layers, which cannot be changed: passes keep what they find elsewhere, or build another.

    The graph is ``network``, a frozen ``networkx.MultiDiGraph``: its nodes are the ids of ``layers``, an edge's key is the
    index of the input where it ends, and its ``output`` that of the output where it starts. Whoever follows edges follows
    those.

    >>> from ir_runtime.diagnostics import Location
    >>> def layer(id, inputs):
    ...     return Layer(id, f"n{id}", "Any", "opset1", None, Location(), tuple(map(PortSpec, range(inputs))), (PortSpec(9),))
    >>> graph = Graph([layer(0, 0), layer(1, 2)], [Edge(Port(0, 0), Port(1, 1))])
    >>> list(graph.network.edges(keys=True, data="output")), graph.sources(graph[1])
    ([(0, 1, 1, 0)], (None, Port(layer=0, number=0)))

    Args:
        layers: the layers, in the order of the file.
        edges: the edges; an input has at most one.
        severed: inputs without an edge that the reader has reported already.
    """

    def __init__(self, layers: Iterable[Layer], edges: Iterable[Edge], severed: Iterable[Port] = ()) -> None:
        import networkx as nx  # here, as the descriptions of operations need layers, but no graph

        self.layers: Mapping[int, Layer] = MappingProxyType({layer.id: layer for layer in layers})
        """Layers by id, in the order of the file."""
        self.severed: frozenset[Port] = frozenset(severed)
        network: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        network.add_nodes_from(self.layers)
        for (source, output), (target, number) in edges:
            network.add_edge(source, target, number, output=output)
        self.network: nx.MultiDiGraph[int] = nx.freeze(network)
        self._described: dict[str, object] = {}

    def claim_description(self, values: object) -> bool:
        """Return whether these values are the ones that ``network`` is described with, for users of networkx.

        The first to ask decides, whichever thread that is.
        """
        return self._described.setdefault("values", values) is values

    @cached_property
    def _consumers(self) -> Mapping[int, Mapping[int, Mapping[int, Mapping[str, Any]]]]:
        """The adjacency of ``network``, by layer, consumer and input, without the views that guard it."""
        return dict(self.network.adjacency())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges, in the order of the layers where they start."""
        return tuple([Edge(Port(*source), Port(*target)) for source, target in self._ends()])

    def _ends(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield the layer and the port at both ends of each edge."""
        for source, consumers in self._consumers.items():
            for target, edges in consumers.items():
                for number, edge in edges.items():
                    yield (source, edge["output"]), (target, number)

    @cached_property
    def order(self) -> tuple[Layer, ...]:
        """Layers in topological order, lower ids first (Kahn 1962). Layers on or after a cycle are left out."""
        consumers = self._consumers
        waiting = dict.fromkeys(self.layers, 0)
        for layers in consumers.values():
            for layer in layers:
                waiting[layer] += 1
        ready = [layer for layer, producers in waiting.items() if not producers]
        heapq.heapify(ready)
        order = []
        while ready:
            layer = heapq.heappop(ready)
            order.append(self.layers[layer])
            for consumer in consumers[layer]:
                waiting[consumer] -= 1
                if not waiting[consumer]:
                    heapq.heappush(ready, consumer)
        return tuple(order)

    @cached_property
    def _sources(self) -> Mapping[int, tuple[Port | None, ...]]:
        """The edges of each layer by input; networkx has them by producer."""
        sources: dict[int, list[Port | None]] = {n: [None] * len(la.inputs) for n, la in self.layers.items()}
        for source, (layer, number) in self._ends():
            sources[layer][number] = Port(*source)
        return {n: tuple(ports) for n, ports in sources.items()}

    def sources(self, layer: Layer) -> tuple[Port | None, ...]:
        """Return the output that feeds each input of ``layer``; ``None`` for unconnected ones."""
        return self._sources[layer.id]

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the outputs that feed the connected inputs of ``layer``."""
        return tuple([source for source in self._sources[layer.id] if source is not None])

    def producers(self, layer: int) -> list[int]:
        """Return the layers that feed the connected inputs of a layer, in their order."""
        return [source.layer for source in self._sources[layer] if source is not None]

    def readers(self, port: Port) -> tuple[Port, ...]:
        """Return the inputs that read an output."""
        layer, output = port
        inputs = [
            Port(consumer, number)
            for consumer, edges in self._consumers.get(layer, _NO_CONSUMERS).items()
            for number, edge in edges.items()
            if edge["output"] == output
        ]
        inputs.sort()
        return tuple(inputs)

    def ancestors(self, layers: Iterable[int]) -> set[int]:
        """Return the ids of layers, and of all layers that they depend on."""
        waiting, found = list(layers), set[int]()
        while waiting:
            if (layer := waiting.pop()) not in found:
                found.add(layer)
                waiting += self.producers(layer)
        return found

    def cycles(self) -> list[list[Layer]]:
        """Return one cycle of each strongly connected component; none in a valid graph."""
        if len(self.order) == len(self.layers):
            return []
        import networkx as nx

        components = nx.strongly_connected_components(self.network)
        cycles = [nx.find_cycle(self.network.subgraph(c)) for c in components if self._is_cyclic(c)]
        return sorted(
            ([self.layers[edge[0]] for edge in cycle] for cycle in cycles), key=lambda cycle: cycle[0].id
        )

    def _is_cyclic(self, layers: set[int]) -> bool:
        return len(layers) > 1 or any(self.network.has_edge(layer, layer) for layer in layers)

    @property
    def walk(self) -> Iterator[Layer]:
        """All layers: those of `order`, then those on and after cycles, each component before its readers."""
        yield from self.order
        if len(self.order) < len(self.layers):
            import networkx as nx

            done = {layer.id for layer in self.order}
            rest = nx.condensation(nx.DiGraph(self.network.subgraph(self.layers.keys() - done)))
            for component in nx.topological_sort(rest):
                yield from (self.layers[n] for n in sorted(rest.nodes[component]["members"]))

    def everywhere(self) -> Iterator[Layer]:
        """Yield all layers in the order of the file, including those inside bodies."""
        for layer in self.layers.values():
            yield layer
            for body in layer.bodies():
                yield from body.graph.everywhere()

    def of_type(self, *types: str) -> list[Layer]:
        """Return the layers of the given types, in the order of the file."""
        return [layer for layer in self.layers.values() if layer.type in types]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: int) -> Layer:
        return self.layers[layer]

    def __contains__(self, layer: object) -> bool:
        """Return whether this is a layer of the graph itself, not of a body or of another graph."""
        return isinstance(layer, Layer) and self.layers.get(layer.id) is layer


@dataclass(frozen=True)
class Body:
    """A graph inside a layer. Ports are positions among the layer's inputs and outputs."""

    name: str
    graph: Graph
    inputs: tuple[BodyInput, ...] = ()
    outputs: tuple[BodyOutput, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()
    iteration: int | None = None
    """The Parameter that receives the number of the iteration."""
    condition: int | None = None
    """The Result with the condition to continue."""

    @cached_property
    def parameters(self) -> Mapping[int, Layer]:
        """The Parameters, by id, in the order of the file."""
        return {layer.id: layer for layer in self.graph.of_type("Parameter")}

    @cached_property
    def results(self) -> Mapping[int, Port]:
        """The operand of each Result, by id, in the order of the file."""
        return dict(self._results())

    def _results(self) -> Iterator[tuple[int, Port]]:
        for layer in self.graph.of_type("Result"):
            yield from ((layer.id, source) for source in self.graph.sources(layer) if source is not None)


def bodies_of(op: Operation) -> tuple[Body, ...]:
    """Return the graphs among the attributes of an operation."""
    if not op.needs("visit"):  # as only operations with bodies do; most have many attributes to look at
        return ()
    return tuple([value for value in vars(op).values() if isinstance(value, Body)])
