"""Region proposals of Detectron, from anchors that are inputs."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ...errors import InferenceError
from ...ir.dimension import Dimension
from ...ir.element import ElementType
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, check_index_types, op
from .._lengths import of_rank, product
from ..kernels.boxes import as_float, decode_deltas, descending, greedy_nms

# Limit of the logarithms of scale factors, so that a wrong delta does not give endless boxes.
LARGEST_LOG = math.log(1000 / 16)


class GenerateProposalsBase(Op):
    """Base of the operations that take anchors."""

    flops_per_element = 0
    flops_per_input = {"deltas": 2, "scores": 1}

    min_size: float = attr(default_with_warning="0", doc="what sides are at least")
    nms_threshold: float = attr(default_with_warning="0", doc="the overlap that is still allowed")
    pre_nms_count: int = attr(ge=0, doc="how many boxes are compared at most")
    post_nms_count: int = attr(ge=0, doc="how many boxes are left at most")

    keeps_small: ClassVar[bool] = False
    """Whether boxes below min_size are kept, with a score of 0."""

    def select(
        self,
        image: Array,
        anchors: Array,
        deltas: Array,
        scores: Array,
        smallest: Array,
        extra: tuple[float, float],
    ) -> tuple[Array, Array]:
        """Return the selected boxes of an image, from anchors and deltas [n, 4] and scores [n].

        ``extra`` is added to sides computed from coordinates: of boxes, and in comparisons.
        """
        of = scores.dtype.type
        boxes = decode_deltas(anchors, deltas, extra[0], LARGEST_LOG)
        boxes = np.clip(boxes, 0, image[[1, 0, 1, 0]] - of(extra[0]))
        large = (boxes[:, 2:] - boxes[:, :2] + of(extra[0]) >= smallest).all(axis=-1)
        if self.keeps_small:
            scores = scores * large
        order = descending(scores, most=self.pre_nms_count)
        if not self.keeps_small:
            order = order[large[order]]
        left = order[greedy_nms(boxes[order], self.nms_threshold, self.post_nms_count, extra=extra[1])]
        left = left[: self.post_nms_count]
        return boxes[left], scores[left]


@op("GenerateProposals-9")
class GenerateProposals(GenerateProposalsBase):
    """Apply ``deltas`` to ``anchors``, and select the best boxes of each image that do not overlap."""

    im_info = Input(T_FLOAT, "[N, 3 or 4]: height and width of the image, one scale of min_size or two")
    anchors = Input(T_FLOAT, "[H, W, anchors, 4]: x1, y1, x2, y2", mixed=True)
    deltas = Input(
        T_FLOAT, "[N, 4 * anchors, H, W]: steps of the centre, logarithms of factors of sides", mixed=True
    )
    scores = Input(T_FLOAT, "[N, anchors, H, W]", mixed=True)
    rois = Output(T_FLOAT, "[n, 4]: the boxes of all images")
    roi_scores = Output(T_FLOAT, "[n]: their scores")
    rois_num = Output("roi_num_type", "[N]: how many are of each image")

    normalized: bool = attr(True, doc="whether sides are differences of coordinates; if not, 1 more")
    nms_eta: float = attr(1.0, doc="for a threshold that adapts itself; like OpenVINO's, this one does not")
    roi_num_type: ElementType = attr(ElementType.i64, doc="element type of the counts, i64 or i32")

    def verify(self) -> None:
        """Require an index type."""
        check_index_types(roi_num_type=self.roi_num_type)

    def infer(self, im_info: Value, anchors: Value, deltas: Value, scores: Value) -> tuple[PartialShape, ...]:
        info = of_rank(im_info, "im_info", "[N, 3 or 4]")
        grid = of_rank(anchors, "anchors", "[H, W, anchors, 4]")
        if not info[1].compatible(Dimension(3, 4)):
            raise InferenceError(
                f"im_info must be [N, 3] or [N, 4], found {info}", clause="im_info is [N, 3] or [N, 4]"
            )
        values = _merge(
            scores,
            PartialShape([info[0], grid[2], grid[0], grid[1]]),
            "scores",
            f"im_info {info} and anchors {grid}",
        )
        moved = _merge(
            deltas, PartialShape([values[0], values[1] * 4, *values[2:]]), "deltas", f"scores {values}"
        )
        if not grid[3].contains(4):
            raise InferenceError(
                f"anchors must be [H, W, anchors, 4], 4 numbers each, found {grid}",
                clause="anchors is [H, W, anchors, 4]",
            )
        images = moved[0]
        most = Dimension.of(images * self.post_nms_count).max
        rows = Dimension.between(0, most)
        return PartialShape([rows, 4]), PartialShape([rows]), PartialShape([images])

    def evaluate(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, ...]:
        boxes, kind = as_float(anchors).reshape(-1, 4), scores.dtype
        count = anchors.shape[2]
        height, width = scores.shape[2:]
        results = [(np.zeros((0, 4), boxes.dtype), np.zeros(0, boxes.dtype))]
        for info, delta, score in zip(as_float(im_info), as_float(deltas), as_float(scores), strict=True):
            factors = info[[-1, 2]]  # of width, of height
            moved = delta.reshape(count, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
            extra = 0.0 if self.normalized else 1.0
            smallest = np.asarray(factors * info.dtype.type(self.min_size))
            ranked = score.transpose(1, 2, 0).ravel()
            results.append(self.select(info, boxes, moved, ranked, smallest, (extra, extra)))
        rois, probs = (np.concatenate(part).astype(kind) for part in zip(*results, strict=True))
        counts = [len(part) for _, part in results[1:]]
        return rois, probs, np.array(counts, self.roi_num_type.dtype)


@op("ExperimentalDetectronGenerateProposalsSingleImage-6")
class GenerateProposalsSingleImage(GenerateProposalsBase):
    """Apply ``deltas`` to ``anchors``, and select the best boxes that do not overlap."""

    decisions = (
        "boxes below min_size have a score of 0, and so come last, as in OpenVINO; the page leaves them out",
    )

    keeps_small = True

    im_info = Input(T_FLOAT, "[3]: height and width of the image, and a scale that does not matter")
    anchors = Input(T_FLOAT, "[H * W * anchors, 4]: x1, y1, x2, y2")
    deltas = Input(T_FLOAT, "[4 * anchors, H, W]: steps of the centre, logarithms of factors of sides")
    scores = Input(T_FLOAT, "[anchors, H, W]")
    rois = Output(T_FLOAT, "[post_nms_count, 4]: the boxes, then zeros")
    roi_scores = Output(T_FLOAT, "[post_nms_count]: their scores, then zeros")

    def infer(
        self, im_info: Value, anchors: Value, deltas: Value, scores: Value
    ) -> tuple[PartialShape, PartialShape]:
        _merge(im_info, PartialShape([3]), "im_info")
        boxes = _merge(anchors, PartialShape([-1, 4]), "anchors")[0]
        values = of_rank(scores, "scores", "[anchors, H, W]")
        count = product(values)
        if not boxes.compatible(count):
            raise InferenceError(
                f"anchors are {boxes}, but scores {values} are {count}, one for each of H * W * anchors",
                clause="anchors and scores are equally many, H * W * anchors",
            )
        _merge(deltas, PartialShape([values[0] * 4, *values[1:]]), "deltas", f"scores {values}")
        return PartialShape([self.post_nms_count, 4]), PartialShape([self.post_nms_count])

    def evaluate(self, im_info: Array, anchors: Array, deltas: Array, scores: Array) -> tuple[Array, Array]:
        count, height, width = scores.shape
        moved = as_float(deltas).reshape(count, 4, height, width).transpose(2, 3, 0, 1).reshape(-1, 4)
        ranked = as_float(scores).transpose(1, 2, 0).ravel()
        smallest = ranked.dtype.type(self.min_size)
        selected = self.select(as_float(im_info), as_float(anchors), moved, ranked, smallest, (1, 0))
        rois, probs = (
            np.zeros((self.post_nms_count, 4), scores.dtype),
            np.zeros(self.post_nms_count, scores.dtype),
        )
        rois[: len(selected[0])], probs[: len(selected[1])] = selected
        return rois, probs


def _merge(value: Value, expected: PartialShape, name: str, others: str = "") -> PartialShape:
    merged = value.shape.merge(expected)
    if merged is None:
        by = f" to go with {others}" if others else ""
        raise InferenceError(
            f"{name} must be of shape {expected}{by}, found {value.shape}",
            clause=f"{name} has the shape that its layout and the other inputs ask for",
        )
    return merged
