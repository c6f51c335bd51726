"""Formatting of numbers with unit prefixes, and the width of text on terminals."""

from __future__ import annotations

import unicodedata

__all__ = [
    "bytes_text",
    "display_width",
    "format_prefixed",
    "shorten",
]


# Counts and sizes with three digits and a prefix.

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def format_prefixed(value: float, unit: str = "") -> str:
    """Format a number with three digits and the prefix of a power of 1000.

    >>> format_prefixed(4_089_000_000), format_prefixed(999_900, "FLOP"), format_prefixed(12)
    ('4.09 G', '1 MFLOP', '12')
    """
    number, power = _scale(value, 1000)
    return f"{number} {_PREFIXES[power]}{unit}".rstrip()


def bytes_text(count: float) -> str:
    """Format a number of bytes with three digits and the prefix of a power of 1024.

    >>> bytes_text(800), bytes_text(1010), bytes_text(3 << 20)
    ('800 B', '0.986 KiB', '3 MiB')
    """
    number, power = _scale(count, 1024)
    return f"{number} {_PREFIXES[power].upper()}{'i' if power else ''}B"


def _scale(value: float, base: int) -> tuple[str, int]:
    """Return three digits of a number divided by a power of the base, and the exponent."""
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:  # values that round to 1000 get the next prefix
        value, power = value / base, power + 1
    return f"{value:.3g}", power


# The width of text on terminals.


def display_width(text: str) -> int:
    """Return the number of columns of a text on a terminal: East Asian characters take two, combining marks none.

    >>> display_width("conv"), display_width("入力")
    (4, 4)
    """
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(c) in "WF" for c in text)
    marks = sum(unicodedata.combining(c) != 0 for c in text)
    return len(text) + wide - marks


def shorten(text: str, width: int) -> str:
    """Cut out the middle of a text that is wider than ``width``, as names of layers differ at their ends.

    >>> shorten("features.0.conv.weight", 11)
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
