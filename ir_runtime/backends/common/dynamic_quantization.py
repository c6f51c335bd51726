"""Dynamic quantization: activations are rounded to 8 bits in each run, to be multiplied with integer weights.

Groups of consecutive activations share a scale, the largest magnitude divided by 127, so sums of their
products are exact integers. OpenVINO multiplies compressed weights this way unless
``DYNAMIC_QUANTIZATION_GROUP_SIZE`` is 0. A group with NaN or infinity has the scale NaN, as do the results of
its row. A group of magnitudes below `MIN_PEAK` is 0: 127 divided by such a magnitude can overflow f32.

A group with a NaN or an infinity has the scale NaN, and so has each result of its row. One whose magnitudes are below
`MIN_PEAK` is 0: 127 divided by such a magnitude can be too large for f32.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...ir.element import ElementType as E
from ...ir.quantized_weights import QuantizedWeights
from ...ir.tensor import Array
from ..core import precision

__all__ = [
    "GROUP_SIZES",
    "MIN_PEAK",
    "ActivationGroups",
    "IntegerMatrix",
    "asked_integers",
    "integer_matrix",
    "quantize_activations",
    "round_activations",
]

GROUP_SIZES = (32, 64, 128)
"""The possible numbers of activations that share a scale."""
MIN_PEAK = 2.0**-120
"""The smallest magnitude that is quantized."""

# What makes the quantized values of a type unsigned.
_OFFSETS = {E.u4: 0, E.i4: 8, E.u8: 0, E.i8: 128}
_MAX_ZERO_POINT = 255


@dataclass(frozen=True)
class ActivationGroups:
    """The grouping of activations within groups of weights; the last one may be shorter.

    >>> ActivationGroups(groups=2, length=80, size=32).parts
    3

    Args:
        groups: groups of the weights along a column.
        length: rows of each.
        size: activations that share a scale.
    """

    groups: int
    length: int
    size: int

    @property
    def parts(self) -> int:
        """Groups of activations within a group of the weights."""
        return -(-self.length // self.size)


@dataclass(frozen=True)
class IntegerMatrix:
    """A matrix ``(codes - zero) * scale`` of integers, whose quantized values are unsigned.

    Args:
        weights: the quantized values.
        offset: is to be added to them, so that they are unsigned.
        groups: of the activations.
        scale: f32, ``[outputs, groups of the weights]``.
        zero: the zero points of the unsigned values, likewise; all between 0 and 255.
    """

    weights: QuantizedWeights
    offset: int
    groups: ActivationGroups
    scale: Array
    zero: Array


def asked_integers(weights: QuantizedWeights, rows: bool) -> IntegerMatrix | None:
    """Return weights as integers if the current compilation quantizes activations, else ``None``.

    Args:
        weights: the matrix.
        rows: whether its outputs are its rows.
    """
    size = precision.current().dynamic_group
    return integer_matrix(weights, rows, size) if size else None


def integer_matrix(weights: QuantizedWeights, rows: bool, size: int) -> IntegerMatrix | None:
    """Return weights as integers if their activations can be quantized, else ``None``.

    Their types are u4, i4, u8 or i8, scales finite, and zero points integers.

    Args:
        weights: the matrix.
        rows: whether its outputs are its rows.
        size: the most activations per scale; a group of the weights may have fewer.
    """
    offset, groups = _OFFSETS.get(weights.element), weights.groups(rows)
    if offset is None or groups is None:
        return None
    scale, zero = weights.scales(rows)
    zero = np.full((1, 1), offset, np.float32) if zero is None else zero + np.float32(offset)
    if not (np.isfinite(scale).all() and np.array_equal(zero, np.rint(zero))):
        return None
    if zero.min() < 0 or zero.max() > _MAX_ZERO_POINT:
        return None
    length = weights.shape[1 if rows else 0] // groups
    zero = np.broadcast_to(zero, scale.shape).astype(np.uint8)
    return IntegerMatrix(weights, offset, ActivationGroups(groups, length, min(size, length)), scale, zero)


def quantize_activations(x: Array, groups: ActivationGroups) -> tuple[Array, Array]:
    """Return rows ``[rows, groups, parts, size]`` as i8, padded with zeros, and the scale of each part.

    >>> numbers, scale = quantize_activations(np.float32([[1, -2, 0.5]]), ActivationGroups(1, 3, 2))
    >>> numbers.tolist(), scale.tolist() == [[[np.float32(2) / 127, np.float32(0.5) / 127]]]
    ([[[[64, -127], [127, 0]]]], True)
    """
    padded = np.zeros((len(x), groups.groups, groups.parts * groups.size), np.float32)
    padded[:, :, : groups.length] = x.reshape(len(x), groups.groups, groups.length)
    wide = padded.reshape(len(x), groups.groups, groups.parts, groups.size)
    peak = np.abs(wide).max(axis=-1, keepdims=True, initial=0)
    usable = (peak >= MIN_PEAK) & (peak < np.inf)
    peak = np.where(usable, peak, np.where(peak < np.inf, 0, np.nan).astype(np.float32))
    inverse = np.divide(np.float32(127), peak, out=np.zeros_like(peak), where=usable)
    numbers = np.rint(np.where(usable, wide, 0) * inverse).astype(np.int8)
    return numbers, (peak / np.float32(127))[..., 0]


def round_activations(x: Array, groups: ActivationGroups) -> Array:
    """Quantize and dequantize f32 activations.

    >>> round_activations(np.float32([[1, -2]]), ActivationGroups(1, 2, 2)) * 127 / 2
    array([[  64., -127.]], dtype=float32)
    """
    numbers, scale = quantize_activations(x.reshape(-1, groups.groups * groups.length), groups)
    found = (numbers * scale[..., None]).reshape(len(numbers), groups.groups, -1)
    return found[:, :, : groups.length].reshape(x.shape)
