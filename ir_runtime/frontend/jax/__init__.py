"""Stubs of ``openvino.frontend.jax``: calling one raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import Converter

__all__ = ["Decoder"]


class Decoder(Converter):
    """Stub of a traced JAX model."""


explain_absent(__name__)
