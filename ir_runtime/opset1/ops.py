"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..api.building.factories import (
    NodeInput,
    TensorIterator as tensor_iterator,
    TypeLike,
    make,
    parameter,
    result,
)
from ..api.nodes import Node

__all__ = [
    "abs",
    "absolute",
    "acos",
    "add",
    "asin",
    "atan",
    "binary_convolution",
    "ceil",
    "ceiling",
    "clamp",
    "concat",
    "convert",
    "convert_like",
    "convolution",
    "convolution_backprop_data",
    "cos",
    "cosh",
    "ctc_greedy_decoder",
    "deformable_psroi_pooling",
    "depth_to_space",
    "divide",
    "elu",
    "equal",
    "erf",
    "exp",
    "floor",
    "floor_mod",
    "gather_tree",
    "greater",
    "greater_equal",
    "grn",
    "group_convolution",
    "group_convolution_backprop_data",
    "hard_sigmoid",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lrn",
    "matmul",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "negative",
    "normalize_l2",
    "not_equal",
    "parameter",
    "power",
    "prelu",
    "prior_box_clustered",
    "psroi_pooling",
    "reduce_logical_and",
    "reduce_logical_or",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "region_yolo",
    "relu",
    "reshape",
    "result",
    "reverse_sequence",
    "select",
    "selu",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "space_to_depth",
    "split",
    "sqrt",
    "squared_difference",
    "strided_slice",
    "subtract",
    "tan",
    "tanh",
    "tensor_iterator",
    "tile",
    "transpose",
    "unsqueeze",
    "variadic_split",
]


def abs(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Abs-1: Absolute value of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Abs",
        1,
        [node],
        {},
        name,
    )


def absolute(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Abs-1: Absolute value of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Abs",
        1,
        [node],
        {},
        name,
    )


def acos(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Acos-1: Inverse cosine of ``data``, in radians; NaN beyond -1 and 1.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Acos",
        1,
        [node],
        {},
        name,
    )


def add(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Add-1: Sum of ``a`` and ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Add",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def asin(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Asin-1: Inverse sine of ``data``, in radians; NaN beyond -1 and 1.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Asin",
        1,
        [node],
        {},
        name,
    )


def atan(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Atan-1: Inverse tangent of ``data``, in radians.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Atan",
        1,
        [node],
        {},
        name,
    )


def binary_convolution(
    data: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    mode: str,
    pad_value: float,
    auto_pad: str = "EXPLICIT",
    name: str | None = None,
) -> Node:
    """BinaryConvolution-1: Correlate bits of ``data`` with each of ``filters``, where 0 stands for -1.

    Args:
        data: [N, C_in, Y, X], of zeros and ones.
        filters: [C_out, C_in, kernel...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        mode: how bits are multiplied and added.
        pad_value: what the padding holds.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        name: the name of the node.
    """
    return make(
        "BinaryConvolution",
        1,
        [data, filters],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "mode": mode,
            "pad_value": pad_value,
            "auto_pad": auto_pad,
        },
        name,
    )


def ceil(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Ceiling-1: The smallest whole number that is not below ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Ceiling",
        1,
        [node],
        {},
        name,
    )


def ceiling(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Ceiling-1: The smallest whole number that is not below ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Ceiling",
        1,
        [node],
        {},
        name,
    )


def clamp(
    data: NodeInput,
    min_value: float,
    max_value: float,
    name: str | None = None,
) -> Node:
    """Clamp-1: The elements of ``data``, but ``min`` for smaller and ``max`` for larger ones.

    Args:
        data: tensor of any shape.
        min_value: lower bound.
        max_value: upper bound.
        name: the name of the node.
    """
    return make(
        "Clamp",
        1,
        [data],
        {
            "min": min_value,
            "max": max_value,
        },
        name,
    )


