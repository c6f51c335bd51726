"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "gather",
]


def gather(
    data: NodeInput,
    indices: NodeInput,
    axis: NodeInput,
    name: str | None = None,
) -> Node:
    """Gather-1: Slices of ``data`` along ``axis`` at ``indices``, without a batch.

    Args:
        data: tensor to pick from.
        indices: indices along the axis, of any shape; negative ones count from its end.
        axis: the axis, a scalar or one number; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "Gather",
        1,
        [data, indices, axis],
        {},
        name,
    )
