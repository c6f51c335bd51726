"""Operations of Detectron: prior grids, ROI features, and detection output."""

from __future__ import annotations

import numpy as np

from ...codes import Code
from ...errors import InferenceError, ValidationError
from ...ir.dimension import Dimension, Interval
from ...ir.element import ElementType
from ...ir.formula import Count
from ...ir.operands import Operands
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, op
from .._resampling import BILINEAR
from ..kernels.boxes import as_float, decode_deltas, descending, greedy_nms
from ..kernels.regions import bilinear, inside, sample_offsets
from .roi_align import channels, region_count, samples_of


@op("ExperimentalDetectronDetectionOutput-6")
class DetectionOutput(Op):
    """Apply ``deltas`` to ``rois``, and select the best boxes of each class by ``scores``.

    Classes other than the first, which is the background. Boxes are not clipped to the image but at 0,
    and regions without an area count as boxes [0, 0, 0, 0] with a score of 0: so in OpenVINO.
    """

    flops_per_element = 0
    flops_per_input = {"deltas": 2, "scores": 1}

    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2")
    deltas = Input(T_FLOAT, "[regions, num_classes * 4]: steps of the centre, logarithms of factors of sides")
    scores = Input(T_FLOAT, "[regions, num_classes]")
    im_info = Input(T_FLOAT, "[1, 3]: height and width of the image, and a scale; does not matter")
    boxes = Output(T_FLOAT, "[max_detections_per_image, 4]: the boxes, then zeros")
    classes = Output(ElementType.i32, "[max_detections_per_image]: their classes")
    box_scores = Output(T_FLOAT, "[max_detections_per_image]: their scores")

    score_threshold: float = attr(default_with_warning="0", doc="what scores must be above")
    nms_threshold: float = attr(
        default_with_warning="0", doc="the overlap that is still allowed within a class"
    )
    num_classes: int = attr(gt=0, doc="number of classes, with the background")
    post_nms_count: int = attr(
        default_with_warning="0", ge=-1, doc="how many boxes of a class are left at most; -1 means all"
    )
    max_detections_per_image: int = attr(gt=0, doc="how many boxes are left at most")
    class_agnostic_box_regression: bool = attr(False, doc="does not matter")
    max_delta_log_wh: float = attr(default_with_warning="0", doc="what logarithms are at most")
    deltas_weights: tuple[float, ...] = attr(doc="what deltas are divided by, four numbers")

    def verify(self) -> None:
        """Require a weight for each delta."""
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
    """The ``priors`` at every place of a grid laid over an image."""

    flops_per_element = 1

    priors = Input(T_FLOAT, "[priors, 4]: x1, y1, x2, y2 around a place")
    feature_map = Input(T_FLOAT, "[1, C, H, W]: only its size matters")
    im_data = Input(T_FLOAT, "[1, C, height, width] of the image: only its size matters")
    boxes = Output(T_FLOAT, "[H * W * priors, 4], or [H, W, priors, 4] if not flattened")

    flatten: bool = attr(True, doc="whether the boxes of all places are in one list")
    h: int = attr(0, ge=0, doc="height of the grid; 0 means that of feature_map")
    w: int = attr(0, ge=0, doc="width of the grid; 0 means that of feature_map")
    stride_x: float = attr(0.0, doc="distance of places along x; 0 means image by grid")
    stride_y: float = attr(0.0, doc="distance of places along y; 0 means image by grid")

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
    """ROIAlign features of ``rois``, each from the pyramid level that matches its size."""

    rois = Input(T_FLOAT, "[regions, 4]: x1, y1, x2, y2")
    pyramid = Input(T_FLOAT, "[1, C, H, W] of each level, the finest first", variadic=True)
    features = Output(T_FLOAT, "[regions, C, output_size, output_size]; zeros for regions without an area")
    same_rois = Output(T_FLOAT, "rois")

    output_size: int = attr(gt=0, doc="height and width of the result")
    sampling_ratio: int = attr(
        default_with_warning="0",
        ge=0,
        doc="points along each axis of a bin; 0 means as many as there are elements",
    )
    pyramid_scales: tuple[int, ...] = attr(gt=0, doc="what coordinates are divided by, for each level")
    aligned: bool = attr(False, doc="whether coordinates are those of elements' centres")

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
            merged = depth.merge(channels(level, name))
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
        """Return the pyramid level of each region; ``count`` for one without an area."""
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
        """Return the FLOPs of the bilinear samples of each bin; one sample if their number is adaptive."""
        return BILINEAR * max(self.sampling_ratio, 1) ** 2 * operands.result
