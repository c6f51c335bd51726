"""`OVDict`, the outputs of a request, importable as from ``openvino.utils.data_helpers.wrappers``."""

from __future__ import annotations

from ..._util.absent import explain_absent
from ...openvino.results import OVDict

__all__ = ["OVDict"]

explain_absent(__name__)
