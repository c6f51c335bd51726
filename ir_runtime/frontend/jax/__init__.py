"""OpenVINO's conversion of models of JAX: its names can be imported; calling them raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter

__all__ = ["Decoder"]


class Decoder(Converter):
    """A model of JAX."""


explain_absent(__name__)
