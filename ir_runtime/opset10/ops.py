"""The operations that opset10 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "is_finite",
    "is_inf",
    "is_nan",
    "unique",
]


def is_finite(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """IsFinite-10: Whether ``data`` is neither infinite nor NaN.

    Args:
        data: numbers to look at.
        name: the name of the node.
    """
    return make(
        "IsFinite",
        10,
        [data],
        {},
        name,
    )


def is_inf(
    data: NodeInput,
    attributes: Mapping[str, Any] | None = None,
    name: str | None = None,
) -> Node:
    """IsInf-10: Whether ``data`` is infinite, on either side or on one.

    Args:
        data: numbers to look at.
        attributes: the attributes by name.
        name: the name of the node.
    """
    return make(
        "IsInf",
        10,
        [data],
        {
            **(attributes or {}),
        },
        name,
    )


def is_nan(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """IsNaN-10: Whether ``data`` is not a number.

    Args:
        data: numbers to look at.
        name: the name of the node.
    """
    return make(
        "IsNaN",
        10,
        [data],
        {},
        name,
    )


def unique(
    data: NodeInput,
    axis: NodeInput | None = None,
    sorted: bool = True,
    index_element_type: TypeLike = "i64",
    count_element_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """Unique-10: The different elements of ``data``, or the different slices of it along ``axis``.

    Args:
        data: tensor to look through.
        axis: one number; absent, elements of the flattened data are compared.
        sorted: whether unique is in ascending order; otherwise in that of the data.
        index_element_type: type of indices and inverse, i64 or i32.
        count_element_type: type of counts, i64 or i32.
        name: the name of the node.
    """
    return make(
        "Unique",
        10,
        [data, axis],
        {
            "sorted": sorted,
            "index_element_type": index_element_type,
            "count_element_type": count_element_type,
        },
        name,
    )
