"""The backend with which the kernel modules register."""

from __future__ import annotations

from .. import Backend, Precision
from ._index import MODULES, PATTERNS
from .threading.parallel import running

__all__ = ["backend"]


def _fastest() -> Precision:
    from .codegen.bf16 import HAS_BF16

    return Precision("bf16" if HAS_BF16 else "f32")


backend = Backend(
    "numba", around=running, kernel_modules=MODULES, pattern_modules=PATTERNS, products=("f32", "bf16"), fastest=_fastest
)  # fmt: skip
