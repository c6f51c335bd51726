"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "pad",
    "range",
]


def pad(
    arg: NodeInput,
    pads_begin: NodeInput,
    pads_end: NodeInput,
    pad_mode: str,
    arg_pad_value: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """Pad-1: Extend ``data`` by ``pads_begin`` and ``pads_end`` elements along each axis.

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
        1,
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
    name: str | None = None,
) -> Node:
    """Range-1: Numbers from ``start`` up to, but not including, ``stop``, ``step`` apart.

    Args:
        start: first number, a scalar.
        stop: where to end, a scalar; not reached.
        step: distance, a scalar other than 0; a negative one counts down.
        name: the name of the node.
    """
    return make(
        "Range",
        1,
        [start, stop, step],
        {},
        name,
    )
