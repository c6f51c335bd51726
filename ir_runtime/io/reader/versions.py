"""Determine the version of an operation on a page whose tag has none."""

from __future__ import annotations

import re

from ..._util.cached import cached_property
from ...errors import InputError
from ...ops import registry

__all__ = ["Versions"]

# Japanese pages put letters next to a name, without a word boundary.
_VERSIONED = re.compile(r"(?<![A-Za-z0-9_])([A-Za-z0-9_]++)-(\d{1,4}+)(?!\d)")
_ASKED = re.compile(r"(?:opset|(?P<name>\w+)-)?(?P<number>\d{1,4})", re.IGNORECASE)


class Versions:
    """The version that the caller asks for, or else the one on the page.

    Args:
        asked: ``"ReduceL2-4"`` for one operation, ``"opset4"`` or ``4`` for all.
        page: the name and text of the page, which may contain versioned names.

    Raises:
        InputError: if ``asked`` is not a version.

    >>> Versions(None, "Versioned name : ReduceL2-4").opset("ReduceL2")
    'opset4'
    """

    def __init__(self, asked: str | int | None, page: str) -> None:
        match = _ASKED.fullmatch(str(asked))
        if asked is not None and match is None:
            raise InputError(
                f"{asked!r} is not a version", hint="expected a version such as 'ReduceL2-4', 'opset4' or 4"
            )
        self._name = match["name"] if match else None
        self._number = match["number"] if match else None
        self._page = page

    def opset(self, type: str) -> str | None:
        """Return the opset of an operation type, or ``None`` if it is not given."""
        if self._number and (self._name is None or _same(self._name, type)):
            return f"opset{self._number}"
        names = (type, registry.name(type) or type)
        versions = [
            self._versions_by_name[name.lower()] for name in names if name.lower() in self._versions_by_name
        ]
        return f"opset{min(versions)[1]}" if versions else None

    @cached_property
    def _versions_by_name(self) -> dict[str, tuple[int, str]]:
        """The first number after each operation name on the page, with its position, by lower-case name."""
        versions: dict[str, tuple[int, str]] = {}
        for match in _VERSIONED.finditer(self._page):
            versions.setdefault(match.group(1).lower(), (match.start(), match.group(2)))
        return versions


def _same(name: str, type: str) -> bool:
    return name.lower() == type.lower() or registry.name(name) == (registry.name(type) or type)
