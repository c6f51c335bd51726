"""The operations that opset8 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "max_pool",
]


def max_pool(
    data: NodeInput,
    strides: Sequence[int],
    dilations: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    kernel_shape: Sequence[int],
    rounding_type: str = "floor",
    auto_pad: str | None = None,
    index_element_type: TypeLike = "i64",
    axis: int = 0,
    name: str | None = None,
) -> Node:
    """Create MaxPool-8.

    Largest element of ``data`` under each window, as version 1, and where it is: the first, if many.

    Args:
        data: [N, C, spatial...].
        strides: step of the window along each spatial axis.
        dilations: distance between elements of the window along each spatial axis; 1 when absent.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        kernel_shape: length of the window along each spatial axis.
        rounding_type: how the number of windows is rounded; with ceil, the last one may be cut off.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        index_element_type: type of the indices, i64 or i32.
        axis: first axis that the indices count over; negative ones count from the end.
        name: the name of the node.
    """
    return make(
        "MaxPool",
        8,
        [data],
        {
            "strides": strides,
            "dilations": dilations,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "kernel": kernel_shape,
            "rounding_type": rounding_type,
            "auto_pad": auto_pad,
            "index_element_type": index_element_type,
            "axis": axis,
        },
        name,
    )