def concat(
    nodes: Sequence[NodeInput],
    axis: int,
    name: str | None = None,
) -> Node:
    """Concat-1: Put all ``parts`` behind one another along an axis.

    Args:
        nodes: tensors that differ in length along the axis at most.
        axis: axis along which they are joined; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "Concat",
        1,
        [*nodes],
        {
            "axis": axis,
        },
        name,
    )


def convert(
    data: NodeInput,
    destination_type: TypeLike,
    name: str | None = None,
) -> Node:
    """Convert-1: The numbers of ``data`` as numbers of another element type.

    Args:
        data: tensor to convert.
        destination_type: element type to convert to.
        name: the name of the node.
    """
    return make(
        "Convert",
        1,
        [data],
        {
            "destination_type": destination_type,
        },
        name,
    )


def convert_like(
    data: NodeInput,
    like: NodeInput,
    name: str | None = None,
) -> Node:
    """Create ConvertLike-1.

    The numbers of ``data`` as numbers of the element type of ``like``, whose contents do not matter.

    Args:
        data: tensor to convert.
        like: tensor of the element type to convert to.
        name: the name of the node.
    """
    return make(
        "ConvertLike",
        1,
        [data, like],
        {},
        name,
    )


def convolution(
    data: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str = "EXPLICIT",
    name: str | None = None,
) -> Node:
    """Convolution-1: Correlate ``data`` with each of ``filters`` over the spatial axes.

    Args:
        data: [N, C_in, spatial...].
        filters: [C_out, C_in, kernel...].
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        name: the name of the node.
    """
    return make(
        "Convolution",
        1,
        [data, filters],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
        },
        name,
    )


def convolution_backprop_data(
    data: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    output_shape: NodeInput | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str | None = None,
    output_padding: Sequence[int] | None = None,
    name: str | None = None,
) -> Node:
    """Create ConvolutionBackpropData-1.

    Spread each element of ``data`` over the spatial axes with ``filters``, and add up.

    Args:
        data: [N, C_in, spatial...].
        filters: [C_in, C_out, kernel...].
        strides: step of the window along each spatial axis.
        output_shape: lengths of the spatial axes of the output.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        output_padding: elements to add at the end of each spatial axis.
        name: the name of the node.
    """
    return make(
        "ConvolutionBackpropData",
        1,
        [data, filters, output_shape],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
            "output_padding": output_padding,
        },
        name,
    )


def cos(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Cos-1: Cosine of ``data``, in radians.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Cos",
        1,
        [node],
        {},
        name,
    )


def cosh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Cosh-1: Hyperbolic cosine of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Cosh",
        1,
        [node],
        {},
        name,
    )


def ctc_greedy_decoder(
    data: NodeInput,
    sequence_mask: NodeInput,
    merge_repeated: bool = True,
    name: str | None = None,
) -> Node:
    """Create CTCGreedyDecoder-1.

    The most likely class of each step in ``data``, without repetitions and without the last class, the blank.

    Args:
        data: scores, [time, batch, classes].
        sequence_mask: [time, batch]: not 0 up to the end of a sequence, 0 behind it.
        merge_repeated: take a class that is repeated from step to step once.
        name: the name of the node.
    """
    return make(
        "CTCGreedyDecoder",
        1,
        [data, sequence_mask],
        {
            "ctc_merge_repeated": merge_repeated,
        },
        name,
    )


def deformable_psroi_pooling(
    feature_maps: NodeInput,
    coords: NodeInput,
    output_dim: int,
    spatial_scale: float,
    group_size: int = 1,
    mode: str = "bilinear_deformable",
    spatial_bins_x: int = 1,
    spatial_bins_y: int = 1,
    trans_std: float = 1.0,
    part_size: int = 1,
    offsets: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Create DeformablePSROIPooling-1.

    Mean of points in each bin of each region of ``data``, every bin from channels of its own, and moved.

    Args:
        feature_maps: [N, C, H, W]: feature maps.
        coords: [regions, 5]: batch entry, x1, y1, x2, y2.
        output_dim: channels of the result.
        spatial_scale: what coordinates of regions are multiplied by.
        group_size: height and width of the result.
        mode: the only one there is.
        spatial_bins_x: points along x of a bin.
        spatial_bins_y: points along y of a bin.
        trans_std: what offsets are multiplied by, beside the sides of the region.
        part_size: height and width of offsets.
        offsets: [regions, 2 * classes, part_size, part_size]: how far bins are moved, x then y.
        name: the name of the node.
    """
    return make(
        "DeformablePSROIPooling",
        1,
        [feature_maps, coords, offsets],
        {
            "output_dim": output_dim,
            "spatial_scale": spatial_scale,
            "group_size": group_size,
            "mode": mode,
            "spatial_bins_x": spatial_bins_x,
            "spatial_bins_y": spatial_bins_y,
            "trans_std": trans_std,
            "part_size": part_size,
        },
        name,
    )


