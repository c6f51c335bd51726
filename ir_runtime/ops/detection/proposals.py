"""Region proposals of Faster R-CNN and Detectron, and Detectron's detection output."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from ...codes import Code
from ...errors import InferenceError, ValidationError
from ...ir.computable import refuse_to_compute
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.formula import Count
from ...ir.operation import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, check_index_types, op
from .._lengths import of_rank, product
from .._resampling import BILINEAR
from ..kernels.boxes import as_float, decode_deltas, descending, greedy_nms
from .regions import bilinear, channels, inside, region_count, sample_offsets, samples_of

# Region proposals of Faster R-CNN, from anchors that the operation generates.


class ProposalBase(Op):
    """Base of the versions of Proposal.

    Boxes smaller than min_size get a score of 0, and so come last, as in OpenVINO. For the framework tensorflow,
    OpenVINO's plugin also swaps the height and width of the image; its reference and this implementation do not.
    """

    flops_per_element = 0
    flops_per_input = {"bbox_deltas": 2, "class_probs": 1}

    class_probs = Input(T_FLOAT, "[N, 2 * anchors, H, W]: scores of background, then of foreground")
    bbox_deltas = Input(
        T_FLOAT, "[N, 4 * anchors, H, W]: shifts of the centre, logarithms of the scales of sides", mixed=True
    )
    image_shape = Input(
        T_FLOAT,
        "[3 or 4]: height and width of the image, and a scale for both sides or one for each",
        mixed=True,
    )
    rois = Output(
        T_FLOAT, "[N * post_nms_topn, 5]: batch entry, x1, y1, x2, y2; a batch entry of -1 marks the end"
    )

    base_size: int = attr(gt=0, doc="side of the square that ratio and scale are applied to")
    pre_nms_topn: int = attr(gt=0, doc="maximum number of boxes before suppression")
    post_nms_topn: int = attr(gt=0, doc="maximum number of boxes after suppression")
    nms_thresh: float = attr(default_with_warning="0", doc="maximum overlap of boxes")
    feat_stride: int = attr(default_with_warning="1", gt=0, doc="distance of cells in pixels")
    min_size: int = attr(
        default_with_warning="1", ge=0, doc="boxes with a side below this, times the scale, get a score of 0"
    )
    ratio: tuple[float, ...] = attr(gt=0, doc="aspect ratios of anchors, height / width")
    scale: tuple[float, ...] = attr(doc="sizes of anchors, as multiples of base_size")
    clip_before_nms: bool = attr(True, doc="whether to clip boxes to the image before suppression")
    clip_after_nms: bool = attr(False, doc="whether to clip the remaining boxes to the image")
    normalize: bool = attr(False, doc="whether to return boxes as fractions of the image")
    box_size_scale: float = attr(1.0, doc="divisor of the logarithms in bbox_deltas")
    box_coordinate_scale: float = attr(1.0, doc="divisor of the shifts in bbox_deltas")
    framework: str = attr(
        "",
        doc="tensorflow: y comes before x, anchors are centred at 0, and a side is the difference of its coordinates",
    )

    def shape(self, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> Dimension:
        """Check the inputs, and return the number of output rows."""
        probs = of_rank(class_probs, "class_probs", "[N, 2 * anchors, H, W]")
        deltas = of_rank(bbox_deltas, "bbox_deltas", "[N, 4 * anchors, H, W]")
        if not of_rank(image_shape, "image_shape", "[3 or 4]")[0].compatible(Dimension(3, 4)):
            raise InferenceError(
                f"image_shape must be of shape [3] or [4], found {image_shape.shape}",
                clause="image_shape has 3 or 4 numbers",
            )
        expected = PartialShape([probs[0], probs[1] * 2, *probs[2:]])
        images = probs[0].merge(deltas[0])
        if images is None or not deltas.compatible(expected):
            raise InferenceError(
                f"bbox_deltas must be of shape {expected}, as class_probs {probs} with twice the channels, found "
                f"{deltas}",
                clause="bbox_deltas has the shape of class_probs, with twice the channels",
            )
        anchors = len(self.ratio) * len(self.scale)
        if not probs[1].contains(2 * anchors):
            refuse_to_compute(
                InferenceError(
                    f"class_probs {probs} must have {2 * anchors} channels, 2 for each of {anchors} anchors, found "
                    f"{probs[1]}",
                    hint=f"there is an anchor for each of {len(self.ratio)} 'ratio' and each of {len(self.scale)} 'scale'",
                    clause="class_probs has 2 channels for each anchor",
                )
            )
        if self.framework not in ("", "tensorflow"):
            refuse_to_compute(
                InferenceError(
                    f"attribute 'framework' must be '' or 'tensorflow', not {self.framework!r}",
                    code=Code.BAD_ATTRIBUTE,
                    clause="attribute 'framework' is empty or tensorflow",
                )
            )
        return Dimension.of(images * self.post_nms_topn)

    def propose(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        """Return the boxes ``[N * post_nms_topn, 5]``, each after its batch entry, and their scores."""
        deltas, scores = as_float(bbox_deltas), as_float(class_probs)
        images, channels, height, width = scores.shape
        image = as_float(image_shape).ravel()
        size = image[[1, 0, 1, 0]]
        smallest = self.min_size * np.array([image[-1], image[2]], image.dtype)
        anchors = self._anchors(height, width, size).astype(scores.dtype)
        deltas = deltas.reshape(images, channels // 2, 4, height, width).transpose(0, 3, 4, 1, 2)
        scores = scores[:, channels // 2 :].transpose(0, 2, 3, 1).reshape(images, -1)
        by = np.array([self.box_coordinate_scale] * 2 + [self.box_size_scale] * 2, scores.dtype)
        extra = self._extra()
        boxes = decode_deltas(anchors, deltas / by, extra).reshape(images, -1, 4)
        boxes[..., 2:] += scores.dtype.type(extra)
        if self.clip_before_nms:
            boxes = np.clip(boxes, 0, size - scores.dtype.type(extra))
        large = (boxes[..., 2:] - boxes[..., :2] + scores.dtype.type(extra) >= smallest).all(axis=-1)
        scores = scores * large
        rois = np.zeros((images, self.post_nms_topn, 5), scores.dtype)
        probs = np.zeros((images, self.post_nms_topn), scores.dtype)
        for entry in range(images):
            order = descending(scores[entry], most=self.pre_nms_topn)
            left = order[greedy_nms(boxes[entry, order], self.nms_thresh, self.post_nms_topn, extra=extra)]
            selected = boxes[entry, left]
            if self.clip_after_nms:
                selected = np.clip(selected, 0, size)
            rois[entry, : len(left), 0] = entry
            rois[entry, : len(left), 1:] = selected / size if self.normalize else selected
            rois[entry, len(left) : len(left) + 1, 0] = -1
            probs[entry, : len(left)] = scores[entry, left]
        return (
            rois.reshape(-1, 5).astype(class_probs.dtype, copy=False),
            probs.ravel().astype(class_probs.dtype, copy=False),
        )

    def _extra(self) -> float:
        return 0 if self.framework else 1

    def _anchors(self, height: int, width: int, size: Array) -> Array:
        """Return the anchors of every cell, ``[H, W, anchors, 4]``."""
        of, extra = np.float32, np.float32(self._extra())
        ratios, scales = np.array(self.ratio, of)[:, None], np.array(self.scale, of)
        widths = np.sqrt(of(self.base_size) ** 2 / ratios)
        if not self.framework:
            widths = np.floor(widths + of(0.5))  # round to nearest, halves up
        heights = widths * ratios
        if not self.framework:
            heights = np.floor(heights + of(0.5))
        half = np.stack([(sides * scales - extra) / 2 for sides in (widths, heights)], -1).reshape(-1, 2)
        centre = of(0) if self.framework else (of(self.base_size) - extra) / 2
        anchors = np.concatenate([centre - half, centre + half], -1)
        y, x = (np.arange(n, dtype=of) * of(self.feat_stride) for n in (height, width))
        grid = np.empty((height, width, 1, 4), of)
        first, second = (x, y[:, None]) if not self.framework else (y[:, None], x)
        grid[..., 0, ::2], grid[..., 0, 1::2] = first[..., None], second[..., None]
        return np.asarray(np.clip(grid + anchors, 0, size) if self.framework else grid + anchors)


@op("Proposal-1")
class Proposal1(ProposalBase):
    """Apply ``bbox_deltas`` to anchors in every cell, and select the best boxes that do not overlap."""

    def infer(self, class_probs: Value, bbox_deltas: Value, image_shape: Value) -> PartialShape:
        return PartialShape([self.shape(class_probs, bbox_deltas, image_shape), 5])

    def evaluate(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> Array:
        return self.propose(class_probs, bbox_deltas, image_shape)[0]


@op("Proposal-4")
class Proposal4(ProposalBase):
    """The same as version 1; also returns the scores of the boxes."""

    probs = Output(T_FLOAT, "[N * post_nms_topn]: scores, padded with 0")

    def infer(
        self, class_probs: Value, bbox_deltas: Value, image_shape: Value
    ) -> tuple[PartialShape, PartialShape]:
        rows = self.shape(class_probs, bbox_deltas, image_shape)
        return PartialShape([rows, 5]), PartialShape([rows])

    def evaluate(self, class_probs: Array, bbox_deltas: Array, image_shape: Array) -> tuple[Array, Array]:
        return self.propose(class_probs, bbox_deltas, image_shape)


# Region proposals of Detectron, from anchors that are inputs.


# The maximum of logarithms of scales, so that a wrong delta does not give an infinite box.
LARGEST_LOG = math.log(1000 / 16)


class GenerateProposalsBase(Op):
    """Base of the operations that take anchors as an input."""

    flops_per_element = 0
    flops_per_input = {"deltas": 2, "scores": 1}

    min_size: float = attr(default_with_warning="0", doc="minimum side of boxes")
    nms_threshold: float = attr(default_with_warning="0", doc="maximum overlap of boxes")
    pre_nms_count: int = attr(ge=0, doc="maximum number of boxes before suppression")
    post_nms_count: int = attr(ge=0, doc="maximum number of boxes after suppression")

    keeps_small: ClassVar[bool] = False
    """Whether boxes smaller than ``min_size`` are kept, with a score of 0."""

    def select(
        self,
        image: Array,
        anchors: Array,
        deltas: Array,
        scores: Array,
        smallest: Array,
        extra: tuple[float, float],
    ) -> tuple[Array, Array]:
        """Return the selected boxes of an image, and their scores.

        Args:
            image: the height and width of the image.
            anchors: the anchors, ``[n, 4]``.
            deltas: the deltas to the anchors, ``[n, 4]``.
            scores: the scores, ``[n]``.
            smallest: the minimum sides of boxes.
            extra: what to add to the difference of coordinates for the side of a box: when decoding, and in suppression.
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

    im_info = Input(
        T_FLOAT, "[N, 3 or 4]: height and width of each image, and a scale of min_size for both sides or each"
    )
    anchors = Input(T_FLOAT, "[H, W, anchors, 4]: x1, y1, x2, y2", mixed=True)
    deltas = Input(
        T_FLOAT, "[N, 4 * anchors, H, W]: shifts of the centre, logarithms of the scales of sides", mixed=True
    )
    scores = Input(T_FLOAT, "[N, anchors, H, W]", mixed=True)
    rois = Output(T_FLOAT, "[n, 4]: the boxes of all images")
    roi_scores = Output(T_FLOAT, "[n]: their scores")
    rois_num = Output("roi_num_type", "[N]: the number of boxes of each image")

    normalized: bool = attr(True, doc="whether a side is the difference of its coordinates; otherwise 1 more")
    nms_eta: float = attr(1.0, doc="decay of an adaptive threshold; ignored, as in OpenVINO")
    roi_num_type: ElementType = attr(ElementType.i64, doc="element type of the counts, i64 or i32")

    def verify(self) -> None:
        """Require that the counts are i64 or i32."""
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
            factors = info[[-1, 2]]  # the scales of width and height
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

    im_info = Input(T_FLOAT, "[3]: height and width of the image, and a scale, which is ignored")
    anchors = Input(T_FLOAT, "[H * W * anchors, 4]: x1, y1, x2, y2")
    deltas = Input(T_FLOAT, "[4 * anchors, H, W]: shifts of the centre, logarithms of the scales of sides")
    scores = Input(T_FLOAT, "[anchors, H, W]")
    rois = Output(T_FLOAT, "[post_nms_count, 4]: the boxes, padded with zeros")
    roi_scores = Output(T_FLOAT, "[post_nms_count]: their scores, padded with zeros")

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
                clause="there are as many anchors as scores, H * W * anchors",
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


