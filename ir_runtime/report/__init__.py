"""A report of a model: one HTML file to look at."""

from __future__ import annotations

from .page import Page, page, summary
from .source import Measures, OldModel, Source

__all__ = ["OldModel", "Measures", "Page", "Source", "page", "summary"]
