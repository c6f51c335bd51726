"""Stubs of ``openvino.frontend.tensorflow``: calling one raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "GraphIterator", "OpExtension"]


class GraphIterator(Converter):
    """Stub of an iterator over the nodes of a TensorFlow graph."""


explain_absent(__name__)
