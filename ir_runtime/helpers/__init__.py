"""OpenVINO's helpers for arrays of element types of less than a byte."""

from __future__ import annotations

from ..absent import answers
from .packing import pack_data, unpack_data

__all__ = ["pack_data", "unpack_data"]

__getattr__ = answers(__name__)
