"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "squeeze",
]


def squeeze(
    data: NodeInput,
    axes: NodeInput,
    name: str | None = None,
) -> Node:
    """Create Squeeze-1.

    Remove ``axes`` of length 1 from ``data``; the rank does not depend on lengths still unknown.

    Args:
        data: tensor to squeeze.
        axes: axes to remove; none, or an empty list, means all of length 1.
        name: the name of the node.
    """
    return make(
        "Squeeze",
        1,
        [data, axes],
        {},
        name,
    )
