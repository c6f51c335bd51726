"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "interpolate",
]


def interpolate(
    image: NodeInput,
    output_shape: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """Interpolate-1: Resize ``data`` along axes to ``target`` lengths.

    Args:
        image: tensor to resize.
        output_shape: 1-D; the length of each of the axes.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "Interpolate",
        1,
        [image, output_shape],
        {
            **attrs,
        },
        name,
    )
