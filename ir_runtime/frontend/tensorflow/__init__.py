"""OpenVINO's conversion of models of TensorFlow: its names can be imported; calling them raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "GraphIterator", "OpExtension"]


class GraphIterator(Converter):
    """The layers of a model of TensorFlow."""


explain_absent(__name__)