def depth_to_space(
    node: NodeInput,
    mode: str,
    block_size: int = 1,
    name: str | None = None,
) -> Node:
    """DepthToSpace-1: Move parts of the channels of ``data`` into blocks along the spatial axes.

    Args:
        node: [batch, channels, spatial...].
        mode: whether the channels are ordered by place in the block, then by channel, or the other way round.
        block_size: length of a block along each spatial axis.
        name: the name of the node.
    """
    return make(
        "DepthToSpace",
        1,
        [node],
        {
            "mode": mode,
            "block_size": block_size,
        },
        name,
    )


def divide(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Divide-1: ``a`` divided by ``b``; whole numbers rounded down, or towards zero.

    Args:
        left_node: dividend.
        right_node: divisor.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Divide",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def elu(
    data: NodeInput,
    alpha: float,
    name: str | None = None,
) -> Node:
    """Elu-1: The elements of ``data``, but ``alpha`` (exp(x) - 1) for each x below zero.

    Args:
        data: tensor of any shape.
        alpha: how far below zero the function goes.
        name: the name of the node.
    """
    return make(
        "Elu",
        1,
        [data],
        {
            "alpha": alpha,
        },
        name,
    )


def equal(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Equal-1: Whether ``a`` and ``b`` are equal.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Equal",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def erf(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Erf-1: The error function of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Erf",
        1,
        [node],
        {},
        name,
    )


def exp(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Exp-1: The exponential of each element of ``data``.

    Args:
        node: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "Exp",
        1,
        [node],
        {},
        name,
    )


def floor(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Floor-1: The largest whole number that is not above ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Floor",
        1,
        [node],
        {},
        name,
    )


def floor_mod(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """FloorMod-1: Remainder of ``a`` divided by ``b`` and rounded down; it has the sign of ``b``.

    Args:
        left_node: dividend.
        right_node: divisor.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "FloorMod",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def gather_tree(
    step_ids: NodeInput,
    parent_idx: NodeInput,
    max_seq_len: NodeInput,
    end_token: NodeInput,
    name: str | None = None,
) -> Node:
    """GatherTree-1: The tokens of each beam, found by going from its last step back to the parents.

    Args:
        step_ids: [time, batch, beam]: the token chosen at each step.
        parent_idx: [time, batch, beam]: the beam that a step continues.
        max_seq_len: [batch]: how many steps there are.
        end_token: scalar: the token that ends a sequence, and fills the rest.
        name: the name of the node.
    """
    return make(
        "GatherTree",
        1,
        [step_ids, parent_idx, max_seq_len, end_token],
        {},
        name,
    )


def greater(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Greater-1: Whether ``a`` is larger than ``b``.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Greater",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def greater_equal(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """GreaterEqual-1: Whether ``a`` is at least ``b``.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "GreaterEqual",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def grn(
    data: NodeInput,
    bias: float,
    name: str | None = None,
) -> Node:
    """GRN-1: Divide ``data`` by its L2 norm across the channels, which are the second axis.

    Args:
        data: [N, C, ...], of 2 to 4 dimensions.
        bias: added to the sum of squares.
        name: the name of the node.
    """
    return make(
        "GRN",
        1,
        [data],
        {
            "bias": bias,
        },
        name,
    )


def group_convolution(
    data: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    pads_begin: Sequence[int],
    pads_end: Sequence[int],
    dilations: Sequence[int],
    auto_pad: str = "EXPLICIT",
    name: str | None = None,
) -> Node:
    """GroupConvolution-1: Correlate each group of channels of ``data`` with the ``filters`` of that group.

    Args:
        data: [N, G * C_in, spatial...].
        filters: [G, C_out, C_in, kernel...]; the number of groups G is read from here.
        strides: step of the window along each spatial axis.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        name: the name of the node.
    """
    return make(
        "GroupConvolution",
        1,
        [data, filters],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
        },
        name,
    )


