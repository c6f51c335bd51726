"""Stubs of ``openvino.frontend.onnx``: calling one raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "OpExtension"]

explain_absent(__name__)
