"""Derivation of a model's graph from its nodes, and incremental re-inference after changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

from ..._util import deadline
from ...analysis.infer import Inferred, infer_layer, is_same
from ...errors import IRError, LimitError
from ...io.reader.source import Weights
from ...ir.graph import Edge, Graph, Layer, Port, PortSpec
from ...ir.tensor import Value
from ..node import GraphNodes, Node, infers_alone

__all__ = [
    "Members",
    "Order",
    "Refreshed",
    "depth_first",
    "derive_graph",
    "join_weights",
    "members_of",
    "reachable",
    "refresh",
    "topological",
    "find_undeclared",
    "values_of",
    "declare_types",
]


Changes: TypeAlias = dict[int, tuple[Node, Sequence[Value], Sequence[object]]]
"""Nodes with their new values and the basis of inference, by `id` of the node."""


@dataclass(slots=True)
class Members:
    """The Parameters, Results and sinks of a model, from which its other nodes are reachable."""

    parameters: list[Node] = field(default_factory=list)
    results: list[Node] = field(default_factory=list)
    sinks: list[Node] = field(default_factory=list)

    def copy(self) -> Members:
        """Return a shallow copy: new lists of the same nodes."""
        return Members(list(self.parameters), list(self.results), list(self.sinks))


def members_of(nodes: GraphNodes) -> Members:
    """Return the Parameters, Results and sinks of a graph as nodes."""
    layers = nodes.graph.layers.values()
    sinks = [layer for layer in layers if layer.op is not None and layer.op.has_side_effects]
    parameters, results = nodes.graph.of_type("Parameter"), nodes.graph.of_type("Result")
    return Members(*([nodes.node(layer.id) for layer in ends] for ends in (parameters, results, sinks)))


def reachable(members: Members) -> list[Node]:
    """Return the nodes of a model in topological order, with its Parameters first and its Results last."""
    ends = [*members.parameters, *members.results]
    done = {id(node) for node in ends}
    between: list[Node] = []
    for root in (*members.sinks, *members.results):
        between += _visit_sources(root, done)
    return [*members.parameters, *between, *members.results]


def _visit_sources(root: Node, done: set[int], attached: bool = True) -> Iterator[Node]:
    """Yield the unvisited sources of a node and then the node, depth-first.

    Without ``attached``, skip nodes that still read their state from the graph of a model (see `Node`).
    """
    stack = [(root, iter(root._sources))]
    while stack:
        node, sources = stack[-1]
        for source in sources:
            if source is None or id(source._node) in done:
                continue
            if attached or not source._node._is_attached:
                done.add(id(source._node))
                stack.append((source._node, iter(source._node._sources)))
                break
        else:
            stack.pop()
            if node is not root or id(root) not in done:
                done.add(id(node))
                yield node


def derive_graph(members: Members) -> tuple[Graph, dict[int, Node]]:
    """Derive the graph of a model, and return it with a mapping of layer ids to nodes."""
    nodes = reachable(members)
    numbers = {id(node): number for number, node in enumerate(nodes)}
    names = _unique(node.layer.name for node in nodes)
    layers = [
        _layer(node, number, name) for number, (node, name) in enumerate(zip(nodes, names, strict=True))
    ]
    edges = [
        Edge(Port(numbers[id(source._node)], source._index), Port(number, index))
        for number, node in enumerate(nodes)
        for index, source in enumerate(node._sources)
        if source is not None
    ]
    return Graph(layers, edges), dict(enumerate(nodes))


def _layer(node: Node, number: int, name: str) -> Layer:
    op = node._operation(name)
    layer = node.layer  # a subclass of Op may have changed it
    has_operation, where = op is not None, layer.where
    return Layer(
        number,
        name,
        layer.type,
        layer.version,
        op,
        where if where.layer == name else replace(where, layer=name),
        tuple([_port(spec, index, has_operation) for index, spec in enumerate(layer.inputs)]),
        tuple(
            [_port(spec, index, has_operation) for index, spec in enumerate(layer.outputs, len(layer.inputs))]
        ),
        layer.attributes,
        layer.rt_info,
    )


def declare_types(graph: Graph, values: Inferred) -> Graph:
    """Return the graph with output ports that declare the inferred types; ports without an inferred value are unchanged."""
    layers = [
        replace(
            layer,
            outputs=tuple(
                replace(spec, type=value.type) if (value := values.get(port)) else spec
                for spec, port in zip(layer.outputs, layer.output_ports, strict=True)
            ),
        )
        for layer in graph.layers.values()
    ]
    return Graph(layers, graph.edges, graph.severed)


def _port(spec: PortSpec, id: int, has_operation: bool) -> PortSpec:
    """Return the port without its declared type if an operation infers one, else unchanged."""
    return PortSpec(id, None if has_operation else spec.type, spec.names, spec.line, spec.rt_info)


def _unique(names: Iterable[str]) -> Iterator[str]:
    """Yield the names; a name that repeats gets a number."""
    used: set[str] = set()
    for name in names:
        candidate, number = name, 1
        while candidate in used:
            candidate, number = f"{name}_{number}", number + 1
        used.add(candidate)
        yield candidate


def find_undeclared(nodes: Iterable[Node], members: Members) -> Node | None:
    """Return a Parameter among ``nodes`` that is missing in ``members``, or None."""
    declared = set(members.parameters)
    return next((n for n in nodes if n.layer.type == "Parameter" and n not in declared), None)


class _JoinedWeights(Weights):
    """The weights of a model whose constants are views of several weights files."""

    def __init__(self, files: Iterable[Weights]) -> None:
        super().__init__()
        self._files = tuple(files)

    def check(self) -> None:
        for file in self._files:
            file.check()


def join_weights(weights: Weights, nodes: Iterable[Node]) -> Weights:
    """Return the weights of a model joined with those of all models that its nodes come from."""
    files = {id(w): w for node in nodes if (w := node._weights) is not None}
    if len(files) == 1 and weights.data is None:
        return next(iter(files.values()))
    return weights if files.keys() <= {id(weights)} else _JoinedWeights(files.values())


class Refreshed(NamedTuple):
    """The nodes of a valid model whose inferred values are up to date."""

    edit: int
    """The number of the last edit that the values reflect."""
    nodes: Sequence[Node]
    """All nodes of the model, or only the detached ones."""


def refresh(members: Members, edit: int, table: GraphNodes) -> Refreshed | None:
    """Infer again the nodes that were changed or whose operands have new values.

    Args:
        members: the Parameters, Results and sinks of the model.
        edit: the number of the last edit, as `Edits` counts them.
        table: the nodes of the graph before the edits.

    Returns:
        The nodes, or None if the graph must be derived and inferred as a whole: on errors, and for variables, bodies and custom operations. In that case no node is changed.
    """
    return _refresh_detached(members, edit, table) or _refresh_all(members, edit)


def _refresh_detached(members: Members, edit: int, table: GraphNodes) -> Refreshed | None:
    """Infer only new and detached (changed) nodes, provided that all other nodes keep their values and their order.

    The order also proves that the graph has no cycle: each detached node must come after its operands, where a
    new node takes the position of its last operand.

    Returns:
        These nodes, or None if all nodes must be visited. In that case no node is changed.
    """
    if not table.is_as_read:
        return None
    places = table.places
    detached = {places[layer]: table.created[layer] for layer in table.detached & table.created.keys()}
    own = {id(node): place for place, node in detached.items()}
    done: set[int] = set()
    nodes = [
        node
        for root in (*detached.values(), *members.parameters, *members.sinks, *members.results)
        if id(root) not in done
        for node in _visit_sources(root, done, attached=False)
    ]
    if _is_out_of_order(nodes, own, members, table):
        return None
    changes: Changes = {}
    if not all(_infer_again(node, changes, own, table) for node in nodes if node.layer.type != "Result"):
        return None
    for node, values, basis in changes.values():
        node._set_values(values, basis)
    return Refreshed(edit, nodes)


def _infer_again(node: Node, changes: Changes, own: Collection[int], table: GraphNodes) -> bool:
    """Infer a node if it or an operand has changed, adding its new values to ``changes``.

    Returns:
        False if inference fails, or a node outside ``own`` would have to be inferred too; True otherwise.
    """
    operands = _operands(node, changes)
    if operands is None:
        return False
    basis, former = node._basis_of(operands), node._former_basis
    is_current = former is not None and _is_same_basis(former, basis)
    if is_current and node._own_values is None:
        return True
    outputs = node._values if is_current else _infer_within_limits(node, operands)
    if outputs is not None and id(node) in own:
        outputs = _values_for_readers(node, outputs, table)
    if outputs is not None and not is_current:
        changes[id(node)] = node, outputs, basis
    return outputs is not None


def _is_out_of_order(
    nodes: Iterable[Node], own: Mapping[int, int], members: Members, table: GraphNodes
) -> bool:
    """Return whether some node may precede an operand, or can only be inferred with the whole graph.

    Args:
        nodes: the new and the detached (changed) nodes.
        own: the topological positions of the detached nodes, by `id`.
        members: the Parameters, Results and sinks of the model.
        table: the nodes of the graph before the edits.
    """
    declared = set(map(id, members.parameters))
    places: dict[int, int] = {}
    for node in nodes:
        last = -1
        for source in node._sources:
            place = None if source is None else _place(source._node, places, table)
            if place is None:
                return True
            if place > last:
                last = place
        place = places[id(node)] = own.get(id(node), last)
        layer = node.layer
        if layer.type == "Result":
            continue
        if node._is_attached or (place <= last and id(node) in own) or not infers_alone(layer):
            return True
        if layer.type == "Parameter" and id(node) not in declared:
            return True
    return False


def _place(node: Node, places: Mapping[int, int], table: GraphNodes) -> int | None:
    """Return the topological position of an operand, or None on a cycle or for a layer of another model."""
    if not node._is_attached:
        return places.get(id(node))
    return table.places[node.layer.id] if node._home is table else None


def _infer_within_limits(node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    try:
        return _infer_simple(node, operands)
    except LimitError:  # the visit of all nodes finds out whether the node is part of the model
        return None


def _values_for_readers(node: Node, outputs: Sequence[Value], table: GraphNodes) -> Sequence[Value] | None:
    """Return the output values of a detached (changed) node; unchanged values are the previous objects.

    Returns None if the value of an output changes that an unchanged node reads: that node would have to be inferred again.
    """
    values = []
    for index, value in enumerate(outputs):
        port = Port(node.layer.id, index)
        former = table.values.get(port)
        if former is not None and _is_equal(former, value):
            value = former
        elif any(reader.layer not in table.detached for reader in table.graph.readers(port)):
            return None
        values.append(value)
    return values


def _is_equal(one: Value, other: Value) -> bool:
    """Return whether two values are equal, comparing numeric contents by element."""
    if is_same(one, other):
        return True
    if one.data is None or other.data is None or one.type != other.type or one.data.dtype == object:
        return False
    return one.quantized is None and other.quantized is None and np.array_equal(one.data, other.data)


def _refresh_all(members: Members, edit: int) -> Refreshed | None:
    """Visit all nodes, and infer those that were changed or whose operands have new values."""
    nodes = reachable(members)
    declared = set(map(id, members.parameters))
    done: set[int] = set()
    changes: Changes = {}
    for node in nodes:
        sources, is_as_read = node._sources, True
        for source in sources:
            if source is None or id(source._node) not in done:  # on a cycle, say
                return None
            is_as_read = is_as_read and source._node._is_attached and id(source._node) not in changes
        done.add(id(node))
        if node.layer.type == "Result" or (is_as_read and _is_current(node)):
            continue
        if node.layer.type == "Parameter" and id(node) not in declared:
            return None
        operands = _operands(node, changes)
        if operands is None or not infers_alone(node.layer):
            return None
        basis = node._basis_of(operands)
        if (former := node._former_basis) is not None and _is_same_basis(former, basis):
            continue
        outputs = _infer_simple(node, operands)
        if outputs is None:
            return None
        changes[id(node)] = node, outputs, basis
    for node, values, basis in changes.values():
        node._detach()
        node._set_values(values, basis)
    return Refreshed(edit, nodes)


def _is_current(node: Node) -> bool:
    """Return whether a node still has the values inferred when its graph was read, and that graph was valid."""
    return node._is_attached and node._home is not None and node._home.is_plain


def _operands(node: Node, changes: Changes) -> list[Value] | None:
    """Return the values of a node's operands; None if an operand is an output that its node no longer has.

    ``changes`` holds the new values of nodes inferred again, which replace those stored in the nodes.
    """
    operands = []
    for source in node._sources:
        if source is None:
            continue
        producer, index = source._node, source._index
        change = changes.get(id(producer))
        values = producer._own_values if change is None else change[1]
        if values is None:
            operands.append(producer._value(index))
        elif index < len(values):
            operands.append(values[index])
        else:
            return None
    return operands


def _is_same_basis(one: Sequence[object], other: Sequence[object]) -> bool:
    if one == other:  # operations and values compare by identity
        return True
    if len(one) != len(other) or one[0] is not other[0] or one[1] != other[1]:
        return False
    for former, value in zip(one[2:], other[2:], strict=True):
        if former is not value and not is_same(former, value):  # type: ignore[arg-type]
            return False
    return True


def _infer_simple(node: Node, operands: Sequence[Value]) -> Sequence[Value] | None:
    layer = node.layer
    deadline.check(layer.where)
    try:
        outputs = infer_layer(layer, operands)
    except LimitError:
        raise
    except IRError:  # inference of the graph reports why
        return None
    return outputs if len(outputs) == len(layer.outputs) else None


def values_of(nodes: Mapping[int, Node]) -> Inferred:
    """Return the values of nodes, keyed by the ports of a derived graph."""
    inferred = Inferred()
    for layer, node in nodes.items():
        values = [node._value(0)] if node.layer.type == "Result" else node._values
        for index, value in enumerate(values):
            inferred[Port(layer, index)] = value
    return inferred


# The orders in which OpenVINO lists nodes.

_T = TypeVar("_T", bound=Hashable)


class Order(Protocol):
    """A function that orders nodes and their dependencies."""

    def __call__(self, ends: Iterable[_T], sources: Callable[[_T], Sequence[_T]], /) -> list[_T]:
        """Return ``ends`` and all their dependencies in order; ``sources`` returns the direct dependencies of an item."""


def depth_first(ends: Iterable[_T], sources: Callable[[_T], Sequence[_T]]) -> list[_T]:
    """Return the ends and their dependencies, starting with the last end, consumers first.

    >>> depth_first("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['b', 'x', 'a', 'y']
    """
    stack, order = list(ends), dict[_T, None]()
    while stack:
        node = stack.pop()
        if node not in order:
            order[node] = None
            stack += sources(node)
    return list(order)


def topological(ends: Iterable[_T], sources: Callable[[_T], Sequence[_T]]) -> list[_T]:
    """Return the ends and their dependencies, starting with the last end, producers first.

    An edge that closes a cycle is ignored.

    >>> topological("ab", {"a": "xy", "b": "x", "x": "", "y": ""}.__getitem__)
    ['x', 'b', 'y', 'a']
    """
    stack, opened, order = list(ends), set[_T](), dict[_T, None]()
    while stack:
        node = stack[-1]
        if node not in opened:
            opened.add(node)
            if waiting := [source for source in reversed(sources(node)) if source not in opened]:
                stack += waiting
                continue
        order[stack.pop()] = None
    return list(order)
