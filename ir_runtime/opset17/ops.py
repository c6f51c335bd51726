"""The operations that opset17 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "erfinv",
    "grouped_matmul",
]


def erfinv(
    node: NodeInput,
    name: str | None = None,
) -> Node:
    """ErfInv-17: The number whose error function is ``data``; infinite for -1 and 1, NaN beyond.

    Args:
        node: tensor to map.
        name: the name of the node.
    """
    return make(
        "ErfInv",
        17,
        [node],
        {},
        name,
    )


def grouped_matmul(
    mat_a: NodeInput,
    mat_b: NodeInput,
    offsets: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """GroupedMatMul-17: Multiply groups of rows of ``mat_a`` with the transposed matrices ``mat_b``.

    Args:
        mat_a: [rows, K] where offsets part them into groups, or [G, M, K].
        mat_b: [G, N, K].
        offsets: [G], where each group of rows ends; only for 2-D mat_a.
        name: the name of the node.
    """
    return make(
        "GroupedMatMul",
        17,
        [mat_a, mat_b, offsets],
        {},
        name,
    )
