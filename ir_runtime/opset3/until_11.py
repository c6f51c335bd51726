"""The operations that opset3 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "topk",
]


def topk(
    data: NodeInput,
    k: NodeInput,
    axis: int,
    mode: str,
    sort: str,
    index_element_type: TypeLike = "i32",
    name: str | None = None,
) -> Node:
    """TopK-3: The ``k`` largest or smallest elements of ``data`` along an axis, and their indices.

    Args:
        data: tensor to choose from.
        k: scalar: how many elements to choose, at least 1.
        axis: axis to choose along; a negative one counts from the end.
        mode: whether to choose the largest or the smallest.
        sort: value: best first; index: in the order of the data; none: in any order, here as value.
        index_element_type: element type of the indices, i64 or i32.
        name: the name of the node.
    """
    return make(
        "TopK",
        3,
        [data, k],
        {
            "axis": axis,
            "mode": mode,
            "sort": sort,
            "index_element_type": index_element_type,
        },
        name,
    )
