"""Rotary position embedding without turned copies of the rows."""

from __future__ import annotations

import numpy as np

from ....ir.graph import Layer
from ....ir.tensor import Array
from ....ops.arithmetic.binary import Add
from ... import Fusion, Kernel, MatchContext, Refusal
from ...core.lengths import accepting, any_lengths
from ...patterns.rotary import Rotary, match_rotary
from .._backend import backend

__all__: list[str] = []


@backend.pattern(Add)
def rotary(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match ``x * cos + turned(x) * sin``, f32, with the bits of the reference."""
    found = match_rotary(context, layer)
    if not isinstance(found, Rotary):
        return found
    return Fusion(found.layers, found.reads, _rotary_kernel(found.width))


def _rotary_kernel(width: int) -> Kernel:
    half = width // 2
    first, second = (..., slice(half)), (..., slice(half, None))

    def kernel(x: Array, cos: Array, sin: Array, *_: object) -> Array:
        if cos.shape != sin.shape or cos.shape[-1:] != (width,):  # NumPy refuses what does not fit
            turned = np.concatenate([-x[second], x[first]], -1)
            return np.asarray(x * cos + turned * sin)
        y = np.asarray(np.multiply(x, cos))
        left, right = y[first], y[second]
        np.subtract(left, x[second] * sin[first], left)
        np.add(right, x[first] * sin[second], right)
        return y

    return accepting(kernel, any_lengths)
