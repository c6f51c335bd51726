"""OpenVINO's conversion of models, which says what to do instead when it is called."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.conversion import convert_model

__all__ = ["convert_model"]

explain_absent(__name__)
