"""Non-maximum suppression (NMS) of boxes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, T_INDEX, Input, Op, Output, attr, check_index_types, op
from ..boxes import T_BOX, T_NUMBER, T_WIDE_NUMBER, at_most, box_counts, check_number, number
from ..kernels.boxes import as_float, descending, greedy_nms, soft_nms

SCORES = "[batches, classes, boxes]"
IOU_THRESHOLD = "one number: the overlap that suppresses; absent, it is 0"
SCORE_THRESHOLD = "one number: what scores must be above; absent, it is 0"

Found = tuple[Array, Array]


class NonMaxSuppressionBase(Op):
    """Base of the versions of NonMaxSuppression."""

    decisions = (
        "a box is kept if its score is above score_threshold, as in OpenVINO; the pages drop those below, and leave out which of both an equal one is",
        "an overlap equal to iou_threshold suppresses a box, as in OpenVINO; the pages ask for more",
    )

    flops_per_element = 0
    flops_per_input = {"scores": 1}

    boxes = Input(T_BOX, "[batches, boxes, 4]")
    scores = Input(T_BOX, SCORES, mixed=True)
    max_output_boxes_per_class = Input(T_INDEX, "one number; absent, it is 0", optional=True)
    iou_threshold = Input(T_NUMBER, IOU_THRESHOLD, optional=True)
    score_threshold = Input(T_NUMBER, SCORE_THRESHOLD, optional=True)

    sort_result_descending: bool = attr(
        True, doc="order by score; if not, by batch entry and class, and by score within"
    )

    most_rank = 0
    """The highest rank of inputs that are one number."""

    def corners(self, boxes: Array) -> Array:
        """Convert the boxes to corners."""
        raise NotImplementedError

    def rows(self, boxes: Value, scores: Value, limit: Value | None, *numbers: Value | None) -> PartialShape:
        """Return a shape with as many rows of three as boxes may be kept.

        For versions 1, 3 and 4 OpenVINO infers a fixed number of rows (too low for 1 and 3), and returns the
        actual number; when compiling, it infers the same as here.
        """
        for port, value in zip(self.inputs[2:], (limit, *numbers), strict=False):
            check_number(value, port.name, self.most_rank)
        batches, classes, count = box_counts(boxes, scores, self.box_size)
        per_class = at_most(limit)
        if per_class is None or (count.max is not None and count.max < per_class):
            per_class = count.max
        factors = (per_class, batches.max, classes.max)
        static = [f for f in factors if f is not None]
        most = 0 if 0 in static else math.prod(static) if len(static) == 3 else None
        return PartialShape([Dimension.between(0, most), 3])

    box_size = 4

    def select(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None,
        iou_threshold: Array | None,
        score_threshold: Array | None,
        sigma: Array | None = None,
    ) -> Found:
        """Return the kept boxes as [batch entry, class, box], and their scores."""
        limit = int(number(max_output_boxes_per_class))
        thresholds = number(iou_threshold), number(score_threshold), number(sigma)
        corners, ranked = self.corners(as_float(boxes)), as_float(scores)
        indices, left = [np.zeros((0, 3), np.int64)], [np.zeros(0, ranked.dtype)]
        for batch, label in np.ndindex(*scores.shape[:2]) if scores.size else ():
            places, final = self.select_in_class(corners[batch], ranked[batch, label], limit, *thresholds)
            indices.append(np.insert(places[:, None], 0, [[batch], [label]], axis=1))
            left.append(final)
        triples, found_scores = np.concatenate(indices), np.concatenate(left)
        if self.sort_result_descending:
            order = np.argsort(-found_scores, kind="stable")
            triples, found_scores = triples[order], found_scores[order]
        return triples, found_scores

    def select_in_class(
        self, boxes: Array, scores: Array, limit: int, iou: float, above: float, sigma: float
    ) -> Found:
        """Return the kept boxes of one class: indices and scores."""
        if limit <= 0:
            return np.zeros(0, np.int64), scores[:0]
        if sigma > 0:
            return soft_nms(boxes, scores, sigma, limit, above=above, cut=self.soft_cut(iou))
        order = descending(scores, above)
        places = order[greedy_nms(boxes[order], iou, limit, inclusive=True)]
        return places, scores[places]

    def soft_cut(self, iou: float) -> float | None:
        """Return the overlap that suppresses a box even with soft suppression."""
        return None


class AxisAlignedNms(NonMaxSuppressionBase):
    """Versions whose boxes have sides along the axes."""

    box_encoding: Literal["corner", "center"] = attr(
        "corner", doc="corner: y1, x1, y2, x2 of two corners opposite each other; center: x, y, width, height"
    )

    def corners(self, boxes: Array) -> Array:
        """Convert the boxes to corners, the lower coordinates first."""
        corners = np.empty(boxes.shape, boxes.dtype)
        # By coordinate over all boxes: NumPy is slow on rows of two.
        for low, high in ((0, 2), (1, 3)):
            first, second = boxes[..., low], boxes[..., high]
            if self.box_encoding == "center":
                first, second = first - second / 2, first + second / 2
            np.minimum(first, second, out=corners[..., low])
            np.maximum(first, second, out=corners[..., high])
        return corners


class IndicesOnlyNms(AxisAlignedNms):
    """Versions with one output, in as many rows as there are boxes left."""

    boxes = Input(T_FLOAT, "[batches, boxes, 4]")
    scores = Input(T_FLOAT, SCORES, mixed=True)
    iou_threshold = Input(T_WIDE_NUMBER, IOU_THRESHOLD, optional=True)
    score_threshold = Input(T_WIDE_NUMBER, SCORE_THRESHOLD, optional=True)

    def infer(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value | None = None,
        iou_threshold: Value | None = None,
        score_threshold: Value | None = None,
    ) -> PartialShape:
        return self.rows(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)

    def evaluate(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
    ) -> Array:
        triples, _ = self.select(boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold)
        return triples.astype(self.index_type().dtype)

    def index_type(self) -> ElementType:
        """Return the element type of the indices."""
        return ElementType.i64


@op("NonMaxSuppression-1")
class NonMaxSuppression1(IndicesOnlyNms):
    """Select ``boxes`` of each class; those with the best scores suppress those they overlap."""

    selected_indices = Output(ElementType.i64, "[n, 3]: batch entry, class and box of each")


class TypedIndicesNms(IndicesOnlyNms):
    """Versions with an index type."""

    selected_indices = Output("output_type", "[n, 3]: batch entry, class and box of each")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(output_type=self.output_type)

    def index_type(self) -> ElementType:
        return self.output_type


@op("NonMaxSuppression-3")
class NonMaxSuppression3(TypedIndicesNms):
    """As version 1, with a choice of index types."""


@op("NonMaxSuppression-4")
class NonMaxSuppression4(TypedIndicesNms):
    """As version 3; only plugins that need static shapes return a larger output."""


class NmsWithScores(NonMaxSuppressionBase):
    """Versions that also return scores and the number of kept boxes."""

    selected_indices = Output("output_type", "[n, 3]: batch entry, class and box of each")
    selected_scores = Output(ElementType.f32, "[n, 3]: batch entry, class and score of each")
    valid_outputs = Output("output_type", "[1]: how many there are")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    most_rank = 1

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(output_type=self.output_type)

    def packed(self, triples: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Return the outputs."""
        index = self.output_type.dtype
        with_scores = np.empty(triples.shape, np.float32)
        for column, numbers in enumerate((triples[:, 0], triples[:, 1], scores)):
            with_scores[:, column] = numbers
        return triples.astype(index), with_scores, np.array([len(triples)], index)