# Further operations of Detectron: detection output, prior grids and ROI features.


@op("ExperimentalDetectronDetectionOutput-6")
class DetectionOutput(Op):
    """Apply ``deltas`` to ``rois``, and select the best boxes of each class by ``scores``.

    The first class is the background, which has no boxes. As in OpenVINO, coordinates are only clipped to at least 0,
    and a region without an area counts as the box [0, 0, 0, 0] with a score of 0.
    """

    flops_per_element = 0
    flops_per_input = {"deltas": 2, "scores": 1}

    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2")
    deltas = Input(
        T_FLOAT, "[regions, num_classes * 4]: shifts of the centre, logarithms of the scales of sides"
    )
    scores = Input(T_FLOAT, "[regions, num_classes]")
    im_info = Input(T_FLOAT, "[1, 3]: height and width of the image, and a scale; ignored")
    boxes = Output(T_FLOAT, "[max_detections_per_image, 4]: the boxes, padded with zeros")
    classes = Output(ElementType.i32, "[max_detections_per_image]: their classes")
    box_scores = Output(T_FLOAT, "[max_detections_per_image]: their scores")

    score_threshold: float = attr(default_with_warning="0", doc="exclusive minimum of scores")
    nms_threshold: float = attr(default_with_warning="0", doc="maximum overlap of boxes of a class")
    num_classes: int = attr(gt=0, doc="number of classes, including the background")
    post_nms_count: int = attr(
        default_with_warning="0", ge=-1, doc="maximum number of boxes of a class; -1 means all"
    )
    max_detections_per_image: int = attr(gt=0, doc="maximum number of boxes of all classes")
    class_agnostic_box_regression: bool = attr(False, doc="ignored")
    max_delta_log_wh: float = attr(default_with_warning="0", doc="maximum of the logarithms in deltas")
    deltas_weights: tuple[float, ...] = attr(doc="divisors of deltas, four numbers")

    def verify(self) -> None:
        """Require four weights."""
        if len(self.deltas_weights) != 4:
            raise ValidationError(
                f"attribute 'deltas_weights' must be 4 numbers, not {len(self.deltas_weights)}: "
                f"{', '.join(f'{w:g}' for w in self.deltas_weights)}",
                clause="attribute 'deltas_weights' has 4 numbers",
            )

    def infer(self, rois: Value, deltas: Value, scores: Value, im_info: Value) -> tuple[PartialShape, ...]:
        regions = region_count(rois, 4)
        for name, value, length in (
            ("deltas", deltas, 4 * self.num_classes),
            ("scores", scores, self.num_classes),
        ):
            merged = value.shape.merge(PartialShape([regions, length]))
            if merged is None:
                times = "4 * " if name == "deltas" else ""
                raise InferenceError(
                    f"{name} must be [regions, {times}num_classes], {PartialShape([regions, length])}, found {value.shape}",
                    clause=f"{name} is [regions, {times}num_classes]",
                )
            regions = merged[0]
        if not im_info.shape.compatible(PartialShape([1, 3])):
            raise InferenceError(
                f"im_info must be of shape [1,3], found {im_info.shape}", clause="im_info is of shape [1, 3]"
            )
        most = self.max_detections_per_image
        return PartialShape([most, 4]), PartialShape([most]), PartialShape([most])

    def evaluate(
        self, rois: Array, deltas: Array, scores: Array, im_info: Array
    ) -> tuple[Array, Array, Array]:
        regions, ranked = as_float(rois), as_float(scores).T
        moves = as_float(deltas).reshape(len(rois), self.num_classes, 4).transpose(1, 0, 2)
        moves = moves / np.array(self.deltas_weights, moves.dtype)
        valid = np.all(regions[:, 2:] > regions[:, :2], axis=1)
        refined = np.maximum(decode_deltas(regions, moves, 1, self.max_delta_log_wh), 0)
        refined, ranked = np.where(valid[:, None], refined, 0), np.where(valid, ranked, 0)
        labels, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for label in range(1, self.num_classes) if len(rois) else ():
            order = descending(ranked[label], self.score_threshold)
            left = order[greedy_nms(refined[label, order], self.nms_threshold, self.post_nms_count, extra=1)]
            labels.append(np.full(len(left), label))
            places.append(left)
        of, at = np.concatenate(labels), np.concatenate(places)
        most = self.max_detections_per_image
        if len(of) > most:
            best = np.lexsort((at, -ranked[of, at]))[:most]
            of, at = of[best], at[best]
        boxes, kinds = np.zeros((most, 4), rois.dtype), np.zeros(most, np.int32)
        final = np.zeros(most, scores.dtype)
        boxes[: len(of)], kinds[: len(of)] = refined[of, at], of
        final[: len(of)] = ranked[of, at]
        return boxes, kinds, final


