"""Findings as workflow commands, which GitHub shows at their lines.

Source: GitHub's documentation, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ..._util.escaping import github_data, github_property

if TYPE_CHECKING:
    from ...diagnostics import Diagnostic, Diagnostics, More

__all__ = ["commands"]

_LEVELS = {"error": "error", "warning": "warning", "note": "notice"}


def commands(reports: Iterable[tuple[str, Diagnostics]]) -> Iterator[str]:
    """Return a line for each finding, and one for each kind with more findings than are kept."""
    for file, report in reports:
        yield from map(_finding, report)
        yield from (_more(file, more) for more in report.more)


def _finding(finding: Diagnostic) -> str:
    where, place = finding.where, {"title": f"{finding.code}"}
    if where is not None and where.file:
        place |= {"file": where.file, **_region(finding)}
    if finding.layer is not None:
        place["title"] = f"{finding.code}: {finding.layer}"
    lines = [finding.message, *map(str, finding.causes), *([finding.hint] if finding.hint else [])]
    return _command(finding.severity, place, *lines)


def _region(finding: Diagnostic) -> dict[str, str]:
    """Return the line, and the columns where a part of it is marked."""
    excerpt, line = finding.excerpt, finding.line
    if excerpt is None or not excerpt.width:
        return {"line": str(line)} if line else {}
    start = excerpt.skipped + excerpt.column
    region = {"line": excerpt.line, "col": start, "endColumn": start + excerpt.width}
    return {name: str(number) for name, number in region.items()}


def _more(file: str, more: More) -> str:
    return _command(more.severity, {"title": more.code, "file": file}, more.text)


def _command(severity: str, place: dict[str, str], *lines: str) -> str:
    properties = ",".join(f"{key}={github_property(value)}" for key, value in place.items())
    return f"::{_LEVELS[severity]} {properties}::{github_data(*lines)}"
