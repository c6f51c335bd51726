"""The backend that the modules of this package register their offers with."""

from __future__ import annotations

from .. import Backend
from ._index import MATCHES, MODULES
from .threading.parallel import compiling, single_blas

__all__ = ["backend"]

backend = Backend("numpy", around=single_blas, compiling=compiling, homes=MODULES, sights=MATCHES)