@op("ExperimentalDetectronPriorGridGenerator-6")
class PriorGridGenerator(Op):
    """The boxes ``priors``, moved to the centre of every cell of a grid over an image."""

    flops_per_element = 1

    priors = Input(T_FLOAT, "[priors, 4]: x1, y1, x2, y2 relative to the centre of a cell")
    feature_map = Input(T_FLOAT, "[1, C, H, W]: only its shape is read")
    im_data = Input(T_FLOAT, "[1, C, height, width] of the image: only its shape is read")
    boxes = Output(T_FLOAT, "[H * W * priors, 4], or [H, W, priors, 4] if not flattened")

    flatten: bool = attr(True, doc="whether to return the boxes of all cells along one axis")
    h: int = attr(0, ge=0, doc="height of the grid; 0 means that of feature_map")
    w: int = attr(0, ge=0, doc="width of the grid; 0 means that of feature_map")
    stride_x: float = attr(
        0.0, doc="distance of cells along x; 0 means the image width divided by the grid's"
    )
    stride_y: float = attr(
        0.0, doc="distance of cells along y; 0 means the image height divided by the grid's"
    )

    def infer(self, priors: Value, feature_map: Value, im_data: Value) -> PartialShape:
        count = region_count(priors, 4, "priors", "priors")
        for name, value in (("feature_map", feature_map), ("im_data", im_data)):
            channels(value, name)
        maps, images = feature_map.shape, im_data.shape
        if maps.rank is not None and images.rank is not None and not maps[0].compatible(images[0]):
            raise InferenceError(
                f"feature_map {maps} and im_data {images} differ in batch size",
                clause="feature_map and im_data have the same batch size",
            )
        grid = [Dimension(), Dimension()] if maps.rank is None else list(maps[2:])
        height, width = (Dimension(n) if n else d for n, d in zip((self.h, self.w), grid, strict=True))
        if not self.flatten:
            return PartialShape([height, width, count, 4])
        boxes: Interval = height * width * count
        return PartialShape([boxes, 4])

    def evaluate(self, priors: Array, feature_map: Array, im_data: Array) -> Array:
        boxes = as_float(priors)
        grid = [n or length for n, length in zip((self.h, self.w), feature_map.shape[2:], strict=True)]
        steps = [
            boxes.dtype.type(step or size / max(n, 1))
            for step, size, n in zip((self.stride_y, self.stride_x), im_data.shape[2:], grid, strict=True)
        ]
        half = boxes.dtype.type(0.5)
        y, x = (step * (np.arange(n, dtype=boxes.dtype) + half) for n, step in zip(grid, steps, strict=True))
        places = np.empty((*grid, 1, 4), boxes.dtype)
        places[..., 0, ::2], places[..., 0, 1::2] = x[:, None], y[:, None, None]
        result = (boxes + places).astype(priors.dtype, copy=False)
        return result.reshape(-1, 4) if self.flatten else result


