"""The operations that opset14 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "convert_promote_types",
    "inverse",
    "max_pool",
]


def convert_promote_types(
    left_node: NodeInput,
    right_node: NodeInput,
    promote_unsafe: bool = False,
    pytorch_scalar_promotion: bool = False,
    u64_integer_promotion_target: TypeLike = "f32",
    name: str | None = None,
) -> Node:
    """ConvertPromoteTypes-14: Both inputs as numbers of one element type, which holds the numbers of either.

    Args:
        left_node: a tensor.
        right_node: a tensor.
        promote_unsafe: allow a type that may not hold an input's numbers, or that neither input has.
        pytorch_scalar_promotion: let a scalar take the type of a tensor that is none, if both are of one
            kind.
        u64_integer_promotion_target: the type that u64 and a signed integer become.
        name: the name of the node.
    """
    return make(
        "ConvertPromoteTypes",
        14,
        [left_node, right_node],
        {
            "promote_unsafe": promote_unsafe,
            "pytorch_scalar_promotion": pytorch_scalar_promotion,
            "u64_integer_promotion_target": u64_integer_promotion_target,
        },
        name,
    )


def inverse(
    data: NodeInput,
    adjoint: bool = False,
    name: str | None = None,
) -> Node:
    """Create Inverse-14.

    The inverses of the matrices in the last two axes of ``data``, computed in f32, as the page wants.

    Args:
        data: [..., N, N].
        adjoint: transpose each inverse.
        name: the name of the node.
    """
    return make(
        "Inverse",
        14,
        [data],
        {
            "adjoint": adjoint,
        },
        name,
    )


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
    """MaxPool-14: As version 8, with one rounding more.

    Args:
        data: [N, C, spatial...].
        strides: step of the window along each spatial axis.
        dilations: distance between elements of the window along each spatial axis; 1 when absent.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        kernel_shape: length of the window along each spatial axis.
        rounding_type: how the number of windows is rounded; with ceil, the last one may be cut off;
            ceil_torch leaves it out if it would start in the padding.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        index_element_type: type of the indices, i64 or i32.
        axis: first axis that the indices count over; negative ones count from the end.
        name: the name of the node.
    """
    return make(
        "MaxPool",
        14,
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
