"""Inference results, importable as from ``openvino.utils.data_helpers``."""

from __future__ import annotations

from ..._util.absent import explain_absent
from . import wrappers
from .wrappers import OVDict

__all__ = ["OVDict", "wrappers"]

explain_absent(__name__)
