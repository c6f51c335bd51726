"""The width of text on terminals."""

from __future__ import annotations

import unicodedata

__all__ = ["display_width", "shortened"]


def display_width(text: str) -> int:
    """Return the width on a terminal; East Asian characters take two columns, combining marks none.

    >>> display_width("conv"), display_width("入力")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(unicodedata.combining(c) != 0 for c in text)
    return len(text) + wide - marks


def shortened(text: str, width: int) -> str:
    """Leave out the middle of a text that is wider than ``width``: names of layers differ at their ends.

    >>> shortened("features.0.conv.weight", 11)
    'featu…eight'
    """
    if display_width(text) <= width:
        return text
    start, end = "", ""
    for head, tail in zip(text, reversed(text), strict=True):
        if display_width(start + head + end) > width - 1:
            break
        start += head
        if display_width(start + tail + end) > width - 1:
            break
        end = tail + end
    return f"{start}…{end}"
