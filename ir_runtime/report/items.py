"""The layers of a model and of the bodies inside it, in one list, with the edges that connect them.

Scopes are boxes with layers and other boxes inside; they form a tree (`Scopes`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from .._util.deadline import check
from ..analysis.infer import Inferred
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.tensor import Value

__all__ = ["PART_LABEL", "Edge", "Item", "Items", "Part", "Path", "Scope", "Scopes", "body_path", "items_of"]


class Part(NamedTuple):
    """One name of the path to a layer: a scope."""

    label: str
    owner: int = -1
    """The layer whose body this is, by its place in the list; -1 for a scope that only names make."""
    body: str = ""
    """Which of several bodies of the owner this is."""
    copy: tuple[int, ...] = ()
    """Tells the parts of a scope that was split from each other."""


Path = tuple[Part, ...]


@dataclass(eq=False)
class Item:
    """A layer in the list."""

    index: int
    layer: Layer
    values: Mapping[Port, Value]
    """The inferred values of its graph."""
    base: Path = ()
    """The bodies that it is in."""
    path: Path | None = None
    """The scopes that it is in; ``None`` until they are known."""
    is_constant: bool = False
    is_shape: bool = False
    """Whether it computes with shapes only."""
    bodies: tuple[Body, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether the initial picture has a box for it."""
        return not (self.is_constant or self.is_shape)

    def value(self, port: int) -> Value | None:
        """Return the inferred value of an output."""
        return self.values.get(Port(self.layer.id, port))


class Edge(NamedTuple):
    """A tensor between two layers of the list. ``back`` leads from one iteration of a loop to the next."""

    source: int
    port: int
    target: int
    input: int
    back: bool = False


@dataclass
class Items:
    """The layers and edges, with producers and readers by layer."""

    items: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def link(self) -> None:
        """Collect the producers and the readers of every layer, but for loop-carried values."""
        self.above: list[list[int]] = [[] for _ in self.items]
        self.below: list[list[int]] = [[] for _ in self.items]
        for edge in self.edges:
            if not edge.back:
                self.above[edge.target].append(edge.source)
                self.below[edge.source].append(edge.target)


def items_of(graph: Graph, values: Inferred) -> Items:
    """Return the layers of a graph and of the bodies in it, in topological order."""
    listing = Items()
    _Walk(listing).graph(graph, values, ())
    listing.link()
    return listing


class _Walk:
    def __init__(self, listing: Items) -> None:
        self._listing = listing
        self._ends: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """The Results of bodies that feed an output of a layer, by its place and the output."""

    def graph(self, graph: Graph, values: Mapping[Port, Value], base: Path) -> dict[int, Item]:
        """Add the layers of a graph; return them by their ids."""
        known: dict[int, Item] = {}
        for layer in graph.walk:
            check(layer.where)
            item = Item(len(self._listing.items), layer, values, base, bodies=layer.bodies())
            self._listing.items.append(item)
            known[layer.id] = item
            ends = self._bodies(item, values) if item.bodies else {}
            self._connect(graph, known, item, ends)
        return known

    def _bodies(self, item: Item, values: Mapping[Port, Value]) -> dict[int, list[int]]:
        """Add the bodies of a layer; return the Parameters that each of its inputs feeds."""
        fed: dict[int, list[int]] = {}
        for body in item.bodies:
            inner: Mapping[Port, Value] = {}
            if isinstance(values, Inferred):
                inner = values.bodies.get((item.layer.id, body.name), inner)
            base = (*item.base, *parts_of(item, body))
            known = self.graph(body.graph, inner, base)
            for entry in body.inputs:
                fed.setdefault(entry.port, []).append(known[entry.parameter].index)
            for end in body.outputs:
                self._ends.setdefault((item.index, end.port), []).append((known[end.result].index, 0))
            for back in body.back_edges:
                source, target = known[back.result].index, known[back.parameter].index
                self._listing.edges.append(Edge(source, 0, target, 0, back=True))
        return fed

    def _connect(
        self, graph: Graph, known: Mapping[int, Item], item: Item, fed: Mapping[int, list[int]]
    ) -> None:
        for number, source in enumerate(graph.sources(item.layer)):
            if source is None or source.layer not in known:  # the graph is broken, or has a cycle
                continue
            begin = known[source.layer].index
            for start, port in self._ends.get((begin, source.number), [(begin, source.number)]):
                for target in fed.get(number, ()) or (item.index,):
                    into = 0 if number in fed else number
                    self._listing.edges.append(Edge(start, port, target, into))


def parts_of(item: Item, body: Body | None = None) -> Path:
    """Return the scope of a layer with bodies, and inside it the scope of one body, if there are several."""
    layer, name = item.layer, item.layer.name.rpartition("/")[2]
    own = Part(layer.type if name == layer.type else f"{layer.type} {name}", item.index)
    if body is None or len(item.bodies) == 1:
        return (own,)
    return (own, Part(body.name.removesuffix("_body"), item.index, body.name))


def body_path(listing: Items, item: Item) -> str:
    """Return the bodies that a layer is in, as `ir_runtime.analysis.cost` names them: ``loop/body``."""
    names: list[str] = []
    for part in item.base:
        owner = listing.items[part.owner]
        body = owner.bodies[0].name if len(owner.bodies) == 1 else part.body
        names += [owner.layer.name, body] if body else []
    return "/".join(names)


def visible_edges(listing: Items) -> Iterator[Edge]:
    """Yield the edges between layers that have boxes in the initial picture, but for loop-carried values."""
    items = listing.items
    return (e for e in listing.edges if not e.back and items[e.source].is_drawn and items[e.target].is_drawn)


PART_LABEL = re.compile(r"\d+–\d+ of \d+")
"""The label of a part of a scope that has too many boxes."""


@dataclass
class Scope:
    """A box with layers and other scopes inside."""

    label: str
    parent: int
    owner: int = -1
    """The layer whose bodies this is."""
    scopes: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    size: int = 0
    """Layers in it and in the scopes inside."""
    open: bool = False
    copies: int = 0
    """The number of scopes in it if all have the same structure; else 0."""

    @property
    def title(self) -> str:
        """The label, with the number of copies."""
        return f"{self.copies} × {self.label}" if self.copies else self.label

    @property
    def width(self) -> int:
        """The number of boxes inside."""
        return len(self.scopes) + len(self.layers)


@dataclass
class Scopes:
    """The layers, and the tree of scopes. The first scope is the whole model."""

    listing: Items
    scopes: list[Scope]
    of: dict[int, int]
    """The scope of each layer that is not a constant."""
    twins: dict[int, int] = field(default_factory=dict)
    """The layer of the first copy, by each corresponding layer of the other copies."""

    def renumber(self) -> None:
        """Number the scopes so that each comes before those inside it."""
        order, waiting = list[int](), [0]
        while waiting:
            number = waiting.pop()
            order.append(number)
            waiting += reversed(self.scopes[number].scopes)
        place = {number: k for k, number in enumerate(order)}
        for scope in self.scopes:
            scope.parent = place.get(scope.parent, -1)
            scope.scopes = [place[number] for number in scope.scopes]
        self.scopes = [self.scopes[number] for number in order]
        self.of = {index: place[number] for index, number in self.of.items()}
