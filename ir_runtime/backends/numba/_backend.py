"""The backend that the modules of this package register their offers with."""

from __future__ import annotations

from .. import Backend
from ._index import MODULES, PATTERNS
from .threading.parallel import running

__all__ = ["backend"]

backend = Backend("numba", around=running, kernel_modules=MODULES, pattern_modules=PATTERNS)
