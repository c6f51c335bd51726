"""The `Backend` object of the NumPy backend, with which its kernel modules register."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .. import Backend
from ..common.dynamic_quantization import GROUP_SIZES
from ..common.kept_weights import budget
from ._index import MODULES, PACKED, PATTERNS
from .parallel import single_blas

__all__ = ["backend"]


@contextmanager
def _compilation() -> Iterator[None]:
    """Give weights a common memory budget, and limit BLAS to one thread while constants are packed, as in runs."""
    with budget(), single_blas():
        yield


backend = Backend(
    "numpy", around=single_blas, compiling=_compilation, kernel_modules=MODULES, pattern_modules=PATTERNS,
    packed_modules=PACKED, dynamic_groups=(0, *GROUP_SIZES),
)  # fmt: skip