def group_convolution_backprop_data(
    data: NodeInput,
    filters: NodeInput,
    strides: Sequence[int],
    output_shape: NodeInput | None = None,
    pads_begin: Sequence[int] | None = None,
    pads_end: Sequence[int] | None = None,
    dilations: Sequence[int] | None = None,
    auto_pad: str = "EXPLICIT",
    output_padding: Sequence[int] | None = None,
    name: str | None = None,
) -> Node:
    """Create GroupConvolutionBackpropData-1.

    Spread each element of ``data`` over the spatial axes with the ``filters`` of its group, and add up.

    Args:
        data: [N, G * C_in, spatial...].
        filters: [G, C_in, C_out, kernel...]; the number of groups G is read from here.
        strides: step of the window along each spatial axis.
        output_shape: lengths of the spatial axes of the output.
        pads_begin: padding before each spatial axis; ignored unless auto_pad is explicit.
        pads_end: padding after each spatial axis; ignored unless auto_pad is explicit.
        dilations: distance between kernel elements along each spatial axis.
        auto_pad: explicit: as pads_begin and pads_end say; valid: none; same_upper, same_lower: so much that
            the output is the input divided by the stride, rounded up, an odd one at the end or at the
            beginning.
        output_padding: elements to add at the end of each spatial axis.
        name: the name of the node.
    """
    return make(
        "GroupConvolutionBackpropData",
        1,
        [data, filters, output_shape],
        {
            "strides": strides,
            "pads_begin": pads_begin,
            "pads_end": pads_end,
            "dilations": dilations,
            "auto_pad": auto_pad,
            "output_padding": output_padding,
        },
        name,
    )


def hard_sigmoid(
    data: NodeInput,
    alpha: NodeInput,
    beta: NodeInput,
    name: str | None = None,
) -> Node:
    """Create HardSigmoid-1.

    The line ``alpha`` x + ``beta`` for each element x of ``data``, cut off below 0 and above 1.

    Args:
        data: tensor of any shape.
        alpha: slope of the line, a scalar.
        beta: height of the line at 0, a scalar.
        name: the name of the node.
    """
    return make(
        "HardSigmoid",
        1,
        [data, alpha, beta],
        {},
        name,
    )


