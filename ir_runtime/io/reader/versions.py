"""Determine the version of an operation on a page whose tag has none."""

from __future__ import annotations

import re

from ..._util.cached import cached_property
from ...errors import InputError
from ...ops import registry

__all__ = ["Versions"]

# Japanese pages put letters right beside a name, so word boundaries would not find it.
_VERSIONED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z0-9_]++)-(\d{1,4}+)(?!\d)")
_ASKED = re.compile(r"(?:opset|(?P<name>\w+)-)?(?P<number>\d{1,4})", re.IGNORECASE)


class Versions:
    """The version that the caller asks for, else the one on the page.

    Args:
        asked: ``"ReduceL2-4"`` for that operation, ``"opset4"`` or ``4`` for every one.
        page: the name and text of the page, in which versioned names are looked for.

    Raises:
        InputError: if ``asked`` is not a version.

    >>> Versions(None, "Versioned name : ReduceL2-4").opset("ReduceL2")
    'opset4'
    """

    def __init__(self, asked: str | int | None, page: str) -> None:
        found = _ASKED.fullmatch(str(asked))
        if asked is not None and found is None:
            raise InputError(
                f"{asked!r} is not a version", hint="expected a version such as 'ReduceL2-4', 'opset4' or 4"
            )
        self._name = found["name"] if found else None
        self._number = found["number"] if found else None
        self._page = page

    def opset(self, type: str) -> str | None:
        """Return the opset of an operation type, or ``None`` if it is not given."""
        if self._number and (self._name is None or _same(self._name, type)):
            return f"opset{self._number}"
        names = (type, registry.name(type) or type)
        found = [self._named[name.lower()] for name in names if name.lower() in self._named]
        return f"opset{min(found)[1]}" if found else None

    @cached_property
    def _named(self) -> dict[str, tuple[int, str]]:
        """The first number after each operation name on the page, with its position, by lower-case name."""
        named: dict[str, tuple[int, str]] = {}
        for found in _VERSIONED.finditer(self._page):
            named.setdefault(found.group(1).lower(), (found.start(), found.group(2)))
        return named


def _same(name: str, type: str) -> bool:
    return name.lower() == type.lower() or registry.name(name) == (registry.name(type) or type)
