"""The backend with which the kernel modules of this package register."""

from __future__ import annotations

from .. import Backend
from ..common.dynamic_quantization import GROUP_SIZES
from ..common.kept_weights import budget
from ._index import MODULES, PATTERNS
from .parallel import single_blas

__all__ = ["backend"]


backend = Backend(
    "numpy", around=single_blas, compiling=budget, kernel_modules=MODULES, pattern_modules=PATTERNS,
    dynamic_groups=(0, *GROUP_SIZES),
)  # fmt: skip
