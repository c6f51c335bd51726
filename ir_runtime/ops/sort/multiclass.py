"""Multiclass and matrix non-maximum suppression (NMS)."""

from __future__ import annotations

from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..._util.arrays import DType
from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_INDEX_64, Input, Op, Output, attr, check_index_types, op
from ..boxes import T_BOX, box_counts
from ..kernels.boxes import as_float, descending, greedy_nms, iou


class KeptBoxes(NamedTuple):
    """The kept boxes as columns, a row per box."""

    image: Array
    label: Array
    place: Array
    score: Array

    def take(self, order: Array) -> KeptBoxes:
        """Return some of the rows."""
        return KeptBoxes(*(column[order] for column in self))


def nothing(dtype: DType) -> KeptBoxes:
    """Return no rows."""
    none = np.zeros(0, np.int64)
    return KeptBoxes(none, none, none, np.zeros(0, dtype))


def joined(parts: list[KeptBoxes]) -> KeptBoxes:
    """Return the rows of all parts."""
    return KeptBoxes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class BatchedNms(Op):
    """The common parts of operations that select boxes by class, then by image."""

    flops_per_element = 0
    flops_per_input = {"scores": 1}

    boxes = Input(T_BOX, "[images, boxes, 4]: x1, y1, x2, y2")
    scores = Input(T_BOX, "[images, classes, boxes]")
    selected_outputs = Output(T_BOX, "[n, 6]: class, score, x1, y1, x2, y2")
    selected_indices = Output("output_type", "[n, 1]: where each box is, counted over all images")
    selected_num = Output("output_type", "[images]: how many boxes are of each")

    sort_result_type: Literal["none", "score", "classid"] = attr("none", doc="what boxes are ordered by")
    sort_result_across_batch: bool = attr(False, doc="whether boxes are ordered over all images")
    output_type: ElementType = attr(ElementType.i64, doc="element type of indices and counts, i64 or i32")
    score_threshold: float = attr(0.0, doc="what scores are compared with")
    nms_top_k: int = attr(-1, ge=-1, doc="how many boxes of a class are compared at most; -1 means all")
    keep_top_k: int = attr(-1, ge=-1, doc="how many boxes of an image are left at most; -1 means all")
    background_class: int = attr(-1, ge=-1, doc="the class that is not looked for; -1 if there is none")
    normalized: bool = attr(True, doc="whether sides are differences of coordinates; if not, 1 more")

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(output_type=self.output_type)

    by_class_within: ClassVar[bool] = True
    """Whether boxes of an image are sorted by class if sort_result is classid."""

    def shapes(self, images: Dimension, classes: Dimension, count: Dimension) -> tuple[PartialShape, ...]:
        """Return the shapes of the outputs."""
        per_class = count.max if self.nms_top_k < 0 else _least(count.max, self.nms_top_k)
        of_image: Interval = Dimension.between(0, per_class) * classes
        if self.keep_top_k >= 0:
            of_image = Dimension.between(0, _least(of_image.max, self.keep_top_k))
        rows = Dimension.between(0, (of_image * images).max)
        return PartialShape([rows, 6]), PartialShape([rows, 1]), PartialShape([images])

    def of_shared(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Return the outputs if classes share boxes."""
        corners, ranked = as_float(boxes), as_float(scores)
        parts = [self.select(i, corners[i : i + 1], ranked[i]) for i in range(len(boxes))]
        return self.outputs_of(boxes, [nothing(ranked.dtype), *parts])

    def outputs_of(self, boxes: Array, parts: list[KeptBoxes]) -> tuple[Array, Array, Array]:
        """Return the outputs for the kept boxes of each image, preceded by an empty part."""
        corners, left = as_float(boxes), self.ordered(parts)
        flat = left.image * boxes.shape[1] + left.place
        counts = [len(part.score) for part in parts[1:]]
        return self.packed(left, corners[left.image, left.place], flat, counts, boxes.dtype)

    def select_in_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Return the kept boxes of one class: indices and scores."""
        raise NotImplementedError

    def select(self, image: int, boxes: Array, scores: Array) -> KeptBoxes:
        """Return the kept boxes of an image, given boxes [classes or 1, n, 4] and scores [classes, n]."""
        parts = [nothing(scores.dtype)]
        for label in range(len(scores)) if scores.size else ():
            if label != self.background_class:
                place, score = self.select_in_class(boxes[label if len(boxes) > 1 else 0], scores[label])
                parts.append(KeptBoxes(np.full(len(place), image), np.full(len(place), label), place, score))
        return self.best(joined(parts))

    def best(self, left: KeptBoxes) -> KeptBoxes:
        """Return the best boxes of an image, at most keep_top_k."""
        order = np.lexsort((left.place, left.label, -left.score))
        return left.take(order if self.keep_top_k < 0 else order[: self.keep_top_k])

    def ordered(self, parts: list[KeptBoxes]) -> KeptBoxes:
        """Return the boxes of all images in the requested order."""
        left = joined(parts)
        if self.sort_result_across_batch and self.sort_result_type == "score":
            return left.take(np.lexsort((left.place, left.label, left.image, -left.score)))
        if self.sort_result_type == "classid" and (self.sort_result_across_batch or self.by_class_within):
            across = (left.image, left.label) if self.sort_result_across_batch else (left.label, left.image)
            return left.take(np.lexsort((left.place, -left.score, *across)))
        return left

    def packed(
        self, left: KeptBoxes, boxes: Array, flat: Array, counts: list[int], kind: np.dtype[np.generic]
    ) -> tuple[Array, Array, Array]:
        """Return the outputs from the box and the number of each row."""
        index = self.output_type.dtype
        head = np.stack([left.label.astype(boxes.dtype), left.score.astype(boxes.dtype)], axis=1)
        rows = np.concatenate([head, boxes], axis=1).astype(kind)
        return rows, flat.astype(index)[:, None], np.array(counts, index)


@op("MatrixNms-8", spec="sort/matrix-non-max-suppression-8")
class MatrixNms(BatchedNms):
    """Select ``boxes`` of each class; each box lowers the scores of those it overlaps.

    All at once: a score is lowered by the one overlap that lowers it most, the less the more the other
    box is overlapped itself. In OpenVINO, sort_result_type only matters over all images: of one, boxes
    come best first.
    """

    by_class_within = False

    decay_function: Literal["linear", "gaussian"] = attr("linear", doc="how much an overlap lowers a score")
    gaussian_sigma: float = attr(2.0, doc="how fast the gaussian falls")
    post_threshold: float = attr(0.0, doc="what lowered scores must be above")

    def infer(self, boxes: Value, scores: Value) -> tuple[PartialShape, ...]:
        return self.shapes(*box_counts(boxes, scores))

    def evaluate(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        return self.of_shared(boxes, scores)

    def select_in_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        of = scores.dtype.type
        order = descending(scores, self.score_threshold, self.nms_top_k)
        if not order.size:
            return order, scores[order]
        ranked = boxes[order]
        is_better = np.tri(len(order), k=-1, dtype=np.bool_)
        overlap = iou(ranked[:, None], ranked[None], 0 if self.normalized else 1)
        overlap = np.where(is_better, overlap, of(0))
        most = np.fmax.reduce(overlap, axis=1)  # by a better box; NaN is ignored
        if self.decay_function == "gaussian":
            decay = np.exp((most**2 - overlap**2) * of(self.gaussian_sigma))
        else:
            decay = (1 - overlap) / (1 - most + of(1e-10))
        decay = np.fmin.reduce(np.where(is_better, decay, of(1)), axis=1)
        final = scores[order] * np.minimum(decay, of(1))
        keep = final > self.post_threshold
        return order[keep], final[keep]


class MulticlassNmsBase(BatchedNms):
    """Base of the versions of MulticlassNms. A score of score_threshold is enough."""

    iou_threshold: float = attr(0.0, doc="the overlap within a class that suppresses")
    nms_eta: float = attr(
        1.0, ge=0, le=1, doc="what iou_threshold is multiplied by for each box left, while it is above 0.5"
    )

    def select_in_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        order = np.flatnonzero(scores >= self.score_threshold)
        order = order[descending(scores[order])]
        if self.nms_top_k >= 0:
            order = order[: self.nms_top_k]
        extra = 0 if self.normalized else 1
        selected = greedy_nms(
            boxes[order], self.iou_threshold, extra=extra, inclusive=True, apart=False, eta=self.nms_eta
        )
        return order[selected], scores[order[selected]]


@op("MulticlassNms-8", spec="sort/multiclass-non-max-suppression-8")
class MulticlassNms8(MulticlassNmsBase):
    """Select ``boxes`` of each class; the best suppress those they overlap."""

    def infer(self, boxes: Value, scores: Value) -> tuple[PartialShape, ...]:
        return self.shapes(*box_counts(boxes, scores))

    def evaluate(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        return self.of_shared(boxes, scores)


@op("MulticlassNms-9", spec="sort/multiclass-non-max-suppression-9")
class MulticlassNms9(MulticlassNmsBase):
    """As version 8; classes may have separate boxes, with those of all images in one list."""

    boxes = Input(T_BOX, "[images, boxes, 4]; or [classes, boxes, 4], if there is roisnum: x1, y1, x2, y2")
    scores = Input(T_BOX, "[images, classes, boxes], or [classes, boxes]")
    roisnum = Input(T_INDEX_64, "[images]: how many of the boxes are of each", optional=True)

    def infer(self, boxes: Value, scores: Value, roisnum: Value | None = None) -> tuple[PartialShape, ...]:
        if roisnum is None:
            return self.shapes(*box_counts(boxes, scores))
        expected = PartialShape([-1, -1, 4])
        merged = boxes.shape.merge(expected)
        if merged is None:
            raise InferenceError(
                f"boxes must be [classes, boxes, 4], as there is roisnum, found {boxes.shape}",
                clause="boxes is [classes, boxes, 4] with roisnum",
            )
        of_scores = scores.shape.merge(PartialShape(merged[:2]))
        if of_scores is None:
            raise InferenceError(
                f"scores must be {PartialShape(merged[:2])}, the [classes, boxes] of boxes {boxes.shape}, as there "
                f"is roisnum, found {scores.shape}",
                clause="scores is [classes, boxes] with roisnum",
            )
        images = roisnum.shape.merge(PartialShape([-1]))
        if images is None:
            raise InferenceError(f"roisnum must be 1-D, found {roisnum.shape}", clause="roisnum is 1-D")
        check_total(roisnum, of_scores[1])
        return self.shapes(images[0], of_scores[0], of_scores[1])

    def evaluate(
        self, boxes: Array, scores: Array, roisnum: Array | None = None
    ) -> tuple[Array, Array, Array]:
        if roisnum is None:
            return self.of_shared(boxes, scores)
        corners, ranked = as_float(boxes), as_float(scores)
        sizes = np.maximum(roisnum.astype(np.int64), 0)
        ends = np.cumsum(sizes)
        check_total(Value.constant(roisnum), Dimension(boxes.shape[1]))
        starts = ends - sizes
        parts = [
            self.select(i, corners[:, low:high], ranked[:, low:high])
            for i, (low, high) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
        ]
        left = self.ordered([nothing(ranked.dtype), *parts])
        place = starts[left.image] + left.place if len(starts) else left.place
        counts = [len(part.score) for part in parts]
        return self.packed(
            left, corners[left.label, place], place * len(boxes) + left.label, counts, boxes.dtype
        )


def check_total(roisnum: Value, boxes: Dimension) -> None:
    """Require that the image counts do not exceed the number of boxes."""
    total = sum(max(n, 0) for n in roisnum.ints() or ())
    if boxes.max is not None and total > boxes.max:
        raise InferenceError(
            f"roisnum adds up to {total} boxes of all images, but there are {boxes}",
            clause="roisnum adds up to at most the number of boxes",
        )


def _least(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)
