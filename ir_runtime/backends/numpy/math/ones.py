"""Columns of ones, whose products with rows are the sums of these."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ....ir.tensor import Array

__all__ = ["ones_column"]


@lru_cache(maxsize=64)
def ones_column(count: int) -> Array:
    """Return a column of ones, which several layers share.

    >>> (np.float32([[1, 2, 3]]) @ ones_column(3)).tolist()
    [[6.0]]
    """
    column = np.ones((count, 1), np.float32)
    column.setflags(write=False)
    return column
