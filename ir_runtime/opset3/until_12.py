"""The operations that opset3 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "scatter_elements_update",
]


def scatter_elements_update(
    data: NodeInput,
    indices: NodeInput,
    updates: NodeInput,
    axis: NodeInput,
    name: str | None = None,
) -> Node:
    """Create ScatterElementsUpdate-3.

    Replace the elements of ``data`` that ``indices`` name along ``axis`` with ``updates``.

    Args:
        data: tensor to copy.
        indices: for each update its place along axis; a negative one counts from the end.
        updates: of the shape of indices; places along other axes are as in data.
        axis: one number; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "ScatterElementsUpdate",
        3,
        [data, indices, updates, axis],
        {},
        name,
    )