def less(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Less-1: Whether ``a`` is smaller than ``b``.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Less",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def less_equal(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """LessEqual-1: Whether ``a`` is at most ``b``.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "LessEqual",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def log(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Log-1: Natural logarithm of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Log",
        1,
        [node],
        {},
        name,
    )


def logical_and(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """LogicalAnd-1: Whether both ``a`` and ``b`` hold.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "LogicalAnd",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def logical_not(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """LogicalNot-1: Whether ``data`` does not hold.

    Args:
        node: truth values.
        name: the name of the node.
    """
    return make(
        "LogicalNot",
        1,
        [node],
        {},
        name,
    )


def logical_or(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """LogicalOr-1: Whether ``a`` or ``b`` holds, or both.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "LogicalOr",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def logical_xor(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """LogicalXor-1: Whether either ``a`` or ``b`` holds, but not both.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "LogicalXor",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def lrn(
    data: NodeInput,
    axes: NodeInput,
    alpha: float = 1,
    beta: float = 0.5,
    bias: float = 1,
    size: int = 5,
    name: str | None = None,
) -> Node:
    """LRN-1: Divide ``data`` by a power of the sum of squares in a window around each element.

    Args:
        data: tensor to normalize.
        axes: axes along which the window extends, 1-D.
        alpha: factor of the mean square.
        beta: exponent of the divisor.
        bias: added to the mean square before it is raised.
        size: length of the window.
        name: the name of the node.
    """
    return make(
        "LRN",
        1,
        [data, axes],
        {
            "alpha": alpha,
            "beta": beta,
            "bias": bias,
            "size": size,
        },
        name,
    )


def matmul(
    data_a: NodeInput,
    data_b: NodeInput,
    transpose_a: bool,
    transpose_b: bool,
    name: str | None = None,
) -> Node:
    """MatMul-1: Multiply the matrices in the last two axes of ``a`` and ``b``; the axes before are batches.

    Args:
        data_a: matrices of the left side, rank 1 or more.
        data_b: matrices of the right side, rank 1 or more; batches broadcast.
        transpose_a: swap the last two axes of a, unless it is 1-D.
        transpose_b: swap the last two axes of b, unless it is 1-D.
        name: the name of the node.
    """
    return make(
        "MatMul",
        1,
        [data_a, data_b],
        {
            "transpose_a": transpose_a,
            "transpose_b": transpose_b,
        },
        name,
    )


def maximum(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Maximum-1: The larger one of ``a`` and ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Maximum",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def minimum(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Minimum-1: The smaller one of ``a`` and ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Minimum",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def mod(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Mod-1: Remainder of ``a`` divided by ``b`` and rounded towards zero; it has the sign of ``a``.

    Args:
        left_node: dividend.
        right_node: divisor.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Mod",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def multiply(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Multiply-1: Product of ``a`` and ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Multiply",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def negative(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Negative-1: ``data`` with the opposite sign.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Negative",
        1,
        [node],
        {},
        name,
    )


def normalize_l2(
    data: NodeInput,
    axes: NodeInput,
    eps: float,
    eps_mode: str,
    name: str | None = None,
) -> Node:
    """NormalizeL2-1: Divide ``data`` by its L2 norm over ``axes``.

    Args:
        data: tensor to normalize.
        axes: axes of the norm, a scalar or 1-D; none means each element alone.
        eps: keeps the norm away from zero.
        eps_mode: how eps meets the sum of squares.
        name: the name of the node.
    """
    return make(
        "NormalizeL2",
        1,
        [data, axes],
        {
            "eps": eps,
            "eps_mode": eps_mode,
        },
        name,
    )


def not_equal(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """NotEqual-1: Whether ``a`` and ``b`` differ.

    Args:
        left_node: left-hand side.
        right_node: right-hand side.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "NotEqual",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def power(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Power-1: ``a`` raised to the power ``b``.

    Args:
        left_node: base.
        right_node: exponent.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Power",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def prelu(
    data: NodeInput,
    slope: NodeInput,
    name: str | None = None,
) -> Node:
    """PReLU-1: The elements of ``data``, but those below zero times ``slope``.

    Args:
        data: tensor of any shape.
        slope: one number per channel, or what broadcasts to data as in NumPy.
        name: the name of the node.
    """
    return make(
        "PReLU",
        1,
        [data, slope],
        {},
        name,
    )


def prior_box_clustered(
    output_size: NodeInput,
    image_size: NodeInput,
    attrs: Mapping[str, Any],
    name: str | None = None,
) -> Node:
    """PriorBoxClustered-1: Boxes of given widths and heights at every place of a grid laid over an image.

    Args:
        output_size: [2]: height and width of the grid.
        image_size: [2]: height and width of the image.
        attrs: the attributes by name.
        name: the name of the node.
    """
    return make(
        "PriorBoxClustered",
        1,
        [output_size, image_size],
        {
            **attrs,
        },
        name,
    )


def psroi_pooling(
    input: NodeInput,
    coords: NodeInput,
    output_dim: int,
    group_size: int,
    spatial_scale: float,
    spatial_bins_x: int,
    spatial_bins_y: int,
    mode: str,
    name: str | None = None,
) -> Node:
    """PSROIPooling-1: Mean of each bin of each region of ``data``, every bin from channels of its own.

    Args:
        input: [N, C, H, W]: feature maps.
        coords: [regions, 5]: batch entry, x1, y1, x2, y2.
        output_dim: channels of the result.
        group_size: height and width of the result.
        spatial_scale: what coordinates of regions are multiplied by.
        spatial_bins_x: parts along x, in mode bilinear.
        spatial_bins_y: parts along y, in mode bilinear.
        mode: bilinear: the mean of points between elements in parts of the region, each from channels of its
            own.
        name: the name of the node.
    """
    return make(
        "PSROIPooling",
        1,
        [input, coords],
        {
            "output_dim": output_dim,
            "group_size": group_size,
            "spatial_scale": spatial_scale,
            "spatial_bins_x": spatial_bins_x,
            "spatial_bins_y": spatial_bins_y,
            "mode": mode,
        },
        name,
    )


def reduce_logical_and(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceLogicalAnd-1: Whether all of ``data`` is true over ``axes``.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceLogicalAnd",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_logical_or(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceLogicalOr-1: Whether any of ``data`` is true over ``axes``.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceLogicalOr",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_max(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """Create ReduceMax-1.

    Largest element of ``data`` over ``axes``; NaN is passed over, and nothing gives the lowest number.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceMax",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_mean(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceMean-1: Mean of ``data`` over ``axes``; for integers, without what follows the point.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceMean",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_min(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """Create ReduceMin-1.

    Smallest element of ``data`` over ``axes``; NaN is passed over, and nothing gives the highest number.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceMin",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_prod(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceProd-1: Product of ``data`` over ``axes``.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceProd",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def reduce_sum(
    node: NodeInput,
    reduction_axes: NodeInput,
    keep_dims: bool = False,
    name: str | None = None,
) -> Node:
    """ReduceSum-1: Sum of ``data`` over ``axes``.

    Args:
        node: tensor to reduce.
        reduction_axes: axes to reduce, a scalar or 1-D; negative ones count from the end.
        keep_dims: keep reduced axes, with length 1.
        name: the name of the node.
    """
    return make(
        "ReduceSum",
        1,
        [node, reduction_axes],
        {
            "keep_dims": keep_dims,
        },
        name,
    )


def region_yolo(
    input: NodeInput,
    coords: int,
    classes: int,
    num: int,
    do_softmax: bool,
    mask: Sequence[int],
    axis: int,
    end_axis: int,
    anchors: Sequence[float] | None = None,
    name: str | None = None,
) -> Node:
    """Create RegionYolo-1.

    Sigmoid of where boxes are and of whether there are any; scores of classes as a softmax, or sigmoids.

    Args:
        input: [N, regions * (coords + 1 + classes), H, W].
        coords: numbers that say where a box is.
        classes: number of classes.
        num: number of regions with do_softmax.
        do_softmax: whether classes exclude each other.
        mask: as many numbers as there are regions without do_softmax.
        axis: first of the axes that become one; a negative one counts from the end.
        end_axis: last of the axes that become one.
        anchors: sizes of boxes, for those that read the output.
        name: the name of the node.
    """
    return make(
        "RegionYolo",
        1,
        [input],
        {
            "coords": coords,
            "classes": classes,
            "num": num,
            "do_softmax": do_softmax,
            "mask": mask,
            "axis": axis,
            "end_axis": end_axis,
            "anchors": anchors,
        },
        name,
    )


def relu(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """ReLU-1: The elements of ``data``, but 0 for those below zero.

    Args:
        node: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "ReLU",
        1,
        [node],
        {},
        name,
    )


def reshape(
    node: NodeInput,
    output_shape: NodeInput,
    special_zero: bool,
    name: str | None = None,
) -> Node:
    """Reshape-1: Give the elements of ``data``, in order, the lengths in ``shape``.

    Args:
        node: tensor to reshape.
        output_shape: 1-D lengths; -1 stands for what is left, 0 as special_zero says.
        special_zero: whether a 0 copies the length of the same axis of the data.
        name: the name of the node.
    """
    return make(
        "Reshape",
        1,
        [node, output_shape],
        {
            "special_zero": special_zero,
        },
        name,
    )


def reverse_sequence(
    input: NodeInput,
    seq_lengths: NodeInput,
    batch_axis: int,
    seq_axis: int,
    name: str | None = None,
) -> Node:
    """Create ReverseSequence-1.

    Reverse the beginning of each sequence in ``data``: as much of it as ``seq_lengths`` says.

    Args:
        input: a batch of sequences.
        seq_lengths: 1-D: how many elements to reverse, for each entry of the batch.
        batch_axis: axis of the batch; a negative one counts from the end.
        seq_axis: axis of the sequences; a negative one counts from the end.
        name: the name of the node.
    """
    return make(
        "ReverseSequence",
        1,
        [input, seq_lengths],
        {
            "batch_axis": batch_axis,
            "seq_axis": seq_axis,
        },
        name,
    )


def select(
    cond: NodeInput,
    then_node: NodeInput,
    else_node: NodeInput,
    auto_broadcast: str = "numpy",
    name: str | None = None,
) -> Node:
    """Select-1: Elements of ``then`` where ``condition`` holds, of ``otherwise`` where it does not.

    Args:
        cond: which to take; stretched to the shape of the others.
        then_node: elements to take where the condition holds.
        else_node: elements to take where it does not.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Select",
        1,
        [cond, then_node, else_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def selu(
    data: NodeInput,
    alpha: NodeInput,
    lambda_value: NodeInput,
    name: str | None = None,
) -> Node:
    """Selu-1: ``lambda_`` times the elements of ``data``, those below zero as in Elu.

    Args:
        data: tensor of any shape.
        alpha: how far below zero Elu goes, [1].
        lambda_value: the scale of everything, [1].
        name: the name of the node.
    """
    return make(
        "Selu",
        1,
        [data, alpha, lambda_value],
        {},
        name,
    )


def sigmoid(
    data: NodeInput,
    name: str | None = None,
) -> Node:
    """Sigmoid-1: The logistic function of each element of ``data``: 1 / (1 + exp(-x)).

    Args:
        data: tensor of any shape.
        name: the name of the node.
    """
    return make(
        "Sigmoid",
        1,
        [data],
        {},
        name,
    )


def sign(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Sign-1: -1, 0 or 1, as ``data`` is negative, zero or positive; NaN stays NaN.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Sign",
        1,
        [node],
        {},
        name,
    )


def sin(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Sin-1: Sine of ``data``, in radians.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Sin",
        1,
        [node],
        {},
        name,
    )


def sinh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Sinh-1: Hyperbolic sine of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Sinh",
        1,
        [node],
        {},
        name,
    )


def space_to_depth(
    data: NodeInput,
    mode: str,
    block_size: int = 1,
    name: str | None = None,
) -> Node:
    """SpaceToDepth-1: Move blocks along the spatial axes of ``data`` into the channels.

    Args:
        data: [batch, channels, spatial...].
        mode: whether the channels are ordered by place in the block, then by channel, or the other way round.
        block_size: length of a block along each spatial axis.
        name: the name of the node.
    """
    return make(
        "SpaceToDepth",
        1,
        [data],
        {
            "mode": mode,
            "block_size": block_size,
        },
        name,
    )


def split(
    data: NodeInput,
    axis: NodeInput,
    num_splits: int,
    name: str | None = None,
) -> Node:
    """Split-1: Cut ``data`` into parts of equal length along ``axis``.

    Args:
        data: tensor to split.
        axis: axis to split, a scalar; a negative one counts from the end.
        num_splits: number of parts.
        name: the name of the node.
    """
    return make(
        "Split",
        1,
        [data, axis],
        {
            "num_splits": num_splits,
        },
        name,
    )


def sqrt(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Sqrt-1: Square root of ``data``; of whole numbers, the nearest whole number.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Sqrt",
        1,
        [node],
        {},
        name,
    )


def squared_difference(
    x1: NodeInput,
    x2: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """SquaredDifference-1: Square of ``a`` less ``b``.

    Args:
        x1: first operand.
        x2: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "SquaredDifference",
        1,
        [x1, x2],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def strided_slice(
    data: NodeInput,
    begin: NodeInput,
    end: NodeInput,
    strides: NodeInput,
    begin_mask: Sequence[int],
    end_mask: Sequence[int],
    new_axis_mask: Sequence[int] | None = None,
    shrink_axis_mask: Sequence[int] | None = None,
    ellipsis_mask: Sequence[int] | None = None,
    name: str | None = None,
) -> Node:
    """Create StridedSlice-1.

    The elements of ``data`` from ``begin`` to before ``end`` by ``strides``, as the masks have it.

    Args:
        data: tensor to slice.
        begin: 1-D; first indices; negative ones count from the end, and all are clamped.
        end: 1-D; indices behind the last ones, likewise.
        strides: 1-D; steps, negative backwards, never 0; 1 when absent.
        begin_mask: where 1, the slice starts where the axis does; entry by entry of begin, 0 where it is too
            short.
        end_mask: where 1, the slice goes on to the end of the axis; entry by entry of begin, 0 where it is
            too short.
        new_axis_mask: where 1, an axis of length 1 is inserted; entry by entry of begin, 0 where it is too
            short.
        shrink_axis_mask: where 1, only the element at begin is taken, and the axis goes; entry by entry of
            begin, 0 where it is too short.
        ellipsis_mask: where 1, as many axes are taken whole as the others leave; once only; entry by entry of
            begin, 0 where it is too short.
        name: the name of the node.
    """
    return make(
        "StridedSlice",
        1,
        [data, begin, end, strides],
        {
            "begin_mask": begin_mask,
            "end_mask": end_mask,
            "new_axis_mask": new_axis_mask,
            "shrink_axis_mask": shrink_axis_mask,
            "ellipsis_mask": ellipsis_mask,
        },
        name,
    )


def subtract(
    left_node: NodeInput,
    right_node: NodeInput,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Subtract-1: ``a`` less ``b``.

    Args:
        left_node: first operand.
        right_node: second operand.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "Subtract",
        1,
        [left_node, right_node],
        {
            "auto_broadcast": auto_broadcast,
        },
        name,
    )


def tan(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Tan-1: Tangent of ``data``, in radians.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Tan",
        1,
        [node],
        {},
        name,
    )


def tanh(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """Tanh-1: Hyperbolic tangent of ``data``.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "Tanh",
        1,
        [node],
        {},
        name,
    )


def tile(
    data: NodeInput,
    repeats: NodeInput,
    name: str | None = None,
) -> Node:
    """Tile-1: Repeat ``data`` along each axis as often as ``repeats`` says.

    Args:
        data: tensor to repeat.
        repeats: 1-D; for the last axes, or for more axes than there are; negative ones count as 0.
        name: the name of the node.
    """
    return make(
        "Tile",
        1,
        [data, repeats],
        {},
        name,
    )


def transpose(
    data: NodeInput,
    input_order: NodeInput,
    name: str | None = None,
) -> Node:
    """Transpose-1: Put the axes of ``data`` into the given ``order``.

    Args:
        data: tensor to transpose.
        input_order: for each axis of the result, the axis of the data; empty to reverse them.
        name: the name of the node.
    """
    return make(
        "Transpose",
        1,
        [data, input_order],
        {},
        name,
    )


def unsqueeze(
    data: NodeInput,
    axes: NodeInput,
    name: str | None = None,
) -> Node:
    """Unsqueeze-1: Insert axes of length 1 into ``data``, such that they stand at ``axes`` of the result.

    Args:
        data: tensor to unsqueeze.
        axes: places in the result, a scalar or 1-D; negative ones count from its end.
        name: the name of the node.
    """
    return make(
        "Unsqueeze",
        1,
        [data, axes],
        {},
        name,
    )


def variadic_split(
    data: NodeInput,
    axis: NodeInput,
    split_lengths: NodeInput,
    name: str | None = None,
) -> Node:
    """VariadicSplit-1: Cut ``data`` along ``axis`` into parts of the lengths in ``split_lengths``.

    Args:
        data: tensor to split.
        axis: axis to split, a scalar or one number; a negative one counts from the end.
        split_lengths: 1-D; a length for each part, of which one may be -1: what is left.
        name: the name of the node.
    """
    return make(
        "VariadicSplit",
        1,
        [data, axis, split_lengths],
        {},
        name,
    )
