"""The operations that opset9 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "eye",
    "generate_proposals",
    "grid_sample",
    "irdft",
    "multiclass_nms",
    "non_max_suppression",
    "rdft",
    "roi_align",
    "softsign",
]


def eye(
    num_rows: NodeInput,
    num_columns: NodeInput,
    diagonal_index: NodeInput,
    output_type: TypeLike,
    batch_shape: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Eye-9: Matrices, or batches of them, with ones on one diagonal and zeros elsewhere.

    Args:
        num_rows: number of rows, one number.
        num_columns: number of columns, one number.
        diagonal_index: column of the one in the first row, one number; below 0, it is the row of the one in
            the first column, negated.
        output_type: element type of the output, a numeric one.
        batch_shape: axes before the matrices, 1-D; none when absent.
        name: the name of the node.
    """
    return make(
        "Eye",
        9,
        [num_rows, num_columns, diagonal_index, batch_shape],
        {
            "output_type": output_type,
        },
        name,
    )


def generate_proposals(
    im_info: NodeInput,
    anchors: NodeInput,
    deltas: NodeInput,
    scores: NodeInput,
    min_size: float,
    nms_threshold: float,
    pre_nms_count: int,
    post_nms_count: int,
    normalized: bool = True,
    nms_eta: float = 1.0,
    roi_num_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """Create GenerateProposals-9.

    Boxes that ``deltas`` make of ``anchors``, for each image the best of those that do not overlap.

    Args:
        im_info: [N, 3 or 4]: height and width of the image, one scale of min_size or two.
        anchors: [H, W, anchors, 4]: x1, y1, x2, y2.
        deltas: [N, 4 * anchors, H, W]: steps of the centre, logarithms of factors of sides.
        scores: [N, anchors, H, W].
        min_size: what sides are at least.
        nms_threshold: the overlap that is still allowed.
        pre_nms_count: how many boxes are compared at most.
        post_nms_count: how many boxes are left at most.
        normalized: whether sides are differences of coordinates; if not, 1 more.
        nms_eta: for a threshold that adapts itself; like OpenVINO's, this one does not.
        roi_num_type: element type of the counts, i64 or i32.
        name: the name of the node.
    """
    return make(
        "GenerateProposals",
        9,
        [im_info, anchors, deltas, scores],
        {
            "min_size": min_size,
            "nms_threshold": nms_threshold,
            "pre_nms_count": pre_nms_count,
            "post_nms_count": post_nms_count,
            "normalized": normalized,
            "nms_eta": nms_eta,
            "roi_num_type": roi_num_type,
        },
        name,
    )


def grid_sample(
    data: NodeInput,
    grid: NodeInput,
    attributes: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """Create GridSample-9.

    Sample ``data`` at the points of ``grid``, whose coordinates go from -1 to 1 over the image.

    Args:
        data: [N, C, H, W].
        grid: [N, rows, columns, 2]; for each sample, where it is: horizontally, then vertically.
        attributes: the attributes by name.
        name: the name of the node.
    """
    return make(
        "GridSample",
        9,
        [data, grid],
        {
            **attributes,
        },
        name,
    )


def irdft(
    data: NodeInput,
    axes: NodeInput,
    signal_size: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """IRDFT-9: The real numbers of which ``data`` is what RDFT gives along ``axes``.

    Args:
        data: complex numbers, the real and the imaginary part along the last axis.
        axes: axes to transform, 1-D, in any order; negative ones count from the end.
        signal_size: how long to make each of these axes first, by cutting or by adding zeros at the end; -1,
            or nothing at all, means as long as it is.
        name: the name of the node.
    """
    return make(
        "IRDFT",
        9,
        [data, axes, signal_size],
        {},
        name,
    )


def multiclass_nms(
    boxes: NodeInput,
    scores: NodeInput,
    roisnum: NodeInput | None = None,
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
    """MulticlassNms-9: As version 8; classes may have boxes of their own, those of all images in one list.

    Args:
        boxes: [images, boxes, 4]; or [classes, boxes, 4], if there is roisnum: x1, y1, x2, y2.
        scores: [images, classes, boxes], or [classes, boxes].
        roisnum: [images]: how many of the boxes are of each.
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
        9,
        [boxes, scores, roisnum],
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
    """NonMaxSuppression-9: As version 5, but where scores are lowered, iou_threshold has no meaning.

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
        9,
        [boxes, scores, max_output_boxes_per_class, iou_threshold, score_threshold, soft_nms_sigma],
        {
            "box_encoding": box_encoding,
            "sort_result_descending": sort_result_descending,
            "output_type": output_type,
        },
        name,
    )


def rdft(
    data: NodeInput,
    axes: NodeInput,
    signal_size: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """RDFT-9: The first half of the discrete Fourier transform of real ``data`` along ``axes``.

    Args:
        data: real numbers.
        axes: axes to transform, 1-D, in any order; negative ones count from the end.
        signal_size: how long to make each of these axes first, by cutting or by adding zeros at the end; -1,
            or nothing at all, means as long as it is.
        name: the name of the node.
    """
    return make(
        "RDFT",
        9,
        [data, axes, signal_size],
        {},
        name,
    )


def roi_align(
    data: NodeInput,
    rois: NodeInput,
    batch_indices: NodeInput,
    pooled_h: int,
    pooled_w: int,
    sampling_ratio: int,
    spatial_scale: float,
    mode: str,
    aligned_mode: str = "asymmetric",
    name: str | None = None,
) -> Node:
    """ROIAlign-9: As version 3, with ways to read coordinates as those of elements' centres.

    Args:
        data: [N, C, H, W]: feature maps.
        rois: [regions, 4]: x1, y1, x2, y2 before spatial_scale.
        batch_indices: [regions]: the batch entry of each; none from the first -1 on.
        pooled_h: height of the result.
        pooled_w: width of the result.
        sampling_ratio: points along each axis of a bin; 0 means as many as there are elements.
        spatial_scale: what coordinates of regions are multiplied by.
        mode: what becomes of the samples of a bin; max is 0 at least.
        aligned_mode: asymmetric: scaled only, and regions are 1 by 1 at least; half_pixel_for_nn: less 0.5
            after; half_pixel: also plus 0.5 before.
        name: the name of the node.
    """
    return make(
        "ROIAlign",
        9,
        [data, rois, batch_indices],
        {
            "pooled_h": pooled_h,
            "pooled_w": pooled_w,
            "sampling_ratio": sampling_ratio,
            "spatial_scale": spatial_scale,
            "mode": mode,
            "aligned_mode": aligned_mode,
        },
        name,
    )


def softsign(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """SoftSign-9: Each element of ``data``, divided by 1 plus its absolute value.

    Args:
        node: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "SoftSign",
        9,
        [node],
        {},
        name,
    )
