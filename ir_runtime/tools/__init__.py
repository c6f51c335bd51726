"""The supported part of ``openvino.tools``."""

from __future__ import annotations

from .._util.absent import explain_absent
from . import ovc

__all__ = ["ovc"]

explain_absent(__name__)
