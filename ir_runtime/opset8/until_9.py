"""The operations that opset8 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "multiclass_nms",
]


def multiclass_nms(
    boxes: NodeInput,
    scores: NodeInput,
    sort_result_type: str = "none",
    sort_result_across_batch: bool = False,
    output_type: TypeLike = "i64",
    iou_threshold: float = 0.0,
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    nms_eta: float = 1.0,
    normalized: bool = True,
    name: str | None = None,
) -> Node:
    """MulticlassNms-8: Which of ``boxes`` are left of each class, when the best suppress those they overlap.

    Args:
        boxes: [images, boxes, 4]: x1, y1, x2, y2.
        scores: [images, classes, boxes].
        sort_result_type: what boxes are ordered by.
        sort_result_across_batch: whether boxes are ordered over all images.
        output_type: element type of indices and counts, i64 or i32.
        iou_threshold: the overlap within a class that suppresses.
        score_threshold: what scores are compared with.
        nms_top_k: how many boxes of a class are compared at most; -1 means all.
        keep_top_k: how many boxes of an image are left at most; -1 means all.
        background_class: the class that is not looked for; -1 if there is none.
        nms_eta: what iou_threshold is multiplied by for each box left, while it is above 0.5.
        normalized: whether sides are differences of coordinates; if not, 1 more.
        name: the name of the node.
    """
    return make(
        "MulticlassNms",
        8,
        [boxes, scores],
        {
            "sort_result_type": sort_result_type,
            "sort_result_across_batch": sort_result_across_batch,
            "output_type": output_type,
            "iou_threshold": iou_threshold,
            "score_threshold": score_threshold,
            "nms_top_k": nms_top_k,
            "keep_top_k": keep_top_k,
            "background_class": background_class,
            "nms_eta": nms_eta,
            "normalized": normalized,
        },
        name,
    )
