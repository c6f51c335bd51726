"""The operations that opset2 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make, roi_pooling
from ..api.nodes import Node

__all__ = [
    "batch_to_space",
    "reorg_yolo",
    "roi_pooling",
    "space_to_batch",
]


def batch_to_space(
    data: NodeInput,
    block_shape: NodeInput,
    crops_begin: NodeInput,
    crops_end: NodeInput,
    name: str | None = None,
) -> Node:
    """Create BatchToSpace-2.

    Move parts of the batch of ``data`` into blocks along the spatial axes, then crop these.

    Args:
        data: [batch, spatial...].
        block_shape: 1-D: length of a block along each axis; 1 for the batch.
        crops_begin: 1-D: elements to cut from the beginning of each axis; 0 for the batch.
        crops_end: 1-D: elements to cut from the end of each axis; 0 for the batch.
        name: the name of the node.
    """
    return make(
        "BatchToSpace",
        2,
        [data, block_shape, crops_begin, crops_end],
        {},
        name,
    )


def reorg_yolo(
    input: NodeInput,
    stride: int,
    name: str | None = None,
) -> Node:
    """ReorgYolo-1: Elements ``stride`` apart become channels of their own.

    Args:
        input: [N, C, H, W]; C at least stride ** 2.
        stride: distance of elements that go together, and what sides are divided by.
        name: the name of the node.
    """
    return make(
        "ReorgYolo",
        1,
        [input],
        {
            "stride": stride,
        },
        name,
    )


def space_to_batch(
    data: NodeInput,
    block_shape: NodeInput,
    pads_begin: NodeInput,
    pads_end: NodeInput,
    name: str | None = None,
) -> Node:
    """Create SpaceToBatch-2.

    Pad the spatial axes of ``data`` with zeros, then move blocks along them into the batch.

    Args:
        data: [batch, spatial...].
        block_shape: 1-D: length of a block along each axis; 1 for the batch.
        pads_begin: 1-D: zeros to add before each axis; none for the batch.
        pads_end: 1-D: zeros to add after each axis; none for the batch.
        name: the name of the node.
    """
    return make(
        "SpaceToBatch",
        2,
        [data, block_shape, pads_begin, pads_end],
        {},
        name,
    )
