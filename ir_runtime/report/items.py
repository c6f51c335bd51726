"""A flat list of all layers of a model, including those of bodies, with the edges between them.

Scopes are nested boxes around layers; they form a tree (`Scopes`).
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
    """One component of the path to a layer, which names a scope."""

    label: str
    owner: int = -1
    """The index of the layer that owns the bodies in this scope; -1 for a scope that comes from layer names."""
    body: str = ""
    """The name of the body, if the owner has several."""
    copy: tuple[int, ...] = ()
    """Distinguishes the parts of a split scope."""


Path = tuple[Part, ...]


@dataclass(eq=False)
class Item:
    """A layer in the list, with its index there and its scopes."""

    index: int
    layer: Layer
    values: Mapping[Port, Value]
    """The inferred values of its graph."""
    base: Path = ()
    """The bodies that contain the layer."""
    path: Path | None = None
    """The scopes that contain the layer, outermost first; ``None`` until assigned."""
    is_constant: bool = False
    is_shape: bool = False
    """Whether the layer only computes with shapes."""
    bodies: tuple[Body, ...] = ()

    @property
    def is_drawn(self) -> bool:
        """Whether the layer gets a box in the initial picture."""
        return not (self.is_constant or self.is_shape)

    def value(self, port: int) -> Value | None:
        """Return the inferred value of an output."""
        return self.values.get(Port(self.layer.id, port))


class Edge(NamedTuple):
    """A tensor from an output ``port`` of the layer ``source`` to the ``input`` of the layer ``target``, all by number.

    With ``back``, it is a value carried to the next iteration of a loop.
    """

    source: int
    port: int
    target: int
    input: int
    back: bool = False


@dataclass
class Items:
    """All layers and edges; after `link`, also the producers (``above``) and consumers (``below``) of each layer."""

    items: list[Item] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)

    def link(self) -> None:
        """Collect the producers and consumers of each layer, ignoring loop-carried values."""
        self.above: list[list[int]] = [[] for _ in self.items]
        self.below: list[list[int]] = [[] for _ in self.items]
        for edge in self.edges:
            if not edge.back:
                self.above[edge.target].append(edge.source)
                self.below[edge.source].append(edge.target)


def items_of(graph: Graph, values: Inferred) -> Items:
    """List the layers of a graph and its bodies in topological order."""
    listing = Items()
    _Walk(listing).graph(graph, values, ())
    listing.link()
    return listing


class _Walk:
    def __init__(self, listing: Items) -> None:
        self._listing = listing
        self._ends: dict[tuple[int, int], list[tuple[int, int]]] = {}
        """The body Results that feed each output of a layer with bodies, by layer index and output."""

    def graph(self, graph: Graph, values: Mapping[Port, Value], base: Path) -> dict[int, Item]:
        """Append the layers of a graph, and return them by id."""
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
        """Append the bodies of a layer; for each of its inputs, return the indices of the body Parameters that it feeds."""
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
    """Return the path of scopes for the bodies of a layer: its own, and that of ``body`` if there are several."""
    layer, name = item.layer, item.layer.name.rpartition("/")[2]
    own = Part(layer.type if name == layer.type else f"{layer.type} {name}", item.index)
    if body is None or len(item.bodies) == 1:
        return (own,)
    return (own, Part(body.name.removesuffix("_body"), item.index, body.name))


def body_path(listing: Items, item: Item) -> str:
    """Return the path of the bodies that contain a layer, in the notation of `ir_runtime.analysis.cost`: ``loop/body``."""
    names: list[str] = []
    for part in item.base:
        owner = listing.items[part.owner]
        body = owner.bodies[0].name if len(owner.bodies) == 1 else part.body
        names += [owner.layer.name, body] if body else []
    return "/".join(names)


def visible_edges(listing: Items) -> Iterator[Edge]:
    """Yield the edges between layers with boxes in the initial picture, except loop-carried values."""
    items = listing.items
    return (e for e in listing.edges if not e.back and items[e.source].is_drawn and items[e.target].is_drawn)


PART_LABEL = re.compile(r"\d+–\d+ of \d+")
"""Matches the label of a part of a scope that was split for having too many boxes."""


@dataclass
class Scope:
    """A box that contains layers and other scopes; all are referred to by number."""

    label: str
    parent: int
    owner: int = -1
    """The index of the layer that owns the bodies in this scope, or -1."""
    scopes: list[int] = field(default_factory=list)
    layers: list[int] = field(default_factory=list)
    size: int = 0
    """The number of layers in this scope and its inner scopes."""
    open: bool = False
    copies: int = 0
    """The number of inner scopes if they are copies of one structure; else 0."""

    @property
    def title(self) -> str:
        """The label, after the number of copies if there are any: ``12 × layer``."""
        return f"{self.copies} × {self.label}" if self.copies else self.label

    @property
    def width(self) -> int:
        """The number of direct inner scopes and layers."""
        return len(self.scopes) + len(self.layers)


@dataclass
class Scopes:
    """The layers of a model and their tree of scopes, whose first scope is the whole model."""

    listing: Items
    scopes: list[Scope]
    of: dict[int, int]
    """The innermost scope of each layer that is not a constant."""
    twins: dict[int, int] = field(default_factory=dict)
    """Maps each layer of a copied scope to the corresponding layer of the first copy."""

    def renumber(self) -> None:
        """Renumber the scopes in preorder, each before its inner scopes."""
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
