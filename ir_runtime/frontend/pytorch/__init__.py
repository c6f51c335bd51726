"""OpenVINO's conversion of models of PyTorch: its names can be imported; calling them raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "Decoder", "ModuleExtension", "OpExtension", "inlined_extension"]


class Decoder(Converter):
    """A model of PyTorch."""


class ModuleExtension(Converter):
    """A conversion of a module of PyTorch to one operation."""


class inlined_extension(Converter):  # noqa: N801 - OpenVINO's name
    """A conversion of a call to one operation."""


explain_absent(__name__)
