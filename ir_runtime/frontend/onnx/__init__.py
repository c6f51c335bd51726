"""OpenVINO's conversion of models of ONNX: its names can be imported; calling them says what to do."""

from __future__ import annotations

from ...absent import answers
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "OpExtension"]

__getattr__ = answers(__name__)
