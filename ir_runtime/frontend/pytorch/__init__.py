"""Stubs of ``openvino.frontend.pytorch``: calling one raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter
from .. import ConversionExtension, OpExtension

__all__ = ["ConversionExtension", "Decoder", "ModuleExtension", "OpExtension", "inlined_extension"]


class Decoder(Converter):
    """Stub of a traced or exported PyTorch model."""


class ModuleExtension(Converter):
    """Stub of an extension that maps a PyTorch module to one operation."""


class inlined_extension(Converter):  # noqa: N801 - OpenVINO's name
    """Stub of a decorator that maps calls of a function to one operation."""


explain_absent(__name__)
