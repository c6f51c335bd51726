"""The operations that opset2 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "mvn",
]


def mvn(
    data: NodeInput,
    across_channels: bool = False,
    normalize_variance: bool = False,
    eps: float = 1e-09,
    name: str | None = None,
) -> Node:
    """MVN-1: As version 6, over axes that are an attribute.

    Args:
        data: [N, C, ...] unless reduction_axes are given.
        across_channels: one mean for all channels, where there are no reduction_axes.
        normalize_variance: divide by the standard deviation, too.
        eps: added to the variance.
        name: the name of the node.
    """
    return make(
        "MVN",
        1,
        [data],
        {
            "across_channels": across_channels,
            "normalize_variance": normalize_variance,
            "eps": eps,
        },
        name,
    )
