"""Type aliases for arrays whose element type is known only when a model is read or run."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "DType", "Float"]

Array: TypeAlias = NDArray[Any]
"""An array of any element type."""
DType: TypeAlias = np.dtype[Any]
"""Any data type of NumPy."""
Float: TypeAlias = "np.floating[Any]"
"""A floating-point scalar of any width."""
