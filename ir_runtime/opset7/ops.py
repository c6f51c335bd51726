"""The operations that opset7 added, as functions that create them. Written by ``make index``."""

from __future__ import annotations

from collections.abc import Sequence

from ..api.building.factories import NodeInput, make
from ..api.nodes import Node

__all__ = [
    "dft",
    "einsum",
    "gelu",
    "idft",
    "roll",
]


def dft(
    data: NodeInput,
    axes: NodeInput,
    signal_size: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """DFT-7: The discrete Fourier transform of ``data`` along ``axes``.

    Args:
        data: complex numbers, the real and the imaginary part along the last axis.
        axes: axes to transform, 1-D, in any order; negative ones count from the end.
        signal_size: how long to make each of these axes first, by cutting or by adding zeros at the end; -1,
            or nothing at all, means as long as it is.
        name: the name of the node.
    """
    return make(
        "DFT",
        7,
        [data, axes, signal_size],
        {},
        name,
    )


def einsum(
    inputs: Sequence[NodeInput],
    equation: str,
    name: str | None = None,
) -> Node:
    """Einsum-7: Multiply ``operands``, whose axes are labelled, and sum over labels that the output lacks.

    Args:
        inputs: one tensor for each subscript.
        equation: labels of the axes: ij,jk->ik; without ->, those that occur once, sorted.
        name: the name of the node.
    """
    return make(
        "Einsum",
        7,
        [*inputs],
        {
            "equation": equation,
        },
        name,
    )


def gelu(
    data: NodeInput,
    approximation_mode: str,
    name: str | None = None,
) -> Node:
    """Gelu-7: Each element of ``data`` times the share of a normal distribution below it.

    Args:
        data: tensor of any shape.
        approximation_mode: exactly, or by a hyperbolic tangent.
        name: the name of the node.
    """
    return make(
        "Gelu",
        7,
        [data],
        {
            "approximation_mode": approximation_mode,
        },
        name,
    )


def idft(
    data: NodeInput,
    axes: NodeInput,
    signal_size: NodeInput | None = None,
    name: str | None = None,
) -> Node:
    """IDFT-7: The inverse of DFT: of ``data`` along ``axes``, divided by how many numbers are transformed.

    Args:
        data: complex numbers, the real and the imaginary part along the last axis.
        axes: axes to transform, 1-D, in any order; negative ones count from the end.
        signal_size: how long to make each of these axes first, by cutting or by adding zeros at the end; -1,
            or nothing at all, means as long as it is.
        name: the name of the node.
    """
    return make(
        "IDFT",
        7,
        [data, axes, signal_size],
        {},
        name,
    )


def roll(
    data: NodeInput,
    shift: NodeInput,
    axes: NodeInput,
    name: str | None = None,
) -> Node:
    """Roll-7: Shift ``data`` by ``shift`` along ``axes``; what leaves at one end enters at the other.

    Args:
        data: tensor to roll.
        shift: places to shift by: one number for all axes, or one for each.
        axes: axes to roll, a scalar or 1-D; shifts of an axis given twice add up.
        name: the name of the node.
    """
    return make(
        "Roll",
        7,
        [data, shift, axes],
        {},
        name,
    )
