"""Non-maximum suppression (NMS) of boxes: by class, by image, by matrix, and of rotated boxes."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from ..._util.arrays import DType
from ...errors import InferenceError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.element import ElementType as E
from ...ir.shape import PartialShape
from ...ir.signature import FLOATS
from ...ir.tensor import Array, Value
from .._define.operation import (
    T_FLOAT,
    T_INDEX,
    T_INDEX_64,
    Element,
    Input,
    Op,
    Output,
    attr,
    check_index_types,
    op,
)
from .._lengths import of_rank
from ..kernels.boxes import as_float, descending, greedy_nms, iou, soft_nms

# Checks of inputs: boxes, scores and scalars.

_UP_TO_32 = (E.f32, E.f16, E.bf16)
T_BOX = Element("T", _UP_TO_32, "f32, f16 or bf16")
T_NUMBER = Element("T_NUMBER", _UP_TO_32, "f32, f16 or bf16", shared=False)
T_WIDE_NUMBER = Element("T_NUMBER", FLOATS, "any floating-point type", shared=False)


def box_counts(boxes: Value, scores: Value, size: int = 4) -> tuple[Dimension, Dimension, Dimension]:
    """Return the numbers of batch entries, classes and boxes, after checking that boxes and scores agree."""
    of_boxes = of_rank(boxes, "boxes", f"[batches, boxes, {size}]")
    of_scores = of_rank(scores, "scores", "[batches, classes, boxes]")
    if not of_boxes[2].contains(size):
        raise InferenceError(
            f"boxes must be [batches, boxes, {size}], {size} numbers each, found {of_boxes}",
            clause=f"boxes is [batches, boxes, {size}]",
        )
    batches, count = of_boxes[0].merge(of_scores[0]), of_boxes[1].merge(of_scores[2])
    if batches is None:
        raise InferenceError(
            f"boxes {of_boxes} and scores {of_scores} differ in batch size, the first dimension",
            clause="boxes and scores have the same batch size",
        )
    if count is None:
        raise InferenceError(
            f"boxes {of_boxes} are {of_boxes[1]}, but scores {of_scores} are for {of_scores[2]}",
            hint=f"boxes must be [batches, boxes, {size}], and scores [batches, classes, boxes]",
            clause="boxes and scores are for the same number of boxes",
        )
    return batches, of_scores[1], count


def check_number(value: Value | None, name: str, most_rank: int = 1) -> None:
    """Require a tensor of one element, of at most the given rank."""
    if value is None or value.shape.rank is None:
        return
    if value.shape.rank > most_rank or not all(d.contains(1) for d in value.shape):
        form = "a scalar or of shape [1]" if most_rank else "a scalar"
        raise InferenceError(f"{name} must be {form}, not of shape {value.shape}", clause=f"{name} is {form}")


def at_most(limit: Value | None) -> int | None:
    """Return the upper bound of an input that is one number: 0 if absent, ``None`` if unknown."""
    if limit is None:
        return 0
    numbers = limit.numbers()
    if not numbers:
        return None
    most = numbers[0] if isinstance(numbers[0], int) else numbers[0].max
    return most if most is None else max(most, 0)


def number(array: Array | None) -> float:
    """Return the number that an input holds, or 0 if it is absent."""
    return 0 if array is None else float(array.reshape(-1)[0])


# NonMaxSuppression.

SCORES = "[batches, classes, boxes]"
IOU_THRESHOLD = "overlap from which a box is suppressed, one number; 0 if absent"
SCORE_THRESHOLD = "exclusive minimum of scores, one number; 0 if absent"

Selected = tuple[Array, Array]
"""Indices of selected boxes, and their scores."""


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
    max_output_boxes_per_class = Input(
        T_INDEX, "maximum number of boxes of a class, one number; 0 if absent", optional=True
    )
    iou_threshold = Input(T_NUMBER, IOU_THRESHOLD, optional=True)
    score_threshold = Input(T_NUMBER, SCORE_THRESHOLD, optional=True)

    sort_result_descending: bool = attr(
        True, doc="whether to sort all boxes by score, instead of by batch entry, class and score"
    )

    most_rank = 0
    """The maximum rank of inputs that are one number."""

    def corners(self, boxes: Array) -> Array:
        """Convert boxes to the form that `select_in_class` takes."""
        raise NotImplementedError

    def rows(self, boxes: Value, scores: Value, limit: Value | None, *numbers: Value | None) -> PartialShape:
        """Check the inputs, and return the shape ``[n, 3]`` for the possible numbers of selected boxes.

        For versions 1, 3 and 4, OpenVINO infers a fixed number of rows (too low for 1 and 3), and returns the actual
        number; when compiling, it infers the same as here.
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
    ) -> Selected:
        """Return the selected boxes as rows of batch entry, class and box, and their scores."""
        limit = int(number(max_output_boxes_per_class))
        thresholds = number(iou_threshold), number(score_threshold), number(sigma)
        corners, ranked = self.corners(as_float(boxes)), as_float(scores)
        indices, left = [np.zeros((0, 3), np.int64)], [np.zeros(0, ranked.dtype)]
        for batch, label in np.ndindex(*scores.shape[:2]) if scores.size else ():
            places, final = self.select_in_class(corners[batch], ranked[batch, label], limit, *thresholds)
            indices.append(np.insert(places[:, None], 0, [[batch], [label]], axis=1))
            left.append(final)
        triples, selected_scores = np.concatenate(indices), np.concatenate(left)
        if self.sort_result_descending:
            order = np.argsort(-selected_scores, kind="stable")
            triples, selected_scores = triples[order], selected_scores[order]
        return triples, selected_scores

    def select_in_class(
        self, boxes: Array, scores: Array, limit: int, iou: float, above: float, sigma: float
    ) -> Selected:
        """Return the indices and scores of the selected boxes of one class."""
        if limit <= 0:
            return np.zeros(0, np.int64), scores[:0]
        if sigma > 0:
            return soft_nms(boxes, scores, sigma, limit, above=above, cut=self.soft_cut(iou))
        order = descending(scores, above)
        places = order[greedy_nms(boxes[order], iou, limit, inclusive=True)]
        return places, scores[places]

    def soft_cut(self, iou: float) -> float | None:
        """Return the overlap from which soft suppression drops a box at once, or ``None`` if there is no limit."""
        return None


