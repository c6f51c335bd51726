"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "one_hot",
]


def one_hot(
    indices: NodeInput,
    depth: NodeInput,
    on_value: NodeInput,
    off_value: NodeInput,
    axis: int,
    name: str | None = None,
) -> Node:
    """OneHot-1: For each of ``indices`` a vector with ``on_value`` at that class and ``off_value`` elsewhere.

    Args:
        indices: the class of each element.
        depth: number of classes, a scalar.
        on_value: what stands at the class, a scalar.
        off_value: what stands elsewhere, a scalar.
        axis: where the output has the new axis; negative ones count from the end.
        name: the name of the node.
    """
    return make(
        "OneHot",
        1,
        [indices, depth, on_value, off_value],
        {
            "axis": axis,
        },
        name,
    )
