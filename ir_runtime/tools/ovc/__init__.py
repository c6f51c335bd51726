"""OpenVINO's conversion of models, which says what to do instead when it is called."""

from __future__ import annotations

from ...absent import answers
from ...api.conversion import convert_model

__all__ = ["convert_model"]

__getattr__ = answers(__name__)
