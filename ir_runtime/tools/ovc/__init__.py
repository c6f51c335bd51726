"""Stubs of ``openvino.tools.ovc``, OpenVINO's model converter: calling one raises an error with a hint."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import convert_model

__all__ = ["convert_model"]

explain_absent(__name__)
