"""The operations that opset5 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "gather_nd",
]


def gather_nd(
    data: NodeInput,
    indices: NodeInput,
    batch_dims: int = 0,
    name: str | None = None,
) -> Node:
    """GatherND-5: The slices of ``data`` that the tuples in ``indices`` name; axes of the batch become one.

    Args:
        data: tensor to take from.
        indices: tuples along the last axis, each naming an element or a slice of data.
        batch_dims: how many leading axes data and indices have in common.
        name: the name of the node.
    """
    return make(
        "GatherND",
        5,
        [data, indices],
        {
            "batch_dims": batch_dims,
        },
        name,
    )