class AxisAlignedNms(NonMaxSuppressionBase):
    """Base of the versions of NonMaxSuppression, whose boxes have sides along the axes."""

    box_encoding: Literal["corner", "center"] = attr(
        "corner", doc="corner: y1, x1, y2, x2 of two opposite corners; center: x, y, width, height"
    )

    def corners(self, boxes: Array) -> Array:
        """Convert boxes to two corners, the lower coordinates first."""
        corners = np.empty(boxes.shape, boxes.dtype)
        # One coordinate of all boxes at a time, since NumPy is slow on rows of two.
        for low, high in ((0, 2), (1, 3)):
            first, second = boxes[..., low], boxes[..., high]
            if self.box_encoding == "center":
                first, second = first - second / 2, first + second / 2
            np.minimum(first, second, out=corners[..., low])
            np.maximum(first, second, out=corners[..., high])
        return corners


class IndicesOnlyNms(AxisAlignedNms):
    """Base of versions 1, 3 and 4, which return only indices."""

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
    """Select boxes of each class, the best first; each suppresses the boxes that it overlaps."""

    selected_indices = Output(ElementType.i64, "[n, 3]: batch entry, class and index of each selected box")


class TypedIndicesNms(IndicesOnlyNms):
    """Base of versions 3 and 4, which return indices of a selectable type."""

    selected_indices = Output("output_type", "[n, 3]: batch entry, class and index of each selected box")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    def verify(self) -> None:
        """Require that the indices are i64 or i32."""
        check_index_types(output_type=self.output_type)

    def index_type(self) -> ElementType:
        return self.output_type


@op("NonMaxSuppression-3")
class NonMaxSuppression3(TypedIndicesNms):
    """The same as version 1, with a choice of index types."""


@op("NonMaxSuppression-4")
class NonMaxSuppression4(TypedIndicesNms):
    """The same as version 3. OpenVINO plugins that need static shapes pad its output to the largest possible size."""


