"""The operations that opset5 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "non_max_suppression",
]


def non_max_suppression(
    boxes: NodeInput,
    scores: NodeInput,
    max_output_boxes_per_class: NodeInput | None = None,
    iou_threshold: NodeInput | None = None,
    score_threshold: NodeInput | None = None,
    soft_nms_sigma: NodeInput | None = None,
    box_encoding: str = "corner",
    sort_result_descending: bool = True,
    output_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """NonMaxSuppression-5: As version 4, with soft suppression, and with scores.

    Args:
        boxes: [batches, boxes, 4].
        scores: [batches, classes, boxes].
        max_output_boxes_per_class: one number; absent, it is 0.
        iou_threshold: one number: the overlap that suppresses; absent, it is 0.
        score_threshold: one number: what scores must be above; absent, it is 0.
        soft_nms_sigma: one number; above 0, an overlap lowers scores by exp(-overlap ** 2 / (2 * sigma));
            absent, it is 0.
        box_encoding: corner: y1, x1, y2, x2 of two corners opposite each other; center: x, y, width, height.
        sort_result_descending: order by score; if not, by batch entry and class, and by score within.
        output_type: element type of the indices, i64 or i32.
        name: the name of the node.
    """
    return make(
        "NonMaxSuppression",
        5,
        [boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma],
        {
            "box_encoding": box_encoding,
            "sort_result_descending": sort_result_descending,
            "output_type": output_type,
        },
        name,
    )
