"""Weights quantized to 8 or 4 bits, with a scale for each channel or group."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..ir.graph import Layer
from ..ir.tensor import Array
from .terms import PRODUCTS, RECURRENT

__all__ = [
    "BITS",
    "GROUP",
    "PER_CHANNEL",
    "channel_axes",
    "fake_quantize",
    "is_weights",
    "largest",
    "rounded_weights",
]

BITS = {"int8": 8, "int4": 4}
"""Bits of a weight, by precision."""
GROUP = 128
"""Default group size of int4."""
PER_CHANNEL = -1
"""Group size that stands for a whole channel, as in NNCF."""

_CHANNEL_AXES = {
    "Convolution": (0,),
    "ConvolutionBackpropData": (1,),
    "GroupConvolution": (0, 1),
    "GroupConvolutionBackpropData": (0, 2),
}
_RECURRENT_WEIGHTS = ("w", "r")


def is_weights(layer: Layer, index: int, array: Array) -> bool:
    """Return whether a constant input of a layer is a weight matrix."""
    if array.ndim < 2 or array.dtype.kind != "f" or not array.size or layer.op is None:
        return False
    if layer.type in RECURRENT:
        port = type(layer.op).port_of(index)
        return port is not None and port.name in _RECURRENT_WEIGHTS
    return layer.type in PRODUCTS and index < 2


def channel_axes(layer: Layer, index: int, rank: int) -> tuple[int, ...]:
    """Return the axes of weights with separate scales: all but the summed ones."""
    if layer.type == "MatMul":
        transposed = vars(layer.op)["transpose_b" if index else "transpose_a"]
        summed = rank - 1 if transposed == bool(index) else rank - 2
        return tuple(axis for axis in range(rank) if axis != summed)
    if layer.type in RECURRENT:
        return tuple(range(rank - 1))
    return _CHANNEL_AXES[layer.type]


def rounded_weights(layer: Layer, index: int, weights: Array, bits: int, group: int = PER_CHANNEL) -> Array:
    """Quantize and dequantize weights, with a scale and a zero point for each group.

    Args:
        layer: the layer that multiplies by them.
        index: the number of the input.
        weights: the weights.
        bits: bits of the integers.
        group: weights that share a scale; `PER_CHANNEL` for a whole channel.
    """
    axes = channel_axes(layer, index, weights.ndim)
    first = np.moveaxis(weights, axes, range(len(axes)))
    rows = first.reshape(*first.shape[: len(axes)], -1)
    stored = np.empty_like(rows)
    size = rows.shape[-1] if group == PER_CHANNEL else group
    for start in range(0, rows.shape[-1], size):
        stored[..., start : start + size] = _rounded(rows[..., start : start + size], (1 << bits) - 1)
    return np.asarray(np.moveaxis(stored.reshape(first.shape), range(len(axes)), axes))


def _rounded(part: Array, steps: int) -> Array:
    """Round numbers to an even grid that includes zero."""
    low, high = np.minimum(part.min(-1, keepdims=True), 0), np.maximum(part.max(-1, keepdims=True), 0)
    scale = np.where(high > low, (high - low) / steps, 1)
    zero = np.rint(-low / scale)
    return np.asarray((np.clip(np.rint(part / scale) + zero, 0, steps) - zero) * scale)


def fake_quantize(array: Array, low: Array, high: Array, steps: int) -> Array:
    """Clip numbers to limits, and round them to an even grid between the limits."""
    span = np.where(high > low, high - low, 1)
    level = np.rint((np.clip(array, low, high) - low) / span * steps)
    return np.asarray(level / steps * span + low).astype(array.dtype)


def largest(array: Array, kept: Sequence[int]) -> Array:
    """Return the largest absolute value along all axes but `kept`, which stay in place."""
    others = tuple(axis for axis in range(array.ndim) if axis not in kept)
    return np.asarray(np.abs(array).max(others, keepdims=True))
