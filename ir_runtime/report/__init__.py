"""HTML reports: the graph of a model, the details of its layers, and measurements, in one self-contained file."""

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
