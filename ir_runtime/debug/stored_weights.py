"""Weights quantized to 8 or 4 bits, with a scale for each row or group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np

from ..ir.graph import Layer
from ..ir.tensor import Array

__all__ = ["STORED_AS"]

GROUP = 128
"""How many weights of a row share a scale in int4."""

_Rounding: TypeAlias = Callable[[Layer, Array], Array]
"""A function from a layer and its weights to the weights after quantization."""


def _rows(layer: Layer, weights: Array) -> Array:
    """Return weights as rows, one for each column of the result."""
    transposed = layer.type != "MatMul" or vars(layer.op)["transpose_b"]
    return weights if transposed else np.swapaxes(weights, -1, -2)


def _in_int8(layer: Layer, weights: Array) -> Array:
    rows = _rows(layer, weights)
    axes = tuple(range(1, rows.ndim)) if layer.type != "MatMul" else (-1,)
    scale = np.abs(rows).max(axes, keepdims=True) / 127
    scale = np.where(scale, scale, 1)
    stored = np.clip(np.rint(rows / scale), -127, 127) * scale
    return _rows(layer, np.asarray(stored.astype(weights.dtype)))


def _in_int4(layer: Layer, weights: Array) -> Array:
    rows = _rows(layer, weights)
    flat = rows.reshape(rows.shape[0], -1) if layer.type != "MatMul" else rows
    stored = flat.copy()
    for start in range(0, flat.shape[-1], GROUP):
        part = flat[..., start : start + GROUP]
        low, high = part.min(-1, keepdims=True), part.max(-1, keepdims=True)
        low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale = np.where(high > low, (high - low) / 15, 1)
        zero = np.rint(-low / scale)
        stored[..., start : start + GROUP] = (np.clip(np.rint(part / scale) + zero, 0, 15) - zero) * scale
    return _rows(layer, stored.reshape(rows.shape))


STORED_AS: Mapping[str, _Rounding] = {"int8": _in_int8, "int4": _in_int4}
"""The rounding of weights by the name of their precision."""
