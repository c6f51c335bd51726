"""OpenVINO's helpers, as far as programs use them."""

from __future__ import annotations

from ..absent import answers
from . import data_helpers, types

__all__ = ["data_helpers", "types"]

__getattr__ = answers(__name__)
