"""The length that inputs have in common."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import InputError

__all__ = ["common_length"]


def common_length(lengths: Mapping[str, int], what: str, least: int = 0) -> int:
    """Return the length of all inputs; ``least`` if there are none.

    Args:
        lengths: by the name of an input.
        what: what is counted, such as ``rows``.
        least: the smallest length that is allowed.

    Raises:
        InputError: if the lengths differ, or are too small.

    >>> common_length({"x": 4, "y": 4}, "rows")
    4
    """
    found = set(lengths.values()) or {least}
    if len(found) == 1 and min(found) >= least:
        return found.pop()
    text = ", ".join(f"{length} of {name!r}" for name, length in lengths.items())
    at_least = f", at least {least}," if least else ","
    raise InputError(f"inputs must have the same number of {what}{at_least} got {text}")
