"""Format Markdown for a terminal: paragraphs and list items fill its width, the rest is unchanged."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from .terminal import columns

__all__ = ["filled"]

_FENCE = re.compile(r" *```")
_ITEM = re.compile(r" *(?:[*-]|\d+\.) ")
# Headings, tables, and code by indentation.
_FIXED = re.compile(r"#|\||    ")


def filled(text: str) -> str:
    """Fill a page for a terminal; for pipes and files, return it unchanged.

    Lines of a page are as long as its author made them, and would leave short rests where the terminal is narrower.
    """
    width = columns()
    return text if width is None else "\n".join(fill(text, width))


def fill(text: str, width: int) -> Iterator[str]:
    """Yield the lines of a page for a terminal of this width."""
    paragraph: list[str] = []
    is_code = False
    for line in text.split("\n"):
        is_fence = _FENCE.match(line) is not None
        is_fixed = is_code or is_fence or not line.strip() or (_FIXED.match(line) and not paragraph)
        if paragraph and (is_fixed or _ITEM.match(line)):
            yield from _wrap(paragraph, width)
            paragraph = []
        if is_fixed:
            yield line
        else:
            paragraph.append(line)
        is_code ^= is_fence
    yield from _wrap(paragraph, width) if paragraph else ()


def _wrap(lines: list[str], width: int) -> list[str]:
    item = _ITEM.match(lines[0])
    indent = " " * (item.end() if item else len(lines[0]) - len(lines[0].lstrip()))
    text = " ".join([lines[0].rstrip(), *map(str.strip, lines[1:])])
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
