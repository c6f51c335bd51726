"""Findings as workflow commands, which GitHub shows beside the lines that they are about.

Source: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...diagnostics import Diagnostic

__all__ = ["commands"]

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}
_DATA = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY = {**_DATA, ":": "%3A", ",": "%2C"}


def commands(findings: Iterable[Diagnostic]) -> Iterator[str]:
    """A line for each finding."""
    for found in findings:
        where, place = found.where, {"title": f"{found.code}"}
        if where is not None and where.file:
            place |= {"file": where.file, **({"line": str(where.line)} if where.line else {})}
        if found.layer is not None:
            place["title"] = f"{found.code}: {found.layer}"
        text = "\n".join([found.message, *map(str, found.causes), *([found.hint] if found.hint else [])])
        said = ",".join(f"{key}={_escaped(value, _PROPERTY)}" for key, value in place.items())
        yield f"::{_LEVELS[found.severity]} {said}::{_escaped(text, _DATA)}"


def _escaped(text: str, how: dict[str, str]) -> str:
    return "".join(how.get(character, character) for character in text)
