"""Reports: one HTML file with the graph of a model, and what is known and was measured of its layers."""

from __future__ import annotations

from .page import Page, page, summary
from .source import Measures, OldModel, Source

__all__ = ["OldModel", "Measures", "Page", "Source", "page", "summary"]
