"""The operations that opset4 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "scatter_nd_update",
]


def scatter_nd_update(
    data: NodeInput,
    indices: NodeInput,
    updates: NodeInput,
    name: str | None = None,
) -> Node:
    """ScatterNDUpdate-4: Replace the elements or slices of ``data`` that ``indices`` name with ``updates``.

    Args:
        data: tensor to copy.
        indices: tuples along the last axis, each naming an element or a slice of data.
        updates: an element or a slice for each tuple.
        name: the name of the node.
    """
    return make(
        "ScatterNDUpdate",
        4,
        [data, indices, updates],
        {},
        name,
    )
