"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "deformable_convolution",
    "detection_output",
    "max_pool",
    "prior_box",
    "softmax",
]


def deformable_convolution(
    data: NodeInput,
    deformable_values: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str = "EXPLICIT",
    group: int = 1,
    deformable_group: int = 1,
    name: str | None = None,
) -> Node:
    """Create DeformableConvolution-1.

    Correlate ``data`` with each of ``filters``, whose elements look elsewhere by ``offsets``.

    Args:
        data: [N, C_in, Y, X].
        deformable_values: [N, deformable_group * elements * 2, Y_out, X_out]; for each kernel element, how
            far down and right it looks.
        filters: [C_out, C_in / group, kernel...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        group: number of groups of channels that are convolved apart.
        deformable_group: number of groups of input channels that have offsets of their own.
        name: the name of the node.
    """
    return make(
        "DeformableConvolution",
        1,
        [data, deformable_values, filters],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
            "group": group,
            "deformable_group": deformable_group,
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
    """Create DetectionOutput-1.

    Boxes that ``box_logits`` make of ``proposals``, of each class those with the best of ``class_preds``.

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
        1,
        [box_logits, class_preds, proposals, aux_class_preds, aux_box_preds],
        {
            **attrs,
        },
        name,
    )


def max_pool(
    data: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    rounding_type: str = "floor",
    auto_pad: str | None = None,
    name: str | None = None,
) -> Node:
    """MaxPool-1: Largest element of ``data`` under each window.

    Args:
        data: [N, C, spatial...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        kernel_shape: length of the window along each spatial axis.
        rounding_type: how the number of windows is rounded; with ceil, the last one may be cut off.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        name: the name of the node.
    """
    return make(
        "MaxPool",
        1,
        [data],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "kernel": kernel_shape,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
        },
        name,
    )


def prior_box(
    layer_shape: NodeInput,
    image_shape: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """PriorBox-1: Boxes of given sizes and aspect ratios at every place of a grid laid over an image.

    Args:
        layer_shape: [2]: height and width of the grid.
        image_shape: [2]: height and width of the image.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "PriorBox",
        1,
        [layer_shape, image_shape],
        {
            **attrs,
        },
        name,
    )


def softmax(
    data: NodeInput,
    axis: int,
    name: str | None = None,
) -> Node:
    """SoftMax-1: As version 8, with axes from the front only.

    Args:
        data: tensor of any shape.
        axis: the axis of the sums.
        name: the name of the node.
    """
    return make(
        "SoftMax",
        1,
        [data],
        {
            "axis": axis,
        },
        name,
    )
