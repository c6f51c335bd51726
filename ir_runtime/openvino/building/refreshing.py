"""Re-infer only changed nodes and the nodes that depend on them."""

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

__all__ = ["Refreshed", "refresh", "values_of"]

_VARIABLES = frozenset({"Assign", "ReadValue"})


class Refreshed(NamedTuple):
    """The nodes of a valid model, with up-to-date inferred values."""

    edit: int
    """The number of the last change before."""
    nodes: Sequence[Node]


def refresh(members: Members, edit: int) -> Refreshed | None:
    """Re-infer nodes that have changed themselves or in their inputs.

    Returns:
        The nodes, or None if the graph must be derived and inferred instead: on errors, and for variables, bodies and custom operations. No node is changed then.
    """
    nodes = reachable(members)
    declared = set(map(id, members.parameters))
    if any(node.layer.type == "Parameter" and id(node) not in declared for node in nodes):
        return None
    known: dict[int, Sequence[Value]] = {}
    changes: list[tuple[Node, Sequence[Value], Sequence[object]]] = []
    for node in nodes:
        read = _input_values(node, known)
        if read is None:
            return None
        if node.layer.type == "Result":
            known[id(node)] = read
            continue
        basis = node._basis_of(read)
        if node._basis is not None and _is_same_basis(node._basis, basis):
            known[id(node)] = node._own_values
            continue
        outputs = _infer_simple(node, read)
        if outputs is None:
            return None
        known[id(node)] = outputs
        changes.append((node, outputs, basis))
    for node, values, basis in changes:
        node._set_values(values, basis)
    return Refreshed(edit, nodes)


def _input_values(node: Node, values_by_node: Mapping[int, Sequence[Value]]) -> list[Value] | None:
    """Return the input values of a node; None if one is unknown or not specific enough."""
    op = node.layer.op
    if op is None or op.needs("visit") or isinstance(op, CustomOperation) or node.layer.type in _VARIABLES:
        return None
    if node._home is not None:
        return None
    inputs = []
    for source in node._own_sources:
        values = () if source is None else values_by_node.get(id(source._node), ())
        if source is None or source._index >= len(values):  # on a cycle, the values are unknown, too
            return None
        inputs.append(values[source._index])
    return inputs


def _is_same_basis(one: Sequence[object], other: Sequence[object]) -> bool:
    if len(one) != len(other) or one[0] is not other[0] or one[1] != other[1]:
        return False
    return all(a is b or is_same(a, b) for a, b in zip(one[2:], other[2:], strict=True))  # type: ignore[arg-type]


def _infer_simple(node: Node, read: Sequence[Value]) -> Sequence[Value] | None:
    layer = node.layer
    deadline.check(layer.where)
    try:
        outputs = infer_layer(layer, read)
    except LimitError:
        raise
    except IRError:  # inference of the graph reports why
        return None
    return outputs if len(outputs) == len(layer.outputs) else None


def values_of(nodes: Mapping[int, Node]) -> Inferred:
    """Return the values of nodes by their layers in a derived graph."""
    found = Inferred()
    for layer, node in nodes.items():
        values = [node._value(0)] if node.layer.type == "Result" else node._own_values
        for index, value in enumerate(values):
            found[Port(layer, index)] = value
    return found
