"""The operations that opset8 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import If as if_op, NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "adaptive_avg_pool",
    "adaptive_max_pool",
    "deformable_convolution",
    "detection_output",
    "gather",
    "gather_nd",
    "i420_to_bgr",
    "i420_to_rgb",
    "if_op",
    "matrix_nms",
    "nv12_to_bgr",
    "nv12_to_rgb",
    "prior_box",
    "random_uniform",
    "slice",
    "softmax",
]


def adaptive_avg_pool(
    data: NodeInput,
    output_shape: NodeInput,
    name: str | None = None,
) -> Node:
    """AdaptiveAvgPool-8: Mean of ``data`` under each of as many windows as ``output_size`` says.

    Args:
        data: [N, C, spatial...].
        output_shape: 1-D; the number of windows along each spatial axis.
        name: the name of the node.
    """
    return make(
        "AdaptiveAvgPool",
        8,
        [data, output_shape],
        {},
        name,
    )


def adaptive_max_pool(
    data: NodeInput,
    output_shape: NodeInput,
    index_element_type: TypeLike = "i64",
    name: str | None = None,
) -> Node:
    """Create AdaptiveMaxPool-8.

    Largest element of ``data`` under each of as many windows as ``output_size`` says, and where it is.

    Args:
        data: [N, C, spatial...].
        output_shape: 1-D; the number of windows along each spatial axis.
        index_element_type: type of the indices, i64 or i32.
        name: the name of the node.
    """
    return make(
        "AdaptiveMaxPool",
        8,
        [data, output_shape],
        {
            "index_element_type": index_element_type,
        },
        name,
    )


def deformable_convolution(
    data: NodeInput,
    offsets: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    mask: NodeInput | None = None,
    auto_pad: str = "EXPLICIT",
    group: int = 1,
    deformable_group: int = 1,
    bilinear_interpolation_pad: bool = False,
    name: str | None = None,
) -> Node:
    """DeformableConvolution-8: As version 1, where what each kernel element sees is weighed by ``mask``.

    Args:
        data: [N, C_in, Y, X].
        offsets: [N, deformable_group * elements * 2, Y_out, X_out]; for each kernel element, how far down and
            right it looks.
        filters: [C_out, C_in / group, kernel...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        mask: [N, deformable_group * elements, Y_out, X_out]; 1 when absent.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        group: number of groups of channels that are convolved apart.
        deformable_group: number of groups of input channels that have offsets of their own.
        bilinear_interpolation_pad: whether there are zeros right outside of the data; else what looks there
            sees nothing at all.
        name: the name of the node.
    """
    return make(
        "DeformableConvolution",
        8,
        [data, offsets, filters, mask],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
            "group": group,
            "deformable_group": deformable_group,
            "bilinear_interpolation_pad": bilinear_interpolation_pad,
        },
        name,
    )


def detection_output(
    box_logits: NodeInput,
    class_preds: NodeInput,
    proposals: NodeInput,
    attrs: Mapping[str, Any],
    aux_class_preds: NodeInput | None = None,
    aux_box_preds: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """DetectionOutput-8: As version 1; the number of classes follows from the inputs.

    Args:
        box_logits: [N, priors * classes or 1 * 4]: deltas to the priors.
        class_preds: [N, priors * classes]: scores.
        proposals: [N or 1, 2 or 1, priors * 4 or 5]: priors, with an image id first if not normalized; and
            variances, unless they are encoded in the target.
        attrs: the attributes by name.
        aux_class_preds: [N, priors * 2]: whether there is anything, in second place.
        aux_box_preds: as box_logits: deltas to make better priors first.
        name: the name of the node.
    """
    return make(
        "DetectionOutput",
        8,
        [box_logits, class_preds, proposals, aux_class_preds, aux_box_preds],
        {
            **attrs,
        },
        name,
    )


def gather(
    data: NodeInput,
    indices: NodeInput,
    axis: NodeInput,
    batch_dims: int = 0,
    name: str | None = None,
) -> Node:
    """Gather-8: Slices of ``data`` along ``axis`` at ``indices``; zeros where an index is outside.

    Args:
        data: tensor to pick from.
        indices: indices along the axis, of any shape; negative ones count from its end.
        axis: the axis, a scalar or one number; a negative one counts from the end.
        batch_dims: leading axes that data and indices share; negative: from the indices' end.
        name: the name of the node.
    """
    return make(
        "Gather",
        8,
        [data, indices, axis],
        {
            "batch_dims": batch_dims,
        },
        name,
    )


def gather_nd(
    data: NodeInput,
    indices: NodeInput,
    batch_dims: int = 0,
    name: str | None = None,
) -> Node:
    """GatherND-8: The slices of ``data`` that the tuples in ``indices`` name.

    Args:
        data: tensor to take from.
        indices: tuples along the last axis, each naming an element or a slice of data.
        batch_dims: how many leading axes data and indices have in common.
        name: the name of the node.
    """
    return make(
        "GatherND",
        8,
        [data, indices],
        {
            "batch_dims": batch_dims,
        },
        name,
    )


def i420_to_bgr(
    arg: NodeInput,
    arg_u: NodeInput | None = None,
    arg_v: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """I420toBGR-8: Convert the planes ``y``, ``u`` and ``v`` to blue, green and red.

    Args:
        arg: [N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes.
        arg_u: [N, H / 2, W / 2, 1]; absent where the first input has all planes.
        arg_v: [N, H / 2, W / 2, 1]; absent where the first input has all planes.
        name: the name of the node.
    """
    return make(
        "I420toBGR",
        8,
        [arg, arg_u, arg_v],
        {},
        name,
    )


def i420_to_rgb(
    arg: NodeInput,
    arg_u: NodeInput | None = None,
    arg_v: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """I420toRGB-8: Convert the planes ``y``, ``u`` and ``v`` to red, green and blue.

    Args:
        arg: [N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes.
        arg_u: [N, H / 2, W / 2, 1]; absent where the first input has all planes.
        arg_v: [N, H / 2, W / 2, 1]; absent where the first input has all planes.
        name: the name of the node.
    """
    return make(
        "I420toRGB",
        8,
        [arg, arg_u, arg_v],
        {},
        name,
    )


def matrix_nms(
    boxes: NodeInput,
    scores: NodeInput,
    sort_result_type: str = "none",
    sort_result_across_batch: bool = False,
    output_type: TypeLike = "i64",
    score_threshold: float = 0.0,
    nms_top_k: int = -1,
    keep_top_k: int = -1,
    background_class: int = -1,
    decay_function: str = "linear",
    gaussian_sigma: float = 2.0,
    post_threshold: float = 0.0,
    normalized: bool = True,
    name: str | None = None,
) -> Node:
    """Create MatrixNms-8.

    Which of ``boxes`` are left of each class, when every one lowers the scores of those it overlaps.

    Args:
        boxes: [images, boxes, 4]: x1, y1, x2, y2.
        scores: [images, classes, boxes].
        sort_result_type: what boxes are ordered by.
        sort_result_across_batch: whether boxes are ordered over all images.
        output_type: element type of indices and counts, i64 or i32.
        score_threshold: what scores are compared with.
        nms_top_k: how many boxes of a class are compared at most; -1 means all.
        keep_top_k: how many boxes of an image are left at most; -1 means all.
        background_class: the class that is not looked for; -1 if there is none.
        decay_function: how much an overlap lowers a score.
        gaussian_sigma: how fast the gaussian falls.
        post_threshold: what lowered scores must be above.
        normalized: whether sides are differences of coordinates; if not, 1 more.
        name: the name of the node.
    """
    return make(
        "MatrixNms",
        8,
        [boxes, scores],
        {
            "sort_result_type": sort_result_type,
            "sort_result_across_batch": sort_result_across_batch,
            "output_type": output_type,
            "score_threshold": score_threshold,
            "nms_top_k": nms_top_k,
            "keep_top_k": keep_top_k,
            "background_class": background_class,
            "decay_function": decay_function,
            "gaussian_sigma": gaussian_sigma,
            "post_threshold": post_threshold,
            "normalized": normalized,
        },
        name,
    )


def nv12_to_bgr(
    arg: NodeInput,
    arg_uv: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """NV12toBGR-8: Convert the planes ``y`` and ``uv`` to blue, green and red.

    Args:
        arg: [N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes.
        arg_uv: [N, H / 2, W / 2, 2]; absent where the other input has all planes.
        name: the name of the node.
    """
    return make(
        "NV12toBGR",
        8,
        [arg, arg_uv],
        {},
        name,
    )


def nv12_to_rgb(
    arg: NodeInput,
    arg_uv: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """NV12toRGB-8: Convert the planes ``y`` and ``uv`` to red, green and blue.

    Args:
        arg: [N, H, W, 1], or [N, H * 3 / 2, W, 1] with all planes.
        arg_uv: [N, H / 2, W / 2, 2]; absent where the other input has all planes.
        name: the name of the node.
    """
    return make(
        "NV12toRGB",
        8,
        [arg, arg_uv],
        {},
        name,
    )


def prior_box(
    layer_shape: NodeInput,
    image_shape: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """PriorBox-8: As version 1, with a choice of the order of boxes.

    Args:
        layer_shape: [2]: height and width of the grid.
        image_shape: [2]: height and width of the image.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "PriorBox",
        8,
        [layer_shape, image_shape],
        {
            **attrs,
        },
        name,
    )


def random_uniform(
    output_shape: NodeInput,
    min_val: NodeInput,
    max_val: NodeInput,
    output_type: TypeLike,
    global_seed: int = 0,
    op_seed: int = 0,
    alignment: str = "tensorflow",
    name: str | None = None,
) -> Node:
    """RandomUniform-8: Random numbers from ``minval``, below ``maxval``.

    Args:
        output_shape: lengths of the axes, 1-D.
        min_val: the lowest number, a scalar or alone in a list.
        max_val: above all numbers, a scalar or alone in a list; rounding may reach it.
        output_type: element type of the output: f64, f32, f16, bf16, i64 or i32.
        global_seed: first seed; if both are 0, the numbers are others each time.
        op_seed: second seed.
        alignment: whose numbers to draw: by Philox, or by a Mersenne twister that is seeded with global_seed
            alone.
        name: the name of the node.
    """
    return make(
        "RandomUniform",
        8,
        [output_shape, min_val, max_val],
        {
            "output_type": output_type,
            "global_seed": global_seed,
            "op_seed": op_seed,
            "alignment": alignment,
        },
        name,
    )


def slice(
    data: NodeInput,
    start: NodeInput,
    stop: NodeInput,
    step: NodeInput,
    axes: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Slice-8: The elements of ``data`` from ``start`` to before ``stop`` by ``step``, along ``axes``.

    Args:
        data: tensor to slice.
        start: 1-D; first indices; negative ones count from the end, and all are clamped.
        stop: 1-D; indices behind the last ones, likewise.
        step: 1-D; numbers from one element to the next, negative backwards, never 0.
        axes: 1-D; the axes, each once; the first ones when absent.
        name: the name of the node.
    """
    return make(
        "Slice",
        8,
        [data, start, stop, step, axes],
        {},
        name,
    )


def softmax(
    data: NodeInput,
    axis: int,
    name: str | None = None,
) -> Node:
    """SoftMax-8: Exponentials of ``data``, scaled so that they sum to 1 along ``axis``.

    Args:
        data: tensor of any shape.
        axis: the axis of the sums; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "SoftMax",
        8,
        [data],
        {
            "axis": axis,
        },
        name,
    )
