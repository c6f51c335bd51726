"""OpenVINO's conversion of models of JAX: its names can be imported; calling them says what to do."""

from __future__ import annotations

from ...absent import answers
from ...api.conversion import Converter

__all__ = ["Decoder"]


class Decoder(Converter):
    """A model of JAX."""


__getattr__ = answers(__name__)
