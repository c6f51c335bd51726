"""The operations that opset2 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "gelu",
]


def gelu(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Gelu-2: As version 7 in ``erf`` mode.

    Args:
        node: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "Gelu",
        2,
        [node],
        {},
        name,
    )