class SoftNms(NmsWithScores, AxisAlignedNms):
    """Versions with soft suppression, which lowers scores."""

    soft_nms_sigma = Input(
        T_NUMBER,
        "one number; above 0, an overlap lowers scores by exp(-overlap ** 2 / (2 * sigma)); absent, it is 0",
        optional=True,
    )

    def infer(
        self,
        boxes: Value,
        scores: Value,
        max_output_boxes_per_class: Value | None = None,
        iou_threshold: Value | None = None,
        score_threshold: Value | None = None,
        soft_nms_sigma: Value | None = None,
    ) -> tuple[PartialShape, ...]:
        thresholds = iou_threshold, score_threshold, soft_nms_sigma
        rows = self.rows(boxes, scores, max_output_boxes_per_class, *thresholds)
        return rows, rows, PartialShape([1])

    def evaluate(
        self,
        boxes: Array,
        scores: Array,
        max_output_boxes_per_class: Array | None = None,
        iou_threshold: Array | None = None,
        score_threshold: Array | None = None,
        soft_nms_sigma: Array | None = None,
    ) -> tuple[Array, Array, Array]:
        selected = self.select(
            boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma
        )
        return self.packed(*selected)


@op("NonMaxSuppression-5", spec="sort/no-max-suppression-5")
class NonMaxSuppression5(SoftNms):
    """As version 4, with soft suppression; also returns scores.

    Where scores are lowered, boxes that overlap by iou_threshold are still suppressed: so on the page
    and in the reference; the plugin treats this version as version 9.
    """

    def soft_cut(self, iou: float) -> float | None:
        return iou


@op("NonMaxSuppression-9")
class NonMaxSuppression9(SoftNms):
    """As version 5, but where scores are lowered, iou_threshold has no meaning."""
