"""The operations that opset12 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, TypeLike, make
from ..api.nodes import Node

__all__ = [
    "group_normalization",
    "pad",
    "range",
    "scatter_elements_update",
]


def group_normalization(
    data: NodeInput,
    scale: NodeInput,
    bias: NodeInput,
    num_groups: int,
    epsilon: float,
    name: str | None = None,
) -> Node:
    """GroupNormalization-12: Normalize groups of channels of ``data``, then scale and shift each channel.

    Args:
        data: [N, C, ...].
        scale: factor of each channel, [C].
        bias: added to each channel, [C].
        num_groups: number of groups, which divides the number of channels.
        epsilon: added to the variance.
        name: the name of the node.
    """
    return make(
        "GroupNormalization",
        12,
        [data, scale, bias],
        {
            "num_groups": num_groups,
            "epsilon": epsilon,
        },
        name,
    )


def pad(
    arg: NodeInput,
    pads_begin: NodeInput,
    pads_end: NodeInput,
    pad_mode: str,
    arg_pad_value: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Pad-12: Extend or shorten ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis.

    Args:
        arg: tensor to pad.
        pads_begin: elements to add before each axis; negative numbers cut.
        pads_end: elements to add after each axis; negative numbers cut.
        pad_mode: fill with pad_value, the outermost element, or a mirror image without or with that element.
        arg_pad_value: scalar that fills, for pad_mode constant; absent, it is 0.
        name: the name of the node.
    """
    return make(
        "Pad",
        12,
        [arg, pads_begin, pads_end, arg_pad_value],
        {
            "pad_mode": pad_mode,
        },
        name,
    )


def range(
    start: NodeInput,
    stop: NodeInput,
    step: NodeInput,
    output_type: TypeLike,
    name: str | None = None,
) -> Node:
    """Range-4: As version 1, with inputs of any types; for whole numbers, they are cut towards zero first.

    Args:
        start: first number, a scalar.
        stop: where to end, a scalar; not reached.
        step: distance, a scalar; a negative one counts down.
        output_type: element type of the output, a numeric one.
        name: the name of the node.
    """
    return make(
        "Range",
        4,
        [start, stop, step],
        {
            "output_type": output_type,
        },
        name,
    )


def scatter_elements_update(
    data: NodeInput,
    indices: NodeInput,
    updates: NodeInput,
    axis: NodeInput,
    reduction: str = "None",
    use_init_val: bool = True,
    name: str | None = None,
) -> Node:
    """Create ScatterElementsUpdate-12.

    Combine the elements of ``data`` that ``indices`` name along ``axis`` with ``updates``.

    Args:
        data: tensor to copy.
        indices: for each update its place along axis; a negative one counts from the end.
        updates: of the shape of indices; places along other axes are as in data.
        axis: one number; a negative one counts from the end.
        reduction: how an update meets what is there; none replaces it, mean of integers rounds down.
        use_init_val: whether what is in data takes part in the reduction.
        name: the name of the node.
    """
    return make(
        "ScatterElementsUpdate",
        12,
        [data, indices, updates, axis],
        {
            "reduction": reduction,
            "use_init_val": use_init_val,
        },
        name,
    )
