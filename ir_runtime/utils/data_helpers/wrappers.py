"""The results of inference, by port, name and index."""

from __future__ import annotations

from ...absent import answers
from ...api.results import OVDict

__all__ = ["OVDict"]

__getattr__ = answers(__name__)
