"""The buffer that an array is a view of."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array

__all__ = ["root_of"]


def root_of(array: Array) -> int:
    """The identity of what owns the memory of an array: the same for all views of one array."""
    found: object = array
    while isinstance(found, np.ndarray) and found.base is not None:
        found = found.base
    return id(found)
