"""The backend with which the kernel modules of this package register."""

from __future__ import annotations

from .. import Backend
from ._index import MODULES, PATTERNS
from .threading.parallel import compiling, single_blas

__all__ = ["backend"]

backend = Backend(
    "numpy", around=single_blas, compiling=compiling, kernel_modules=MODULES, pattern_modules=PATTERNS
)
