"""The backend that the modules of this package register their offers with."""

from __future__ import annotations

from .. import Backend

__all__ = ["backend"]

backend = Backend("numpy")
