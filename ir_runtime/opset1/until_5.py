"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "batch_norm_inference",
]


def batch_norm_inference(
    data: NodeInput,
    gamma: NodeInput,
    beta: NodeInput,
    mean: NodeInput,
    variance: NodeInput,
    epsilon: float,
    name: str | None = None,
) -> Node:
    """Create BatchNormInference-1.

    As version 5, with the data as third input: the order files have, whatever the page shows.

    Args:
        data: [N, C, ...].
        gamma: factor of each channel, [C].
        beta: added to each channel, [C].
        mean: mean of each channel, [C].
        variance: variance of each channel, [C].
        epsilon: added to the variance.
        name: the name of the node.
    """
    return make(
        "BatchNormInference",
        1,
        [gamma, beta, data, mean, variance],
        {
            "epsilon": epsilon,
        },
        name,
    )
