"""OpenVINO's tools, as far as they are here."""

from __future__ import annotations

from ..absent import answers
from . import ovc

__all__ = ["ovc"]

__getattr__ = answers(__name__)