@op("ExperimentalDetectronROIFeatureExtractor-6")
class ROIFeatureExtractor(Op):
    """Features of ``rois`` by ROIAlign, each from the pyramid level that matches the size of the region."""

    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2")
    pyramid = Input(T_FLOAT, "[1, C, H, W] of each level, the finest first", variadic=True)
    features = Output(T_FLOAT, "[regions, C, output_size, output_size]; zeros for regions without an area")
    same_rois = Output(T_FLOAT, "a copy of rois")

    output_size: int = attr(gt=0, doc="height and width of the result")
    sampling_ratio: int = attr(
        default_with_warning="0",
        ge=0,
        doc="samples along each axis of a bin; 0 means one for each element of the feature map",
    )
    pyramid_scales: tuple[int, ...] = attr(gt=0, doc="divisor of coordinates, for each level")
    aligned: bool = attr(
        False, doc="whether integer coordinates are the edges of elements, not their centres"
    )

    def infer(self, rois: Value, *pyramid: Value) -> tuple[PartialShape, PartialShape]:
        if not pyramid:
            raise InferenceError(
                "takes at least 2 inputs (rois, one or more levels of the pyramid), got 1",
                code=Code.PORT_COUNT,
                clause="there is at least one level of the pyramid",
            )
        if len(pyramid) > len(self.pyramid_scales):
            raise InferenceError(
                f"the pyramid has {len(pyramid)} levels, the inputs after rois, but attribute 'pyramid_scales' has "
                f"{list(self.pyramid_scales)}; one for each is expected",
                clause="attribute 'pyramid_scales' has a number for each level of the pyramid",
            )
        regions, depth = region_count(rois, 4), Dimension()
        for index, level in enumerate(pyramid):
            name = f"level {index} of the pyramid"
            merged = depth.merge(channels(level, name, "each level of the pyramid"))
            if merged is None or (level.shape.rank is not None and not level.shape[0].contains(1)):
                raise InferenceError(
                    f"{name} must be of shape [1,{depth},H,W], found {level.shape}",
                    clause="each level of the pyramid is [1, C, H, W], with the same C",
                )
            depth = merged
        return (
            PartialShape([regions, depth, self.output_size, self.output_size]),
            PartialShape([regions, 4]),
        )

    def evaluate(self, rois: Array, *pyramid: Array) -> tuple[Array, Array]:
        regions = as_float(rois)
        size = self.output_size
        features = np.zeros((len(rois), pyramid[0].shape[1], size, size), rois.dtype)
        for index, level in enumerate(self._levels(regions, len(pyramid)).tolist()):
            if level < len(pyramid):
                features[index] = self._pool(
                    as_float(pyramid[level][0]), regions[index], self.pyramid_scales[level]
                )
        return features, rois.copy()

    def _levels(self, regions: Array, count: int) -> Array:
        """Return the pyramid level of each region, or ``count`` for a region without an area."""
        sides = regions[:, 2:] - regions[:, :2]
        area = sides[:, 0] * sides[:, 1]
        of = regions.dtype.type
        with np.errstate(all="ignore"):  # a region of 224 by 224 has level 2
            level = np.floor(np.log2(np.sqrt(area) / of(224) + of(1e-6)) + of(2))
        return np.where(area > 0, np.nan_to_num(level).clip(0, count - 1), count).astype(np.int64)

    def _pool(self, maps: Array, region: Array, scale: int) -> Array:
        of = maps.dtype.type
        corners = region * (of(1) / of(scale)) - of(0.5 if self.aligned else 0)
        width, height = np.maximum(corners[2:] - corners[:2], of(1))
        bins = self.output_size
        down, across = samples_of(height, width, bins, bins, self.sampling_ratio)
        y = corners[1] + sample_offsets(bins, down, height)[:, :, None, None]
        x = corners[0] + sample_offsets(bins, across, width)
        within = inside(y, x, *maps.shape[1:])
        values = np.where(within, bilinear(maps, y, x), of(0))
        return np.asarray(values.mean(axis=(2, 4), dtype=values.dtype))

    def flops(self, operands: Operands) -> Count:
        """Return the FLOPs of all bilinear samples; an adaptive number of samples counts as one per bin."""
        return BILINEAR * max(self.sampling_ratio, 1) ** 2 * operands.result
