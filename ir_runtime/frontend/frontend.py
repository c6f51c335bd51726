"""The names of conversions at the place that OpenVINO defines them at."""

from __future__ import annotations

from .._util.absent import explain_absent
from . import FrontEnd, FrontEndManager

__all__ = ["FrontEnd", "FrontEndManager"]

explain_absent(__name__)
