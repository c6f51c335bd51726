"""The names of results in tables and files."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["unique"]


def unique(names: Iterable[str]) -> list[str]:
    """Make names unique, also without regard to case."""
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
