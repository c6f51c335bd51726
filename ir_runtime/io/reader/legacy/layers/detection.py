"""Legacy layers for object detection and sequence decoding."""

from __future__ import annotations

import math
from typing import Any, Literal

from .....ir.element import ElementType
from ..declaration import LegacyLayer, attr, layer
from ..site import Site, Tensor

_SIZES = 4
"""Number of image properties that Proposal reads: height, width, and the scales of both."""


def _sizes(site: Site) -> tuple[Tensor, Tensor]:
    """Return the heights and widths of both inputs, each as a tensor of two lengths."""
    first, second = site.inputs
    return site.lengths(first, (2, 3)), site.lengths(second, (2, 3))


def _flat(site: Site, index: int) -> Tensor:
    """Return an input flattened to two dims."""
    tensor = site.inputs[index]
    return tensor if len(site.dims(index)) == 2 else site.reshape(tensor, (0, -1))


def _settings(declared: LegacyLayer, *without: str) -> dict[str, Any]:
    """Return the attributes of a layer by name, except those in ``without``, for an operation that has the same attributes."""
    return {name: value for name, value in vars(declared).items() if name not in without}


@layer("PriorBox")
class PriorBox(LegacyLayer):
    """Upgraded to PriorBox, with heights and widths from ShapeOf and Gather, and Unsqueeze."""

    inputs = (2, 2)
    min_size: tuple[float, ...] = attr(())
    max_size: tuple[float, ...] = attr(())
    aspect_ratio: tuple[float, ...] = attr(())
    flip: bool = attr(False)
    clip: bool = attr(False)
    step: float = attr(0.0)
    offset: float = attr(0.5)
    variance: tuple[float, ...] = attr(())
    scale_all_sizes: bool = attr(True)
    fixed_ratio: tuple[float, ...] = attr(())
    fixed_size: tuple[float, ...] = attr(())
    density: tuple[float, ...] = attr(())
    leftovers = frozenset({"width", "height"})
    unread = frozenset({"step_h", "step_w", "img_size", "img_h", "img_w"})

    def build(self, site: Site) -> Tensor:
        boxes = site.op("PriorBox-1", *_sizes(site), **_settings(self))
        return site.op("Unsqueeze-1", boxes, site.constant([0]))


@layer("PriorBoxClustered")
class PriorBoxClustered(LegacyLayer):
    """Upgraded to PriorBoxClustered, with heights and widths from attributes or ShapeOf and Gather, and Unsqueeze."""

    inputs = (2, 2)
    width: tuple[float, ...] = attr((), gt=0)
    height: tuple[float, ...] = attr((), gt=0)
    clip: bool = attr(False)
    step: float = attr(0.0)
    step_w: float = attr(0.0)
    step_h: float = attr(0.0)
    offset: float = attr(0.5)
    variance: tuple[float, ...] = attr(())
    img_h: int = attr(0, ge=0)
    img_w: int = attr(0, ge=0)
    leftovers = frozenset({"flip", "min_size", "max_size", "aspect_ratio"})

    def build(self, site: Site) -> Tensor:
        map, image = _sizes(site)
        if self.img_h or self.img_w:
            sides = enumerate((self.img_h, self.img_w), 2)
            image = site.op(
                "Concat-1",
                *(
                    site.constant([side]) if side else site.lengths(site.inputs[1], (axis,))
                    for axis, side in sides
                ),
                axis=0,
            )
        boxes = site.op("PriorBoxClustered-1", map, image, **_settings(self, "img_h", "img_w"))
        return site.op("Unsqueeze-1", boxes, site.constant([0]))


