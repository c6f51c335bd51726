"""The results of inference, by port, name and index."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.results import OVDict

__all__ = ["OVDict"]

explain_absent(__name__)
