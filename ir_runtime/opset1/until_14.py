"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "avg_pool",
]


def avg_pool(
    data_batch: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    exclude_pad: bool,
    rounding_type: str = "floor",
    auto_pad: str | None = None,
    name: str | None = None,
) -> Node:
    """AvgPool-1: Mean of the elements of ``data`` under each window.

    Args:
        data_batch: [N, C, spatial...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        kernel_shape: length of the window along each spatial axis.
        exclude_pad: whether the mean is over data only, without padding.
        rounding_type: how the number of windows is rounded; with ceil, the last one may be cut off.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        name: the name of the node.
    """
    return make(
        "AvgPool",
        1,
        [data_batch],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "kernel": kernel_shape,
            "exclude_pad": exclude_pad,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
        },
        name,
    )
