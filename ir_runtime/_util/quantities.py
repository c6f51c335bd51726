"""Write counts and sizes with three digits and a prefix."""

from __future__ import annotations

__all__ = ["bytes_text", "prefixed"]

_PREFIXES = ("", "k", "M", "G", "T", "P", "E")


def prefixed(value: float, unit: str = "") -> str:
    """Write a number with the prefix of a power of 1000.

    >>> prefixed(4_089_000_000), prefixed(999_900, "FLOP"), prefixed(12)
    ('4.09 G', '1 MFLOP', '12')
    """
    number, power = _scale(value, 1000)
    return f"{number} {_PREFIXES[power]}{unit}".rstrip()


def bytes_text(count: float) -> str:
    """Write a number of bytes with the prefix of a power of 1024.

    >>> bytes_text(800), bytes_text(1010), bytes_text(3 << 20)
    ('800 B', '0.986 KiB', '3 MiB')
    """
    number, power = _scale(count, 1024)
    return f"{number} {_PREFIXES[power].upper()}{'i' if power else ''}B"


def _scale(value: float, base: int) -> tuple[str, int]:
    """Return three digits of a number divided by a power of the base, and the exponent."""
    power = 0
    while value >= 999.5 and power < len(_PREFIXES) - 1:  # what rounds to 1000 takes the next prefix
        value, power = value / base, power + 1
    return f"{value:.3g}", power
