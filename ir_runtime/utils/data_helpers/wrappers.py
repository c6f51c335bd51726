"""The results of inference, by port, name and index."""

from __future__ import annotations

from ...absent import explain_absent
from ...api.results import OVDict

__all__ = ["OVDict"]

explain_absent(__name__)
