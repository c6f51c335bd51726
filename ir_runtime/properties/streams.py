"""How many requests OpenVINO runs at once; here they are as many as there are threads that call."""

from __future__ import annotations

from ._property import Property

__all__ = ["num"]

num = Property("NUM_STREAMS")
