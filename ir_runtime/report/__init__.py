"""Reports: one HTML file with the graph of a model, all about its layers, and measurements of them."""

from __future__ import annotations

from .page import Page, page, summary
from .source import Conclusion, Measures, OldModel, Source
from .story import Link, Sentence, Story

__all__ = [
    "Conclusion",
    "Link",
    "Measures",
    "OldModel",
    "Page",
    "Sentence",
    "Source",
    "Story",
    "page",
    "summary",
]
