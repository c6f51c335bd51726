"""Graphs of layers, held as frozen networkx graphs whose nodes are layers and whose edges connect ports."""

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
"""Runtime information by name: strings or nested mappings; programs may set other objects."""
IR_VERSION = "version"
"""The key of the IR version that a model was read from, as in OpenVINO; never written to files."""


_NO_CONSUMERS: Mapping[int, Mapping[int, Mapping[str, Any]]] = {}


_EMPTY: Mapping[str, Never] = MappingProxyType({})


def _empty_mapping() -> Mapping[str, Never]:
    return _EMPTY


class Port(NamedTuple):
    """An output (or input) of a layer, by its index from 0, which is independent of the port ids in the file."""

    layer: int
    number: int


class Edge(NamedTuple):
    """A connection from an output port to an input port."""

    source: Port
    target: Port


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port as declared in the file; ``type`` is ``None`` if undeclared."""

    id: int
    type: TensorType | None = None
    names: tuple[str, ...] = ()
    line: int | None = None
    rt_info: RtInfo = field(default_factory=_empty_mapping, repr=False)

    def renamed(self, names: Iterable[str]) -> PortSpec:
        """Return the port with its tensor names replaced."""
        return PortSpec(self.id, self.type, tuple(names), self.line, self.rt_info)

    def converted(self, elements: Collection[ElementType], to: ElementType) -> PortSpec:
        """Return the port with element type ``to`` if its type is one of ``elements``, or unchanged otherwise."""
        if self.type is None or self.type.element not in elements:
            return self
        return replace(self, type=TensorType(to, self.type.shape))


@dataclass(frozen=True, slots=True)
class Layer:
    """A layer as in ``<layer>``: its operation with attributes, and its declared ports.

    ``op`` is ``None`` if the operation is unknown or an attribute is invalid;
    ``attributes`` holds the attribute strings of the file in any case.
    """

    id: int
    name: str
    type: str
    version: str
    op: Operation | None
    where: Location
    inputs: tuple[PortSpec, ...] = ()
    outputs: tuple[PortSpec, ...] = ()
    attributes: Mapping[str, str] = field(default_factory=_empty_mapping)
    rt_info: RtInfo = field(default_factory=_empty_mapping, repr=False)
    is_implied: bool = field(default=False, repr=False)
    """Whether this is a conversion of a model input or output that IR version 10 implies; it is not in the file."""

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
        """Create a layer that is not in the file; messages locate it at ``beside``, the location of another layer."""
        where = replace(beside, layer=name, operation=op.versioned_name())
        return cls(id, name, op.name, f"opset{op.since}", op, where, inputs, outputs)

    def with_ports(self, inputs: tuple[PortSpec, ...], outputs: tuple[PortSpec, ...]) -> Layer:
        """Return the layer with its ports replaced."""
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
        """The versioned operation, such as ``ReduceL2-4``; the type as in the file if the operation is unknown."""
        return self.where.operation or self.type

    def bodies(self) -> tuple[Body, ...]:
        """Return the bodies of a control-flow layer; empty for other layers."""
        return bodies_of(self.op) if self.op else ()

    @property
    def output_ports(self) -> tuple[Port, ...]:
        """The output ports of the layer, in order."""
        return tuple(Port(self.id, index) for index in range(len(self.outputs)))

    def __str__(self) -> str:
        return f"{self.name!r} ({self.operation})"


class Graph:
    """An immutable graph of layers; a pass that changes the graph builds a new one.

    The edges are those of ``network``, a frozen ``networkx.MultiDiGraph``. Its nodes are the ids of ``layers``. The key of
    an edge is the index of the input where it ends, and its ``output`` is the index of the output where it starts.

    >>> from ir_runtime.diagnostics import Location
    >>> def layer(id, inputs):
    ...     return Layer(id, f"n{id}", "Any", "opset1", None, Location(), tuple(map(PortSpec, range(inputs))), (PortSpec(9),))
    >>> graph = Graph([layer(0, 0), layer(1, 2)], [Edge(Port(0, 0), Port(1, 1))])
    >>> list(graph.network.edges(keys=True, data="output")), graph.sources(graph[1])
    ([(0, 1, 1, 0)], (None, Port(layer=0, number=0)))

    Args:
        layers: the layers, in the order of the file.
        edges: the edges, at most one for each input.
        severed: unconnected inputs that the reader has already reported.
    """

    def __init__(self, layers: Iterable[Layer], edges: Iterable[Edge], severed: Iterable[Port] = ()) -> None:
        import networkx as nx  # deferred: operation descriptions import this module but build no graph

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
        """Claim the node and edge attributes of ``network`` for one set of inferred values.

        Returns whether ``values`` is the set that claimed them. The first caller wins, in any thread.
        """
        return self._described.setdefault("values", values) is values

    @cached_property
    def _consumers(self) -> Mapping[int, Mapping[int, Mapping[int, Mapping[str, Any]]]]:
        """The adjacency of ``network`` by producer, consumer and input, as plain dicts instead of networkx views."""
        return dict(self.network.adjacency())

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges, in the order of their producers."""
        return tuple([Edge(Port(*source), Port(*target)) for source, target in self._ends()])

    def _ends(self) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        """Yield (layer, port index) of both ends of each edge, the source first."""
        for source, consumers in self._consumers.items():
            for target, edges in consumers.items():
                for number, edge in edges.items():
                    yield (source, edge["output"]), (target, number)

    @cached_property
    def order(self) -> tuple[Layer, ...]:
        """The layers in topological order, lower ids first (Kahn 1962), without layers on or after a cycle."""
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
        """The producer port of each input, by layer; ``None`` for unconnected inputs."""
        sources: dict[int, list[Port | None]] = {n: [None] * len(la.inputs) for n, la in self.layers.items()}
        for source, (layer, number) in self._ends():
            sources[layer][number] = Port(*source)
        return {n: tuple(ports) for n, ports in sources.items()}

    def sources(self, layer: Layer) -> tuple[Port | None, ...]:
        """Return the output that feeds each input of ``layer``, ``None`` for unconnected inputs."""
        return self._sources[layer.id]

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the outputs that feed the connected inputs of ``layer``."""
        return tuple([source for source in self._sources[layer.id] if source is not None])

    def producers(self, layer: int) -> list[int]:
        """Return the id of the layer that feeds each connected input of ``layer``, in the order of the inputs."""
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
        """Return the ids of ``layers`` and of all layers that they depend on."""
        waiting, visited = list(layers), set[int]()
        while waiting:
            if (layer := waiting.pop()) not in visited:
                visited.add(layer)
                waiting += self.producers(layer)
        return visited

    def cycles(self) -> list[list[Layer]]:
        """Return one cycle of each strongly connected component; empty if the graph is acyclic."""
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
        """All layers: first `order`, then layers on or after cycles, each component before its consumers."""
        yield from self.order
        if len(self.order) < len(self.layers):
            import networkx as nx

            done = {layer.id for layer in self.order}
            rest = nx.condensation(nx.DiGraph(self.network.subgraph(self.layers.keys() - done)))
            for component in nx.topological_sort(rest):
                yield from (self.layers[n] for n in sorted(rest.nodes[component]["members"]))

    def everywhere(self) -> Iterator[Layer]:
        """Yield all layers in file order, each followed by the layers of its bodies."""
        for layer in self.layers.values():
            yield layer
            for body in layer.bodies():
                yield from body.graph.everywhere()

    def of_type(self, *types: str) -> list[Layer]:
        """Return the layers of the given types, in file order."""
        return [layer for layer in self.layers.values() if layer.type in types]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, layer: int) -> Layer:
        return self.layers[layer]

    def __contains__(self, layer: object) -> bool:
        """Return whether ``layer`` belongs to this graph itself, not to a body or another graph."""
        return isinstance(layer, Layer) and self.layers.get(layer.id) is layer


@dataclass(frozen=True)
class Body:
    """A graph inside a control-flow layer, with the map between its Parameters and Results and the layer's ports.

    Ports are indices into the layer's inputs and outputs; Parameters and Results are layer ids.
    """

    name: str
    graph: Graph
    inputs: tuple[BodyInput, ...] = ()
    outputs: tuple[BodyOutput, ...] = ()
    back_edges: tuple[BackEdge, ...] = ()
    iteration: int | None = None
    """The Parameter that receives the index of the iteration."""
    condition: int | None = None
    """The Result that decides whether to continue."""

    @cached_property
    def parameters(self) -> Mapping[int, Layer]:
        """The Parameters by id, in file order."""
        return {layer.id: layer for layer in self.graph.of_type("Parameter")}

    @cached_property
    def results(self) -> Mapping[int, Port]:
        """The operand of each Result, by id of the Result, in file order."""
        return dict(self._results())

    def _results(self) -> Iterator[tuple[int, Port]]:
        for layer in self.graph.of_type("Result"):
            yield from ((layer.id, source) for source in self.graph.sources(layer) if source is not None)


def bodies_of(op: Operation) -> tuple[Body, ...]:
    """Return the attributes of an operation that are bodies."""
    if not op.needs("visit"):  # only operations with bodies do; this avoids a scan of all attributes
        return ()
    return tuple([value for value in vars(op).values() if isinstance(value, Body)])
