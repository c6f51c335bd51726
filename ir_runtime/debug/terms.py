"""Count the terms of the sum behind each result element, which bounds the error of reordering it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

from ..ir.graph import Layer
from ..ir.tensor import Array
from ..ops.matrix import ELLIPSIS, parse

__all__ = ["PRODUCTS", "RECURRENT", "SAMPLERS", "Terms", "terms_of"]

PRODUCTS = (
    "Convolution",
    "ConvolutionBackpropData",
    "GroupConvolution",
    "GroupConvolutionBackpropData",
    "MatMul",
)
"""Operations that multiply matrices."""
RECURRENT = ("GRUCell", "GRUSequence", "LSTMCell", "LSTMSequence", "RNNCell", "RNNSequence")
"""Operations that multiply matrices in each step of a sequence."""
SAMPLERS = (
    "DeformablePSROIPooling", "ExperimentalDetectronROIFeatureExtractor", "GridSample", "PSROIPooling", "ROIAlign",
    "ROIAlignRotated", "ROIPooling",
)  # fmt: skip
"""Operations that sample an image at positions that they read: rounding these moves the samples."""
_OUTPUT_AXIS = {
    "Convolution": 0, "ConvolutionBackpropData": 1, "GroupConvolution": 1, "GroupConvolutionBackpropData": 2,
}  # fmt: skip
"""The axis of the filters that becomes the channels of the result."""

WINOGRAD = 10.8
"""How much F(4x4, 3x3), with points 0, 1, -1, 2, -2 and infinity, amplifies the rounding of independent numbers.

Its square is the mean over outputs of the sum of A^2 |B|^2 |G|^2 / 3 over points, for each of the two axes; A, B and G
are the rows of the transforms (Lavin & Gray, 2016).
"""
CORNER = 2.9
"""How much larger than their mean the errors of the last element of a tile are."""


class Terms(NamedTuple):
    """The sum behind a result element.

    Args:
        number: the number of terms.
        uneven: the ratio of the largest to the typical error among elements.
    """

    number: int = 1
    uneven: float = 1.0


def terms_of(layer: Layer, inputs: Sequence[Array], output: Array) -> Terms:
    """Return the number of terms summed per result element; 1 for layers without sums.

    Convolutions that may use Winograd's algorithm count as sums of equivalent error.

    Args:
        layer: the layer.
        inputs: its inputs.
        output: its first output.
    """
    if _may_be_winograd(layer, inputs):  # sums over channels, and both transforms
        return Terms(int(WINOGRAD**2 * (inputs[1].shape[1] + 6)), CORNER)
    if layer.type in _COUNTS and inputs[0].size:
        return Terms(max(_COUNTS[layer.type](layer, inputs, output), 1))
    if layer.type.startswith("Reduce") and output.size:
        return Terms(max(inputs[0].size // output.size, 1))
    return Terms()


def _may_be_winograd(layer: Layer, inputs: Sequence[Array]) -> bool:
    settings = vars(layer.op)
    return (
        layer.type == "Convolution"
        and inputs[1].shape[2:] == (3, 3)
        and {*settings["strides"], *settings["dilations"]} == {1}
    )


def _filter_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    channels = inputs[1].shape[_OUTPUT_AXIS[layer.type]]
    groups = inputs[1].shape[0] if layer.type.startswith("Group") else 1
    return inputs[1].size // (channels * groups) if inputs[1].size else 1


def _matrix_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    return int(inputs[0].shape[-2 if vars(layer.op)["transpose_a"] and inputs[0].ndim > 1 else -1])


def _window_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    return prod(vars(layer.op)["kernel"])


def _ratio_terms(_: Layer, inputs: Sequence[Array], output: Array) -> int:
    return inputs[0].size // output.size if output.size else 1


def _axes_terms(_: Layer, inputs: Sequence[Array], __: Array) -> int:
    """Return the number of elements along the axes in the second input, or along all axes but the first."""
    shape = inputs[0].shape
    return prod(shape[axis] for axis in inputs[1].reshape(-1)) if len(inputs) > 1 else prod(shape[1:])


def _axis_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    shape = inputs[0].shape
    return int(shape[vars(layer.op)["axis"]]) if shape else 1


def _group_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    return prod(inputs[0].shape[1:]) // int(vars(layer.op)["num_groups"])


def _attention_terms(_: Layer, inputs: Sequence[Array], __: Array) -> int:
    return int(max(inputs[0].shape[-1], inputs[1].shape[-2]))


def _equation_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    """Return the number of terms of an Einsum: the product of the lengths of its summed labels."""
    equation = parse(vars(layer.op)["equation"])
    sizes: dict[str, int] = {}
    for labels, array in zip(equation.operands, inputs, strict=True):
        if ELLIPSIS in labels:
            place = labels.index(ELLIPSIS)
            after = len(labels) - place - 1
            sizes |= dict(zip(labels[:place], array.shape, strict=False))
            sizes |= dict(zip(labels[place + 1 :], array.shape[array.ndim - after :], strict=True))
        else:
            sizes |= dict(zip(labels, array.shape, strict=True))
    return prod(size for label, size in sizes.items() if label not in equation.output)


def _cell_terms(layer: Layer, inputs: Sequence[Array], _: Array) -> int:
    return int(inputs[0].shape[-1]) + int(vars(layer.op)["hidden_size"])


_COUNTS: dict[str, Callable[[Layer, Sequence[Array], Array], int]] = {
    **dict.fromkeys(_OUTPUT_AXIS, _filter_terms),
    "AdaptiveAvgPool": _ratio_terms,
    "AvgPool": _window_terms,
    "CumSum": _axes_terms,
    "Einsum": _equation_terms,
    **dict.fromkeys(RECURRENT, _cell_terms),
    "GroupNormalization": _group_terms,
    "LogSoftmax": _axis_terms,
    "MVN": _axes_terms,
    "MatMul": _matrix_terms,
    "NormalizeL2": _axes_terms,
    "ScaledDotProductAttention": _attention_terms,
    "SoftMax": _axis_terms,
}
