"""The order of tests: those that take long come first, so that no process is left alone with them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

__all__ = ["long_ones_first"]


def long_ones_first(items: Sequence[pytest.Item]) -> list[pytest.Item]:
    """Tests marked ``long`` at the beginning of either half, which is where each of two processes begins.

    Those of a file stay together. The second half has them in reverse: both then seldom make the same kernels at once.
    """
    files = list(dict.fromkeys(item.path for item in items if _is_long(item)))
    first, second = set(files[::2]), set(files[1::2])
    begin = [item for item in items if _is_long(item) and item.path in first]
    middle = [item for item in items if _is_long(item) and item.path in second][::-1]
    rest = [item for item in items if not _is_long(item)]
    half = max(len(items) // 2 - len(begin), 0)
    return [*begin, *rest[:half], *middle, *rest[half:]]


def _is_long(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is not None
