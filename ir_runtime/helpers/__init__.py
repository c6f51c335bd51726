"""Packing of sub-byte element types, as ``openvino.helpers``."""

from __future__ import annotations

from .._util.absent import explain_absent
from .packing import pack_data, unpack_data

__all__ = ["pack_data", "unpack_data"]

explain_absent(__name__)
