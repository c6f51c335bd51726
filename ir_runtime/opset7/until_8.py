"""The operations that opset7 added, as functions that create them. Written by ``make index``."""

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
    batch_dims: int = 0,
    name: str | None = None,
) -> Node:
    """Gather-7: Slices of ``data`` along ``axis`` at ``indices``, which are meant to lie inside.

    Args:
        data: tensor to pick from.
        indices: indices along the axis, of any shape; negative ones count from its end.
        axis: the axis, a scalar or one number; a negative one counts from the end.
        batch_dims: leading axes that data and indices share; negative: from the indices' end.
        name: the name of the node.
    """
    return make(
        "Gather",
        7,
        [data, indices, axis],
        {
            "batch_dims": batch_dims,
        },
        name,
    )
