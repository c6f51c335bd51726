"""The number of threads of what is not this package's own."""

from __future__ import annotations

import os
import sys

__all__ = ["limit_threads"]


def limit_threads(count: int | None) -> None:
    """Set the number of threads of NumPy's BLAS, which reads it only while it is imported."""
    if count is not None and "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(count)
