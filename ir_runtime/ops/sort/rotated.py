"""Non-maximum suppression (NMS) of rotated boxes."""

from __future__ import annotations

import numpy as np

from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, attr, op
from ..boxes import T_WIDE_NUMBER
from ..kernels.boxes import descending
from ..kernels.rotated import rotated_nms
from .suppression import SCORES, Found, NmsWithScores


@op("NMSRotated-13")
class NMSRotated(NmsWithScores):
    """Select rotated ``boxes`` of each class; those with the best scores suppress those they overlap."""

    boxes = Input(T_FLOAT, "[batches, boxes, 5]: x and y of the centre, width, height, angle in radians")
    scores = Input(T_FLOAT, SCORES, mixed=True)
    max_output_boxes_per_class = Input(T_INDEX, "one number")
    iou_threshold = Input(T_WIDE_NUMBER, "one number: the overlap that is still allowed")
    score_threshold = Input(T_WIDE_NUMBER, "one number: what scores must be above")

    clockwise: bool = attr(True, doc="whether angles turn clockwise")

    box_size = 5

    def infer(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value,
        iou_threshold: Value,
        score_threshold: Value,
    ) -> tuple[PartialShape, ...]:
        rows = self.rows(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
        return rows, rows, PartialShape([1])

    def evaluate(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array,
        iou_threshold: Array,
        score_threshold: Array,
    ) -> tuple[Array, Array, Array]:
        selected = self.select(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
        return self.packed(*selected)

    def corners(self, boxes: Array) -> Array:
        """Return the boxes with clockwise angles."""
        return boxes if self.clockwise else boxes * np.array([1, 1, 1, 1, -1], boxes.dtype)

    def select_in_class(
        self, boxes: Array, scores: Array, limit: int, iou: float, above: float, sigma: float
    ) -> Found:
        order = descending(scores, above)
        places = order[rotated_nms(boxes[order], iou, limit)]
        return places, scores[places]
