"""The buffer that an array is a view of."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array

__all__ = ["base_buffer_of"]


def base_buffer_of(array: Array) -> int:
    """Return the identity of what owns the memory of an array: the same for all views of one array."""
    found: object = array
    base: object = array.base
    while base is not None:
        found, base = base, base.base if isinstance(base, np.ndarray) else None
    return id(found)