class NmsWithScores(NonMaxSuppressionBase):
    """Base of the versions that also return scores and the number of selected boxes."""

    selected_indices = Output("output_type", "[n, 3]: batch entry, class and index of each selected box")
    selected_scores = Output(ElementType.f32, "[n, 3]: batch entry, class and score of each selected box")
    valid_outputs = Output("output_type", "[1]: the number of selected boxes")

    output_type: ElementType = attr(ElementType.i64, doc="element type of the indices, i64 or i32")

    most_rank = 1

    def verify(self) -> None:
        """Require that the indices are i64 or i32."""
        check_index_types(output_type=self.output_type)

    def build_outputs(self, triples: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Return the outputs, given the result of `select`."""
        index = self.output_type.dtype
        with_scores = np.empty(triples.shape, np.float32)
        for column, numbers in enumerate((triples[:, 0], triples[:, 1], scores)):
            with_scores[:, column] = numbers
        return triples.astype(index), with_scores, np.array([len(triples)], index)


class SoftNms(NmsWithScores, AxisAlignedNms):
    """Base of the versions with soft suppression, which lowers scores instead of dropping boxes."""

    soft_nms_sigma = Input(
        T_NUMBER,
        "sigma, one number; if it is above 0, an overlap multiplies a score by exp(-overlap ** 2 / (2 * sigma)); 0 if "
        "absent",
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
        return self.build_outputs(*selected)


@op("NonMaxSuppression-5", spec="sort/no-max-suppression-5")
class NonMaxSuppression5(SoftNms):
    """The same as version 4 with soft suppression; also returns scores.

    Soft suppression still drops boxes that overlap by iou_threshold or more, as in the specification and in OpenVINO's
    reference; its plugin treats this version as version 9.
    """

    def soft_cut(self, iou: float) -> float | None:
        return iou


@op("NonMaxSuppression-9")
class NonMaxSuppression9(SoftNms):
    """The same as version 5, except that soft suppression ignores iou_threshold."""


# MatrixNms and MulticlassNms.


class KeptBoxes(NamedTuple):
    """Selected boxes, as columns with an element for each box."""

    image: Array
    label: Array
    place: Array
    score: Array

    def take(self, order: Array) -> KeptBoxes:
        """Return the boxes at the indices ``order``."""
        return KeptBoxes(*(column[order] for column in self))


def empty_selection(dtype: DType) -> KeptBoxes:
    """Return an empty selection."""
    none = np.zeros(0, np.int64)
    return KeptBoxes(none, none, none, np.zeros(0, dtype))


def concatenate(parts: list[KeptBoxes]) -> KeptBoxes:
    """Concatenate selections."""
    return KeptBoxes(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))


class BatchedNms(Op):
    """Base of operations that select the best boxes of each class, then of each image."""

    flops_per_element = 0
    flops_per_input = {"scores": 1}

    boxes = Input(T_BOX, "[images, boxes, 4]: x1, y1, x2, y2")
    scores = Input(T_BOX, "[images, classes, boxes]")
    selected_outputs = Output(T_BOX, "[n, 6]: class, score, x1, y1, x2, y2")
    selected_indices = Output("output_type", "[n, 1]: index of each box among the boxes of all images")
    selected_num = Output("output_type", "[images]: number of selected boxes of each image")

    sort_result_type: Literal["none", "score", "classid"] = attr("none", doc="order of the selected boxes")
    sort_result_across_batch: bool = attr(
        False, doc="whether to sort over all images, instead of within each"
    )
    output_type: ElementType = attr(ElementType.i64, doc="element type of indices and counts, i64 or i32")
    score_threshold: float = attr(0.0, doc="minimum of scores")
    nms_top_k: int = attr(
        -1, ge=-1, doc="maximum number of boxes of a class before suppression; -1 means all"
    )
    keep_top_k: int = attr(-1, ge=-1, doc="maximum number of boxes of an image; -1 means all")
    background_class: int = attr(-1, ge=-1, doc="the class that is not detected; -1 if there is none")
    normalized: bool = attr(True, doc="whether a side is the difference of its coordinates; otherwise 1 more")

    def verify(self) -> None:
        """Require that the indices are i64 or i32."""
        check_index_types(output_type=self.output_type)

    by_class_within: ClassVar[bool] = True
    """Whether the boxes of an image are sorted by class if ``sort_result_type`` is classid."""

    def shapes(self, images: Dimension, classes: Dimension, count: Dimension) -> tuple[PartialShape, ...]:
        """Return the shapes of the outputs."""
        per_class = count.max if self.nms_top_k < 0 else _least(count.max, self.nms_top_k)
        of_image: Interval = Dimension.between(0, per_class) * classes
        if self.keep_top_k >= 0:
            of_image = Dimension.between(0, _least(of_image.max, self.keep_top_k))
        rows = Dimension.between(0, (of_image * images).max)
        return PartialShape([rows, 6]), PartialShape([rows, 1]), PartialShape([images])

    def select_shared(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        """Return the outputs for boxes that all classes share."""
        corners, ranked = as_float(boxes), as_float(scores)
        parts = [self.select(i, corners[i : i + 1], ranked[i]) for i in range(len(boxes))]
        return self.outputs_of(boxes, [empty_selection(ranked.dtype), *parts])

    def outputs_of(self, boxes: Array, parts: list[KeptBoxes]) -> tuple[Array, Array, Array]:
        """Return the outputs, given an empty selection followed by that of each image."""
        corners, left = as_float(boxes), self.sort(parts)
        flat = left.image * boxes.shape[1] + left.place
        counts = [len(part.score) for part in parts[1:]]
        return self.build_outputs(left, corners[left.image, left.place], flat, counts, boxes.dtype)

    def select_in_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Return the indices and scores of the selected boxes of one class."""
        raise NotImplementedError

    def select(self, image: int, boxes: Array, scores: Array) -> KeptBoxes:
        """Return the selection of an image, given ``boxes[classes or 1, n, 4]`` and ``scores[classes, n]``."""
        parts = [empty_selection(scores.dtype)]
        for label in range(len(scores)) if scores.size else ():
            if label != self.background_class:
                place, score = self.select_in_class(boxes[label if len(boxes) > 1 else 0], scores[label])
                parts.append(KeptBoxes(np.full(len(place), image), np.full(len(place), label), place, score))
        return self.best(concatenate(parts))

    def best(self, left: KeptBoxes) -> KeptBoxes:
        """Return the best boxes of an image in order, at most ``keep_top_k``."""
        order = np.lexsort((left.place, left.label, -left.score))
        return left.take(order if self.keep_top_k < 0 else order[: self.keep_top_k])

    def sort(self, parts: list[KeptBoxes]) -> KeptBoxes:
        """Return the boxes of all selections in the requested order."""
        left = concatenate(parts)
        if self.sort_result_across_batch and self.sort_result_type == "score":
            return left.take(np.lexsort((left.place, left.label, left.image, -left.score)))
        if self.sort_result_type == "classid" and (self.sort_result_across_batch or self.by_class_within):
            across = (left.image, left.label) if self.sort_result_across_batch else (left.label, left.image)
            return left.take(np.lexsort((left.place, -left.score, *across)))
        return left

    def build_outputs(
        self, left: KeptBoxes, boxes: Array, flat: Array, counts: list[int], kind: np.dtype[np.generic]
    ) -> tuple[Array, Array, Array]:
        """Return the outputs.

        Args:
            left: the selected boxes.
            boxes: their coordinates, ``[n, 4]``.
            flat: their indices among the boxes of all images.
            counts: the number of selected boxes of each image.
            kind: the dtype of the first output.
        """
        index = self.output_type.dtype
        head = np.stack([left.label.astype(boxes.dtype), left.score.astype(boxes.dtype)], axis=1)
        rows = np.concatenate([head, boxes], axis=1).astype(kind)
        return rows, flat.astype(index)[:, None], np.array(counts, index)


@op("MatrixNms-8", spec="sort/matrix-non-max-suppression-8")
class MatrixNms(BatchedNms):
    """Select boxes of each class; each box lowers the scores of the boxes that it overlaps.

    All scores are lowered at once: each by the overlap that lowers it most, discounted by the overlap of that other box
    with better ones. As in OpenVINO, sort_result_type only applies across images; within an image, the best boxes come
    first.
    """

    by_class_within = False

    decay_function: Literal["linear", "gaussian"] = attr(
        "linear", doc="function by which an overlap lowers a score"
    )
    gaussian_sigma: float = attr(2.0, doc="factor of the squared overlap in the gaussian")
    post_threshold: float = attr(0.0, doc="exclusive minimum of lowered scores")

    def infer(self, boxes: Value, scores: Value) -> tuple[PartialShape, ...]:
        return self.shapes(*box_counts(boxes, scores))

    def evaluate(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        return self.select_shared(boxes, scores)

    def select_in_class(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        of = scores.dtype.type
        order = descending(scores, self.score_threshold, self.nms_top_k)
        if not order.size:
            return order, scores[order]
        ranked = boxes[order]
        is_better = np.tri(len(order), k=-1, dtype=np.bool_)
        overlap = iou(ranked[:, None], ranked[None], 0 if self.normalized else 1)
        overlap = np.where(is_better, overlap, of(0))
        most = np.fmax.reduce(overlap, axis=1)  # with a better box; NaN is ignored
        if self.decay_function == "gaussian":
            decay = np.exp((most**2 - overlap**2) * of(self.gaussian_sigma))
        else:
            decay = (1 - overlap) / (1 - most + of(1e-10))
        decay = np.fmin.reduce(np.where(is_better, decay, of(1)), axis=1)
        final = scores[order] * np.minimum(decay, of(1))
        keep = final > self.post_threshold
        return order[keep], final[keep]


class MulticlassNmsBase(BatchedNms):
    """Base of the versions of MulticlassNms. Boxes with a score equal to score_threshold are kept."""

    iou_threshold: float = attr(0.0, doc="overlap from which a box of the same class is suppressed")
    nms_eta: float = attr(
        1.0,
        ge=0,
        le=1,
        doc="factor of iou_threshold after each selected box, while the threshold is above 0.5",
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
    """Select boxes of each class, the best first; each suppresses the boxes that it overlaps."""

    def infer(self, boxes: Value, scores: Value) -> tuple[PartialShape, ...]:
        return self.shapes(*box_counts(boxes, scores))

    def evaluate(self, boxes: Array, scores: Array) -> tuple[Array, Array, Array]:
        return self.select_shared(boxes, scores)


@op("MulticlassNms-9", spec="sort/multiclass-non-max-suppression-9")
class MulticlassNms9(MulticlassNmsBase):
    """The same as version 8; with ``roisnum``, each class has its own boxes, with those of all images in one list."""

    boxes = Input(T_BOX, "[images, boxes, 4], or [classes, boxes, 4] with roisnum: x1, y1, x2, y2")
    scores = Input(T_BOX, "[images, classes, boxes], or [classes, boxes] with roisnum")
    roisnum = Input(T_INDEX_64, "[images]: number of boxes of each image", optional=True)

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
            return self.select_shared(boxes, scores)
        corners, ranked = as_float(boxes), as_float(scores)
        sizes = np.maximum(roisnum.astype(np.int64), 0)
        ends = np.cumsum(sizes)
        check_total(Value.constant(roisnum), Dimension(boxes.shape[1]))
        starts = ends - sizes
        parts = [
            self.select(i, corners[:, low:high], ranked[:, low:high])
            for i, (low, high) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True))
        ]
        left = self.sort([empty_selection(ranked.dtype), *parts])
        place = starts[left.image] + left.place if len(starts) else left.place
        counts = [len(part.score) for part in parts]
        return self.build_outputs(
            left, corners[left.label, place], place * len(boxes) + left.label, counts, boxes.dtype
        )


def check_total(roisnum: Value, boxes: Dimension) -> None:
    """Require that the known counts of ``roisnum`` add up to at most the number of boxes."""
    total = sum(max(n, 0) for n in roisnum.ints() or ())
    if boxes.max is not None and total > boxes.max:
        raise InferenceError(
            f"roisnum adds up to {total} boxes of all images, but there are {boxes}",
            clause="roisnum adds up to at most the number of boxes",
        )


def _least(a: int | None, b: int) -> int:
    return b if a is None else min(a, b)


# Rotated boxes: intersection over union, and non-maximum suppression.
#
# A box is a row of the x and y of its centre, width, height, and an angle in radians, which is clockwise if y points
# down, as in images.

_SIGNS = np.array([[0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]])
# Tolerance for points on an edge.
_CLOSE = 1e-9


def rotated_iou(box: Array, others: Array) -> Array:
    """Return the intersection over union of a box with each of ``others[n, 5]``; 0 if a box is empty."""
    pair = np.stack([np.broadcast_to(box, others.shape), others]).astype(np.float64)
    area = pair[..., 2] * pair[..., 3]
    pair[..., :2] -= pair[1:, :, :2]  # move each pair to the origin, to limit rounding
    shared = _intersection_areas(_corners(pair[0]), _corners(pair[1]))
    together = area[0] + area[1] - shared
    return np.asarray(np.divide(shared, together, out=np.zeros(len(others)), where=(area > 0).all(axis=0)))


def rotated_nms(boxes: Array, threshold: float, most: int) -> Array:
    """Return the indices of the boxes that greedy suppression selects; see `boxes.greedy_nms`.

    Args:
        boxes: rotated boxes ``[n, 5]`` in descending order of score.
        threshold: the maximum overlap of selected boxes.
        most: the maximum number of boxes to select.
    """
    selected: list[int] = []
    rest = np.arange(len(boxes))
    while len(rest) and len(selected) < most:
        selected.append(int(rest[0]))
        rest = rest[1:]
        rest = rest[~(rotated_iou(boxes[selected[-1]], boxes[rest]) > threshold)]
    return np.array(selected, np.int64)


def _corners(boxes: Array) -> Array:
    """Return the corners ``[n, 4, 2]`` of rotated boxes, in order around each box."""
    x, y = np.moveaxis(_SIGNS * boxes[:, None, 2:4], -1, 0)
    cosine, sine = np.cos(boxes[:, 4:]), np.sin(boxes[:, 4:])
    turned = np.stack([x * cosine - y * sine, x * sine + y * cosine], axis=-1)
    return np.asarray(turned + boxes[:, None, :2])


def _intersection_areas(a: Array, b: Array) -> Array:
    """Return the areas ``[n]`` of the intersections of convex polygons ``[n, 4, 2]``."""
    crossings, crosses = _crossings(a, b)
    points = np.concatenate([a, b, crossings], axis=1)
    valid = np.concatenate([_within(a, b), _within(b, a), crosses], axis=1)
    count = valid.sum(axis=1)
    middle = (points * valid[..., None]).sum(axis=1) / np.maximum(count, 1)[:, None]
    around = np.where(valid[..., None], points - middle[:, None], 0)
    angles = np.where(valid, np.arctan2(around[..., 1], around[..., 0]), np.inf)
    order = np.argsort(angles, axis=1)
    hull = np.take_along_axis(around, order[..., None], axis=1)
    # Invalid points come last; replace them by the first point.
    last = np.arange(hull.shape[1]) >= count[:, None]
    hull = np.where(last[..., None], hull[:, :1], hull)
    x, y = hull[..., 0], hull[..., 1]
    doubled = (x * np.roll(y, -1, axis=1) - y * np.roll(x, -1, axis=1)).sum(axis=1)
    return np.where(count > 2, np.abs(doubled) / 2, 0)


def _cross(a: Array, b: Array) -> Array:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _within(points: Array, polygon: Array) -> Array:
    """Return a mask of the points that are inside a polygon or on its edges."""
    edges = np.roll(polygon, -1, axis=1) - polygon
    sides = _cross(edges[:, None], points[:, :, None] - polygon[:, None])
    reach = _CLOSE * (np.abs(edges).max(axis=(1, 2), initial=0)[:, None, None] ** 2 + 1e-30)
    return np.asarray((sides >= -reach).all(axis=2) | (sides <= reach).all(axis=2))


def _crossings(a: Array, b: Array) -> tuple[Array, Array]:
    """Return the intersections ``[n, 16, 2]`` of the edges of two polygons, and a mask ``[n, 16]`` of those that exist."""
    along, across = np.roll(a, -1, axis=1) - a, np.roll(b, -1, axis=1) - b
    along, across = along[:, :, None], across[:, None]
    gap = b[:, None] - a[:, :, None]
    slant = _cross(along, across)
    parallel = np.abs(slant) < 1e-14
    divisor = np.where(parallel, 1, slant)
    t, u = _cross(gap, across) / divisor, _cross(gap, along) / divisor
    crosses = ~parallel & (t >= 0) & (t <= 1) & (u >= 0) & (u <= 1)
    points = a[:, :, None] + t[..., None] * along
    return points.reshape(len(a), 16, 2), crosses.reshape(len(a), 16)


# NMSRotated.


@op("NMSRotated-13")
class NMSRotated(NmsWithScores):
    """Select rotated boxes of each class, the best first; each suppresses the boxes that it overlaps."""

    boxes = Input(T_FLOAT, "[batches, boxes, 5]: x and y of the centre, width, height, angle in radians")
    scores = Input(T_FLOAT, SCORES, mixed=True)
    max_output_boxes_per_class = Input(T_INDEX, "maximum number of boxes of a class, one number")
    iou_threshold = Input(T_WIDE_NUMBER, "maximum overlap of boxes of a class, one number")
    score_threshold = Input(T_WIDE_NUMBER, "exclusive minimum of scores, one number")

    clockwise: bool = attr(True, doc="whether angles are clockwise")

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
        return self.build_outputs(*selected)

    def corners(self, boxes: Array) -> Array:
        """Convert the angles of boxes to clockwise ones."""
        return boxes if self.clockwise else boxes * np.array([1, 1, 1, 1, -1], boxes.dtype)

    def select_in_class(
        self, boxes: Array, scores: Array, limit: int, iou: float, above: float, sigma: float
    ) -> Selected:
        order = descending(scores, above)
        places = order[rotated_nms(boxes[order], iou, limit)]
        return places, scores[places]
