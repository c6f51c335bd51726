"""The backend with which the kernel modules register."""

from __future__ import annotations

from .. import Backend
from ._index import MODULES, PATTERNS
from .threading.parallel import running

__all__ = ["backend"]

backend = Backend("numba", around=running, kernel_modules=MODULES, pattern_modules=PATTERNS)
