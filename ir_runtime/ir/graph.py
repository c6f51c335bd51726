"""Layers and edges. Graphs are immutable: passes keep what they find elsewhere, or build new graphs."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Never, TypeAlias

from .._util.cached import cached_property
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
"""The entry of runtime information that says of which IR version a model was read, as in OpenVINO; files have none."""
"""Runtime information, by name: texts, or further mappings; programs may set other objects."""


def _nothing() -> Mapping[str, Never]:
    return MappingProxyType({})


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
        """Return a layer that the file does not have; messages place it where the layer beside it is."""
        where = replace(beside, layer=name, operation=op.versioned_name())
        return cls(id, name, op.name, f"opset{op.since}", op, where, inputs, outputs)

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
    """Layers and edges, neither of which can be changed.

    ``severed`` are inputs without an edge that the reader has reported already.
    """

    def __init__(self, layers: Iterable[Layer], edges: Iterable[Edge], severed: Iterable[Port] = ()) -> None:
        self.severed: frozenset[Port] = frozenset(severed)
        self.layers: Mapping[int, Layer] = MappingProxyType({layer.id: layer for layer in layers})
        """Layers by id, in the order of the file."""
        self.edges: tuple[Edge, ...] = tuple(edges)
        """Every edge."""

    @cached_property
    def network(self) -> nx.MultiDiGraph[int]:
        """The graph as a frozen ``networkx.MultiDiGraph``, built on first use.

        Nodes are layer ids and carry ``layer``; an edge's key is the index of the input it ends at, and
        its ``source`` is the index of the output it comes from. So two edges between the same two layers
        stay apart.
        """
        import networkx as nx

        network: nx.MultiDiGraph[int] = nx.MultiDiGraph()
        network.add_nodes_from((layer.id, {"layer": layer}) for layer in self.layers.values())
        network.add_edges_from((s.layer, t.layer, t.number, {"source": s.number}) for s, t in self.edges)
        return nx.freeze(network)

    @cached_property
    def order(self) -> tuple[Layer, ...]:
        """Layers in topological order, lower ids first (Kahn 1962). Layers on or after a cycle are left out."""
        in_degree: dict[int, int] = {}
        successors: dict[int, list[int]] = {}
        for source, target in self.edges:
            in_degree[target.layer] = in_degree.get(target.layer, 0) + 1
            successors.setdefault(source.layer, []).append(target.layer)
        ready = [n for n in self.layers if n not in in_degree]
        heapq.heapify(ready)
        order = []
        while ready:
            layer = heapq.heappop(ready)
            order.append(self.layers[layer])
            for reader in successors.get(layer, ()):
                in_degree[reader] -= 1
                if not in_degree[reader]:
                    heapq.heappush(ready, reader)
        return tuple(order)

    @cached_property
    def _sources(self) -> Mapping[int, tuple[Port | None, ...]]:
        sources: dict[int, list[Port | None]] = {n: [None] * len(la.inputs) for n, la in self.layers.items()}
        for source, target in self.edges:
            sources[target.layer][target.number] = source
        return {n: tuple(ports) for n, ports in sources.items()}

    @cached_property
    def _readers(self) -> Mapping[Port, tuple[Port, ...]]:
        readers: dict[Port, list[Port]] = {}
        for source, target in self.edges:
            readers.setdefault(source, []).append(target)
        return {port: tuple(sorted(found)) for port, found in readers.items()}

    def sources(self, layer: Layer) -> tuple[Port | None, ...]:
        """Return the output that feeds each input of ``layer``; ``None`` for unconnected ones."""
        return self._sources[layer.id]

    def reads(self, layer: Layer) -> tuple[Port, ...]:
        """Return the outputs that feed the connected inputs of ``layer``."""
        return tuple([source for source in self._sources[layer.id] if source is not None])

    def readers(self, port: Port) -> tuple[Port, ...]:
        """Return the inputs that read an output."""
        return self._readers.get(port, ())

    def ancestors(self, layers: Iterable[int]) -> set[int]:
        """Return the ids of layers, and of all layers that they depend on."""
        waiting, found = list(layers), set[int]()
        while waiting:
            if (layer := waiting.pop()) not in found:
                found.add(layer)
                waiting += [source.layer for source in self.reads(self.layers[layer])]
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
        """What each Result reads, by id, in the order of the file."""
        return dict(self._results())

    def _results(self) -> Iterator[tuple[int, Port]]:
        for layer in self.graph.of_type("Result"):
            yield from ((layer.id, source) for source in self.graph.sources(layer) if source is not None)


def bodies_of(op: Operation) -> tuple[Body, ...]:
    """Return the graphs among the attributes of an operation."""
    if not op.needs("visit"):  # as only operations with bodies do; most have many attributes to look at
        return ()
    return tuple([value for value in vars(op).values() if isinstance(value, Body)])
