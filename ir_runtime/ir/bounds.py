"""Arithmetic on the bounds of intervals, where ``None`` is infinite, and reading them."""

from __future__ import annotations

__all__ = ["add", "is_number", "multiply", "negate", "parse_bounds"]


def parse_bounds(text: str) -> tuple[int, int | None]:
    """Read the bounds of a length such as ``3``, ``?``, ``1..8`` or ``..8``."""
    low, dots, high = (part.strip() for part in text.partition(".."))
    if not dots and low in ("?", "-1"):
        return 0, None
    ends = [None if dots and part in ("", "-1") else part for part in (low, high if dots else low)]
    if any(part is not None and not is_number(part) for part in ends):
        raise ValueError(f"{text[:40]!r} is not a length such as 3, ?, 1..8 or ..8")
    first, last = (None if part is None else int(part) for part in ends)
    return first or 0, last


def is_number(text: str) -> bool:
    """Return whether a text is a decimal number."""
    return text.isascii() and text.isdecimal()


def add(a: int | None, b: int | None) -> int | None:
    """Add two bounds."""
    return None if a is None or b is None else a + b


def multiply(a: int | None, b: int | None) -> int | None:
    """Multiply two bounds that are not negative."""
    if a == 0 or b == 0:
        return 0
    return None if a is None or b is None else a * b


def negate(a: int | None) -> int | None:
    """Negate a bound."""
    return None if a is None else -a
