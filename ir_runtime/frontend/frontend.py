"""The names of `ir_runtime.frontend`, importable as from ``openvino.frontend.frontend``."""

from __future__ import annotations

from .._util.absent import explain_absent
from . import FrontEnd, FrontEndManager

__all__ = ["FrontEnd", "FrontEndManager"]

explain_absent(__name__)
