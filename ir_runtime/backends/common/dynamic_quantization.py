"""Dynamic quantization: activations are quantized to i8 in each run, to be multiplied by integer weights.

Groups of consecutive activations share a scale, their largest magnitude divided by 127, so that sums of products within a
group are exact integers. OpenVINO multiplies compressed weights this way unless ``DYNAMIC_QUANTIZATION_GROUP_SIZE`` is 0.
A group with NaN or infinity has the scale NaN, which makes the results of its row NaN. A group whose magnitudes are all
below `MIN_PEAK` is quantized to 0: 127 divided by such a magnitude may overflow f32.
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
    "current_integer_matrix",
    "integer_matrix",
    "quantize_activations",
    "round_activations",
]

GROUP_SIZES = (32, 64, 128)
"""The supported group sizes: how many activations share a scale."""
MIN_PEAK = 2.0**-120
"""Groups whose largest magnitude is below this are quantized to 0."""

# The offset that makes the quantized values of a type unsigned.
_OFFSETS = {E.u4: 0, E.i4: 8, E.u8: 0, E.i8: 128}
_MAX_ZERO_POINT = 255


@dataclass(frozen=True)
class ActivationGroups:
    """How activations are grouped: each group of weights is split into parts of ``size``, the last one possibly shorter.

    >>> ActivationGroups(groups=2, length=80, size=32).parts
    3

    Args:
        groups: the number of groups of weights along the depth, the summed axis.
        length: the length of a group of weights along the depth.
        size: how many activations share a scale.
    """

    groups: int
    length: int
    size: int

    @property
    def parts(self) -> int:
        """The number of activation groups in each group of weights."""
        return -(-self.length // self.size)


@dataclass(frozen=True)
class IntegerMatrix:
    """A quantized matrix ``(code + offset - zero) * scale``, where ``code + offset`` is unsigned.

    Args:
        weights: the quantized values ("codes").
        offset: added to the codes to make them unsigned.
        groups: the groups of activations.
        scale: ``[outputs, groups]``, f32.
        zero: the zero points of the unsigned values, ``[outputs, groups]``, u8.
    """

    weights: QuantizedWeights
    offset: int
    groups: ActivationGroups
    scale: Array
    zero: Array


def current_integer_matrix(weights: QuantizedWeights, rows: bool) -> IntegerMatrix | None:
    """Return weights for integer products if the current compilation quantizes activations, else ``None``.

    Args:
        weights: the matrix.
        rows: whether each row of the matrix, rather than each column, gives an output.
    """
    size = precision.current().dynamic_group
    return integer_matrix(weights, rows, size) if size else None


def integer_matrix(weights: QuantizedWeights, rows: bool, size: int) -> IntegerMatrix | None:
    """Return weights for products with quantized activations, or ``None`` if they do not qualify.

    Weights must be u4, i4, u8 or i8, with finite scales and integral zero points.

    Args:
        weights: the matrix.
        rows: whether each row of the matrix, rather than each column, gives an output.
        size: the largest number of activations that share a scale; limited to the size of the weights' groups.
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
    """Quantize ``x[rows, depth]`` to i8 ``[rows, groups, parts, size]``, zero-padded; return it and the scale of each part.

    >>> codes, scale = quantize_activations(np.float32([[1, -2, 0.5]]), ActivationGroups(1, 3, 2))
    >>> codes.tolist(), scale.tolist() == [[[np.float32(2) / 127, np.float32(0.5) / 127]]]
    ([[[[64, -127], [127, 0]]]], True)
    """
    padded = np.zeros((len(x), groups.groups, groups.parts * groups.size), np.float32)
    padded[:, :, : groups.length] = x.reshape(len(x), groups.groups, groups.length)
    wide = padded.reshape(len(x), groups.groups, groups.parts, groups.size)
    peak = np.abs(wide).max(axis=-1, keepdims=True, initial=0)
    usable = (peak >= MIN_PEAK) & (peak < np.inf)
    peak = np.where(usable, peak, np.where(peak < np.inf, 0, np.nan).astype(np.float32))
    inverse = np.divide(np.float32(127), peak, out=np.zeros_like(peak), where=usable)
    codes = np.rint(np.where(usable, wide, 0) * inverse).astype(np.int8)
    return codes, (peak / np.float32(127))[..., 0]


def round_activations(x: Array, groups: ActivationGroups) -> Array:
    """Round f32 activations to their quantized values: quantize, then dequantize.

    >>> round_activations(np.float32([[1, -2]]), ActivationGroups(1, 2, 2)) * 127 / 2
    array([[  64., -127.]], dtype=float32)
    """
    codes, scale = quantize_activations(x.reshape(-1, groups.groups * groups.length), groups)
    padded = (codes * scale[..., None]).reshape(len(codes), groups.groups, -1)
    return padded[:, :, : groups.length].reshape(x.shape)
