"""The operations that opset1 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, constant_1 as constant, make
from ..api.nodes import Node

__all__ = [
    "constant",
    "fake_quantize",
]


def fake_quantize(
    data: NodeInput,
    input_low: NodeInput,
    input_high: NodeInput,
    output_low: NodeInput,
    output_high: NodeInput,
    levels: int,
    auto_broadcast: str = "NUMPY",
    name: str | None = None,
) -> Node:
    """Create FakeQuantize-1.

    Move ``data`` to the nearest of evenly spaced levels between two limits, then to other limits.

    Args:
        data: tensor to quantize.
        input_low: where levels begin, of a shape that broadcasts to that of data.
        input_high: where levels end, of a shape that broadcasts to that of data; where it equals input_low
            there are two levels.
        output_low: what the first level becomes, of a shape that broadcasts to that of data.
        output_high: what the last level becomes, of a shape that broadcasts to that of data.
        levels: number of levels, those at both ends included.
        auto_broadcast: how shapes that differ go together: not at all, as in NumPy, or the second onto the
            first.
        name: the name of the node.
    """
    return make(
        "FakeQuantize",
        1,
        [data, input_low, input_high, output_low, output_high],
        {
            "levels": levels,
            "auto_broadcast": auto_broadcast,
        },
        name,
    )
