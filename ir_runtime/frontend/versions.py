"""Which version of an operation a page means, where the tag does not say."""

from __future__ import annotations

import re

from ..errors import InputError
from ..ops import registry

__all__ = ["Versions"]

_ASKED = re.compile(r"(?:opset|(?P<name>\w+)-)?(?P<number>\d{1,4})", re.IGNORECASE)


class Versions:
    """What a caller asks for, else what a page says.

    Args:
        asked: ``"ReduceL2-4"`` for that operation, ``"opset4"`` or ``4`` for every one.
        page: the name and text of the page, in which versioned names are looked for.

    Raises:
        InputError: if ``asked`` is no version.

    >>> Versions(None, "Versioned name : ReduceL2-4").opset("ReduceL2")
    'opset4'
    """

    def __init__(self, asked: str | int | None, page: str) -> None:
        found = _ASKED.fullmatch(str(asked))
        if asked is not None and found is None:
            raise InputError(f"{asked!r} is no version", hint="give 'ReduceL2-4', 'opset4' or 4")
        self._name = found["name"] if found else None
        self._number = found["number"] if found else None
        self._page = page
        self._read: dict[str, str | None] = {}

    def opset(self, type: str) -> str | None:
        """The opset whose operation of this type is meant, or ``None`` if nobody says."""
        if self._number and (self._name is None or _same(self._name, type)):
            return f"opset{self._number}"
        if type not in self._read:
            self._read[type] = self._look_for(type)
        return self._read[type]

    def _look_for(self, type: str) -> str | None:
        # Japanese pages put letters right beside a name, so word boundaries would not find it.
        names = "|".join(map(re.escape, filter(None, (type, registry.name(type)))))
        pattern = rf"(?<![A-Za-z0-9_])(?:{names})-(\d{{1,4}})(?!\d)"
        found = re.search(pattern, self._page, re.IGNORECASE)
        return f"opset{found.group(1)}" if found else None


def _same(name: str, type: str) -> bool:
    return name.lower() == type.lower() or registry.name(name) == (registry.name(type) or type)
