"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "broadcast",
    "non_max_suppression",
    "shape_of",
    "topk",
]


def broadcast(
    data: NodeInput,
    target_shape: NodeInput,
    axes_mapping: NodeInput | None = None,
    mode: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Broadcast-1: Repeat ``data`` along axes until it has the lengths in ``target_shape``.

    Args:
        data: tensor to broadcast.
        target_shape: 1-D; the lengths to reach.
        axes_mapping: 1-D; for each axis of the data its axis in the target, rising; for mode explicit.
        mode: whether the last axes are aligned, or those in axes_mapping.
        name: the name of the node.
    """
    return make(
        "Broadcast",
        1,
        [data, target_shape, axes_mapping],
        {
            "mode": mode,
        },
        name,
    )


def non_max_suppression(
    boxes: NodeInput,
    scores: NodeInput,
    max_output_boxes_per_class: NodeInput | None = None,
    iou_threshold: NodeInput | None = None,
    score_threshold: NodeInput | None = None,
    box_encoding: str = "corner",
    sort_result_descending: bool = True,
    name: str | None = None,
) -> Node:
    """Create NonMaxSuppression-1.

    Which of ``boxes`` are left of each class, when those with the best scores suppress what they overlap.

    Args:
        boxes: [batches, boxes, 4].
        scores: [batches, classes, boxes].
        max_output_boxes_per_class: one number; absent, it is 0.
        iou_threshold: one number: the overlap that suppresses; absent, it is 0.
        score_threshold: one number: what scores must be above; absent, it is 0.
        box_encoding: corner: y1, x1, y2, x2 of two corners opposite each other; center: x, y, width, height.
        sort_result_descending: order by score; if not, by batch entry and class, and by score within.
        name: the name of the node.
    """
    return make(
        "NonMaxSuppression",
        1,
        [boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold],
        {
            "box_encoding": box_encoding,
            "sort_result_descending": sort_result_descending,
        },
        name,
    )


def shape_of(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """ShapeOf-1: Lengths of ``data`` along each axis, always as i64.

    Args:
        data: tensor to measure.
        name: the name of the node.
    """
    return make(
        "ShapeOf",
        1,
        [data],
        {},
        name,
    )


def topk(
    data: NodeInput,
    k: NodeInput,
    axis: int,
    mode: str,
    sort: str,
    name: str | None = None,
) -> Node:
    """TopK-1: The ``k`` largest or smallest elements of ``data`` along an axis, and their indices.

    Args:
        data: tensor to choose from.
        k: scalar: how many elements to choose, at least 1.
        axis: axis to choose along; a negative one counts from the end.
        mode: whether to choose the largest or the smallest.
        sort: value: best first; index: in the order of the data; none: in any order, here as value.
        name: the name of the node.
    """
    return make(
        "TopK",
        1,
        [data, k],
        {
            "axis": axis,
            "mode": mode,
            "sort": sort,
        },
        name,
    )
