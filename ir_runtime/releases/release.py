"""Releases of OpenVINO: their names, and the features that each reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import NamedTuple, Self

from .._util.nearest import did_you_mean
from ..codes import Code
from ..errors import InputError
from ._table import FEATURES, NEVER

__all__ = ["WHEELS", "Release", "releases"]

WHEELS = {
    "2021.4": "2021.4.2",
    "2022.1": "2022.1.0",
    "2022.2": "2022.2.0",
    "2022.3": "2022.3.0",
    "2023.0": "2023.0.0",
    "2023.1": "2023.1.0",
    "2023.2": "2023.2.0",
    "2023.3": "2023.3.0",
    "2024.0": "2024.0.0",
    "2024.1": "2024.1.0",
    "2024.2": "2024.2.0",
    "2024.3": "2024.3.0",
    "2024.4": "2024.4.0",
    "2024.5": "2024.5.0",
    "2024.6": "2024.6.0",
    "2025.0": "2025.0.0",
    "2025.1": "2025.1.0",
    "2025.2": "2025.2.0",
    "2025.3": "2025.3.0",
    "2025.4": "2025.4.0",
    "2026.0": "2026.0.0",
    "2026.1": "2026.1.0",
    "2026.2": "2026.2.0",
    "2026.3": "2026.3.0",
    "2026.4": "2026.4.1",
}
"""The releases, the oldest first, and the version of each wheel that ``make releases`` probes."""


class Release(NamedTuple):
    """A release of OpenVINO, such as 2024.6; its patches read the same files.

    >>> Release.of("2024.6"), str(Release.of("2021.4.2"))
    (Release(year=2024, number=6), '2021.4')
    >>> Release.of("2023.0").reads("Identity-16"), Release.of("2026.0").reads("Identity-16")
    (False, True)
    """

    year: int
    number: int

    @classmethod
    def of(cls, name: str) -> Self:
        """Return the release named ``name``.

        Raises:
            InputError: if it is not one of `releases`.
        """
        parts = str(name).split(".")
        names = [str(release) for release in releases()]
        if len(parts) in (2, 3) and ".".join(parts[:2]) in names and parts[-1].isdecimal():
            return cls(int(parts[0]), int(parts[1]))
        near = did_you_mean(str(name), names, after=" ")
        raise InputError(
            f"unknown release {str(name)[:40]!r} of OpenVINO",
            code=Code.BAD_REQUEST,
            hint=f"{near}known are {names[0]} to {names[-1]}, such as {names[-1]}",
        )

    def reads(self, feature: str) -> bool:
        """Return whether the release reads models with a feature, a string as in ``ir_runtime.releases.needs``."""
        first = first_to_read(feature)
        return first is not None and first <= self

    def __str__(self) -> str:
        return f"{self.year}.{self.number}"


@cache
def releases() -> tuple[Release, ...]:
    """Return the known releases, the oldest first."""
    return tuple(_parse(name) for name in WHEELS)


def first_to_read(feature: str) -> Release | None:
    """Return the first release that reads models with a feature; ``None`` if none does."""
    return _first().get(feature, releases()[0])


@cache
def _first() -> Mapping[str, Release | None]:
    return dict(_entries())


def _entries() -> Iterator[tuple[str, Release | None]]:
    for name, features in FEATURES.items():
        release = None if name == NEVER else _parse(name)
        yield from ((feature, release) for feature in features.split(" "))


def _parse(name: str) -> Release:
    year, number = name.split(".")
    return Release(int(year), int(number))
