"""Complex numbers as pairs along the last axis of a tensor."""

from __future__ import annotations

import numpy as np

from ...ir.tensor import Array
from ..kernels.statistics import compute_dtype

__all__ = ["PAIRS", "as_complex", "as_pairs", "floats"]

PAIRS = "the real and the imaginary part"


def floats(data: Array) -> Array:
    """Convert to the precision of the transform: at least f32, as in OpenVINO's reference."""
    return data.astype(compute_dtype(data.dtype), copy=False)


def as_complex(pairs: Array) -> Array:
    """Return the complex numbers whose real and imaginary parts are along the last axis."""
    wide = np.ascontiguousarray(floats(pairs))
    return np.asarray(wide.view(np.result_type(wide, np.complex64))[..., 0])


def as_pairs(numbers: Array) -> Array:
    """Return complex numbers as pairs along a new last axis."""
    return np.ascontiguousarray(numbers)[..., None].view(numbers.real.dtype)
