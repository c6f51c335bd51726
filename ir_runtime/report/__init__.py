"""Reports: one HTML file with the graph of a model, all about its layers, and measurements of them."""

from __future__ import annotations

from .page import Page, page, summary
from .source import Measures, OldModel, Source

__all__ = ["OldModel", "Measures", "Page", "Source", "page", "summary"]
