"""The buffer that owns an array's memory."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array

__all__ = ["base_buffer_of"]


def base_buffer_of(array: Array) -> int:
    """Return the identity of the buffer that owns an array's memory, equal for all views."""
    owner: object = array
    base: object = array.base
    while base is not None:
        owner, base = base, base.base if isinstance(base, np.ndarray) else None
    return id(owner)
