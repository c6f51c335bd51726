"""The names under which results are shown and saved."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["unique"]


def unique(names: Iterable[str]) -> list[str]:
    """Names of which no two are the same, even where case does not count."""
    taken: set[str] = set()
    found = []
    for name in names:
        number, candidate = 1, name
        while candidate.casefold() in taken:
            number += 1
            candidate = f"{name}_{number}"
        taken.add(candidate.casefold())
        found.append(candidate)
    return found