@layer("DetectionOutput")
class DetectionOutput(LegacyLayer):
    """Upgraded to DetectionOutput, after a Reshape of all inputs but the priors to rows."""

    inputs = (3, 5)
    num_classes: int = attr(gt=0)
    background_label_id: int = attr(0)
    top_k: int = attr(-1)
    variance_encoded_in_target: bool = attr(False)
    keep_top_k: tuple[int, ...] = attr((-1,))
    code_type: Literal["caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"] = attr(
        "caffe.PriorBoxParameter.CORNER"
    )
    share_location: bool = attr(True)
    nms_threshold: float = attr(doc="the overlap above which boxes are merged")
    confidence_threshold: float = attr(float(-(2**127) * (2 - 2**-23)))
    clip: bool = attr(False)
    clip_after_nms: bool = attr(False)
    clip_before_nms: bool = attr(False)
    decrease_label_id: bool = attr(False)
    normalized: bool = attr(True)  # as runtimes behaved, unlike the page: priors have 4 numbers
    input_height: int = attr(1)
    input_width: int = attr(1)
    objectness_score: float = attr(0.0)
    leftovers = frozenset(
        {"eta", "interp_mode", "height", "width", "height_scale", "width_scale", "label_map_file", "name_size_file",
         "num_test_image", "output_directory", "output_format", "output_name_prefix", "pad_mode", "pad_value",
         "prob", "resize_mode", "save_file", "visualize", "visualize_threshold", "resize_param", "type", "axis"}
    )  # fmt: skip

    def build(self, site: Site) -> Tensor:
        boxes, classes = _flat(site, 0), _flat(site, 1)
        settings = _settings(self, "clip") | {
            "clip_before_nms": self.clip_before_nms or self.clip,
            "input_height": max(self.input_height, 1),
            "input_width": max(self.input_width, 1),
        }
        rest = [_flat(site, index) for index in range(3, len(site.inputs))]
        return site.op("DetectionOutput-1", boxes, classes, site.inputs[2], *rest, **settings)


@layer("Proposal")
class Proposal(LegacyLayer):
    """Upgraded to Proposal, after the image size is reshaped to one dim and cut to four values."""

    inputs = (3, 3)
    base_size: int = attr(gt=0)
    pre_nms_topn: int = attr(gt=0)
    post_nms_topn: int = attr(gt=0)
    nms_thresh: float = attr(gt=0)
    feat_stride: int = attr(gt=0)
    min_size: int = attr(gt=0)
    ratio: tuple[float, ...] = attr(())
    scale: tuple[float, ...] = attr(())
    clip_before_nms: bool = attr(True)
    clip_after_nms: bool = attr(False)
    normalize: bool = attr(False)
    box_size_scale: float = attr(1.0)
    box_coordinate_scale: float = attr(1.0)
    framework: Literal["", "tensorflow"] = attr("")
    unread = frozenset({"for_deformable"})

    def build(self, site: Site) -> Tensor:
        probabilities, deltas, image = site.inputs
        if len(site.dims(2)) != 1:
            image = site.reshape(image, (-1,))
        if math.prod(site.dims(2)) > _SIZES:
            image = site.op("Slice-8", image, *(site.constant([number]) for number in (0, _SIZES, 1, 0)))
        return site.op("Proposal-1", probabilities, deltas, image, **_settings(self))


@layer("ROIPooling")
class ROIPooling(LegacyLayer):
    """Upgraded to ROIPooling."""

    inputs = (2, 2)
    pooled_h: int = attr(gt=0)
    pooled_w: int = attr(gt=0)
    spatial_scale: float = attr(gt=0)
    method: Literal["max", "bilinear"] = attr("max")

    def build(self, site: Site) -> Tensor:
        return site.op("ROIPooling-1", *site.inputs, **_settings(self))


@layer("PSROIPooling")
class PSROIPooling(LegacyLayer):
    """Upgraded to PSROIPooling."""

    inputs = (2, 2)
    output_dim: int = attr(gt=0)
    group_size: int = attr(1, gt=0)
    spatial_scale: float = attr(gt=0)
    mode: Literal["average", "bilinear"] = attr("average")
    spatial_bins_x: int = attr(1, gt=0)
    spatial_bins_y: int = attr(1, gt=0)
    leftovers = frozenset({"no_trans", "trans_std", "part_size"})

    def build(self, site: Site) -> Tensor:
        return site.op("PSROIPooling-1", *site.inputs, **_settings(self))


