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
from ..node import Node, Output, infers_alone
from .derive import Members, reachable

__all__ = ["Refreshed", "refresh", "values_of"]


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
    done: set[int] = set()
    changes: dict[int, tuple[Node, Sequence[Value], Sequence[object]]] = {}
    for node in nodes:
        sources, is_as_read = node._sources, True
        for source in sources:
            if source is None or id(source._node) not in done:  # as on a cycle
                return None
            is_as_read = is_as_read and source._node._is_attached and id(source._node) not in changes
        done.add(id(node))
        if node.layer.type == "Result" or (is_as_read and _is_current(node)):
            continue
        if node.layer.type == "Parameter" and id(node) not in declared:
            return None
        read = [_value(source, changes) for source in sources if source is not None]
        operands = [value for value in read if value is not None]
        if len(operands) < len(read) or not infers_alone(node.layer):
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
    """Return whether a node has the values that were inferred about the valid graph that it was read with."""
    return node._is_attached and node._home is not None and node._home.is_plain


def _value(
    source: Output, changes: Mapping[int, tuple[Node, Sequence[Value], Sequence[object]]]
) -> Value | None:
    """Return the value of an output; None if it has fewer than that."""
    change = changes.get(id(source._node))
    values = source._node._values if change is None else change[1]
    return values[source._index] if source._index < len(values) else None


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
        values = [node._value(0)] if node.layer.type == "Result" else node._values
        for index, value in enumerate(values):
            found[Port(layer, index)] = value
    return found
