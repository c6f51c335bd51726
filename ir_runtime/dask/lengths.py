"""Check that inputs have the same length, and format ranges of rows for messages."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError

__all__ = ["common_length", "row_range"]


def common_length(lengths: Mapping[str, int], what: str, least: int = 0) -> int:
    """Return the length that all inputs have in common, or ``least`` without inputs.

    Args:
        lengths: the lengths by input name.
        what: the unit in messages, such as ``rows``.
        least: the minimum length.

    Raises:
        InputError: if the lengths differ, or are too small.

    >>> common_length({"x": 4, "y": 4}, "rows")
    4
    """
    distinct = set(lengths.values()) or {least}
    if len(distinct) == 1 and min(distinct) >= least:
        return distinct.pop()
    text = ", ".join(f"{length} of {name!r}" for name, length in lengths.items())
    at_least = f", at least {least}," if least else ","
    raise InputError(f"inputs must have the same number of {what}{at_least} got {text}")


def row_range(start: int, stop: int) -> str:
    """Format the rows ``[start, stop)`` as text.

    >>> row_range(0, 4), row_range(3, 4)
    ('rows 0 to 3', 'row 3')
    """
    return f"rows {start} to {stop - 1}" if stop - start != 1 else f"row {start}"
