"""Results of inference, at the place that OpenVINO has them at."""

from __future__ import annotations

from ...absent import answers
from . import wrappers
from .wrappers import OVDict

__all__ = ["OVDict", "wrappers"]

__getattr__ = answers(__name__)
