"""The operations that opset3 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "assign",
    "read_value",
]


def assign(
    new_value: NodeInput,
    variable_id: str,
    name: str | None = None,
) -> Node:
    """Assign-3: Let the variable hold ``new_value``, for the next run to read.

    Args:
        new_value: what the variable holds from now on.
        variable_id: the name of the variable.
        name: the name of the node.
    """
    return make(
        "Assign",
        3,
        [new_value],
        {
            "variable_id": variable_id,
        },
        name,
    )


def read_value(
    init_value: NodeInput,
    variable_id: str,
    name: str | None = None,
) -> Node:
    """ReadValue-3: What the variable holds; ``initial_value`` where it is not set.

    Args:
        init_value: what it holds at first.
        variable_id: the name of the variable.
        name: the name of the node.
    """
    return make(
        "ReadValue",
        3,
        [init_value],
        {
            "variable_id": variable_id,
        },
        name,
    )
