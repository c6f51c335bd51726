"""Infer again only nodes that were changed, and those that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..._util import deadline
from ...analysis.former import is_same
from ...analysis.infer import Inferred
from ...analysis.infer_layer import infer_layer
from ...errors import IRError, LimitError
from ...ir.graph import Port
from ...ir.tensor import Value
from ..custom_operation import CustomOperation
from ..node import Node
from .derive import Members, reachable

__all__ = ["Refreshed", "refreshed", "values_of"]

_VARIABLES = frozenset({"Assign", "ReadValue"})


class Refreshed(NamedTuple):
    """The nodes of a model that is valid, each of which has the values that follow from what it reads."""

    edit: int
    """The number of the last change before."""
    nodes: Sequence[Node]


def refreshed(members: Members, edit: int) -> Refreshed | None:
    """Infer nodes whose inputs, or which themselves, have changed since they were inferred.

    Returns:
        The nodes, or None where deriving and inferring the graph must decide: if something is wrong, and for
        variables, bodies and operations of programs. Then no node was changed.
    """
    nodes = reachable(members)
    declared = set(map(id, members.parameters))
    if any(node.layer.type == "Parameter" and id(node) not in declared for node in nodes):
        return None
    known: dict[int, Sequence[Value]] = {}
    changes: list[tuple[Node, Sequence[Value], Sequence[object]]] = []
    for node in nodes:
        read = _read(node, known)
        if read is None:
            return None
        if node.layer.type == "Result":
            known[id(node)] = read
            continue
        basis = node._basis_of(read)
        if node._basis is not None and _is_same_basis(node._basis, basis):
            known[id(node)] = node._own_values
            continue
        found = _infer_simple(node, read)
        if found is None:
            return None
        known[id(node)] = found
        changes.append((node, found, basis))
    for node, values, basis in changes:
        node._set_values(values, basis)
    return Refreshed(edit, nodes)


def _read(node: Node, known: Mapping[int, Sequence[Value]]) -> list[Value] | None:
    """Return what a node reads; None where it is not known, or says too little of what follows from it."""
    op = node.layer.op
    if op is None or op.needs("visit") or isinstance(op, CustomOperation) or node.layer.type in _VARIABLES:
        return None
    if node._home is not None:
        return None
    found = []
    for source in node._own_sources:
        values = () if source is None else known.get(id(source._node), ())
        if source is None or source._index >= len(values):  # of a cycle, nothing is known yet, either
            return None
        found.append(values[source._index])
    return found


def _is_same_basis(one: Sequence[object], other: Sequence[object]) -> bool:
    if len(one) != len(other) or one[0] is not other[0] or one[1] != other[1]:
        return False
    return all(a is b or is_same(a, b) for a, b in zip(one[2:], other[2:], strict=True))  # type: ignore[arg-type]


def _infer_simple(node: Node, read: Sequence[Value]) -> Sequence[Value] | None:
    layer = node.layer
    deadline.check(layer.where)
    try:
        found = infer_layer(layer, read)
    except LimitError:
        raise
    except IRError:  # inferring the graph says why
        return None
    return found if len(found) == len(layer.outputs) else None


def values_of(nodes: Mapping[int, Node]) -> Inferred:
    """Return the values of nodes by the layers that they are in a derived graph."""
    found = Inferred()
    for layer, node in nodes.items():
        values = [node._value(0)] if node.layer.type == "Result" else node._own_values
        for index, value in enumerate(values):
            found[Port(layer, index)] = value
    return found