@layer("ExperimentalDetectronROIFeatureExtractor")
class ExperimentalDetectronROIFeatureExtractor(LegacyLayer):
    """Upgraded to ExperimentalDetectronROIFeatureExtractor."""

    inputs = (2, None)
    output_size: int = attr(gt=0)
    sampling_ratio: int = attr(0, ge=0)
    pyramid_scales: tuple[int, ...] = attr(gt=0)
    leftovers = frozenset({"aligned", "distribute_rois_between_levels", "image_id", "preserve_rois_order"})

    def build(self, site: Site) -> tuple[Tensor, ...]:
        outputs = len(site.layer.outputs)
        name = "ExperimentalDetectronROIFeatureExtractor-6"
        return site.ops(name, site.inputs, max(outputs, 2), **_settings(self))


@layer("RegionYolo")
class RegionYolo(LegacyLayer):
    """Upgraded to RegionYolo."""

    axis: int = attr(1)
    end_axis: int = attr(3)
    coords: int = attr(gt=0)
    classes: int = attr(gt=0)
    num: int = attr(gt=0)
    do_softmax: bool = attr(True)
    mask: tuple[int, ...] = attr(())
    anchors: tuple[float, ...] = attr(())
    leftovers = frozenset({"bias_match", "jitter", "rescore", "object_scale", "noobject_scale", "class_scale",
                           "coord_scale", "absolute", "thresh", "random"})  # fmt: skip

    def build(self, site: Site) -> Tensor:
        return site.op("RegionYolo-1", site.inputs[0], **_settings(self))


@layer("ReorgYolo")
class ReorgYolo(LegacyLayer):
    """Upgraded to ReorgYolo."""

    stride: int = attr(gt=0)

    def build(self, site: Site) -> Tensor:
        return site.op("ReorgYolo-1", site.inputs[0], stride=self.stride)


@layer("NonMaxSuppression")
class NonMaxSuppression(LegacyLayer):
    """Upgraded to NonMaxSuppression with i32 indices, padded with -1 to the declared rows by Concat and Slice."""

    inputs = (2, 5)
    center_point_box: bool = attr(False)
    sort_result_descending: bool = attr(True)

    def build(self, site: Site) -> Tensor:
        boxes, scores, *limits = site.inputs
        limits = [site.scalar(tensor) for tensor in limits]
        if limits:
            limits[0] = site.indices(limits[0])
        encoding = "center" if self.center_point_box else "corner"
        selected = site.op(
            "NonMaxSuppression-4",
            boxes,
            scores,
            *limits,
            box_encoding=encoding,
            sort_result_descending=self.sort_result_descending,
            output_type=ElementType.i32,
        )
        rows = site.ranked_output(2)
        rest = site.op("Broadcast-1", site.constant(-1, ElementType.i32), site.constant([rows[0], 3]))
        ends = (site.constant([number]) for number in (0, rows[0], 1, 0))
        return site.op("Slice-8", site.op("Concat-1", selected, rest, axis=0), *ends)


@layer("CTCGreedyDecoder")
class CTCGreedyDecoder(LegacyLayer):
    """Upgraded to CTCGreedyDecoder; without a second input, sequences have full length."""

    inputs = (1, 2)
    ctc_merge_repeated: bool = attr(True)
    leftovers = frozenset({"stride"})

    def build(self, site: Site) -> Tensor:
        data, *mask = site.inputs
        if not mask:
            ones = site.constant(1, ElementType.f32)
            mask = [site.op("Broadcast-1", ones, site.lengths(data, (0, 1)))]
        return site.op("CTCGreedyDecoder-1", data, *mask, ctc_merge_repeated=self.ctc_merge_repeated)
