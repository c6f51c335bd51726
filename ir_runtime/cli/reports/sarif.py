"""Findings as a SARIF log, version 2.1.0, which code scanning tools read.

Source: OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0".
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from ..._util.escaping import sarif_text
from ..._version import __version__
from ..render import Record

if TYPE_CHECKING:
    from ...diagnostics import Diagnostic, Diagnostics, Location, More

__all__ = ["sarif"]

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(reports: Sequence[tuple[str, Diagnostics]]) -> Record:
    """One run over files with their reports, with a rule for each code that was found.

    Findings beyond the limit are counted in notifications without location.
    """
    findings = [finding for _, report in reports for finding in report]
    codes = sorted({finding.code for finding in findings})
    notifications = [_notification(file, more) for file, report in reports for more in report.more]
    invocation = {"executionSuccessful": True, "toolExecutionNotifications": notifications}
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "ir-runtime",
                        "version": __version__,
                        "semanticVersion": __version__,
                        "rules": [_rule(code) for code in codes],
                    }
                },
                **({"invocations": [invocation]} if notifications else {}),
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, codes) for finding in findings],
            }
        ],
    }


def _rule(code: str) -> Record:
    from ...codes import Code
    from ...explanations import explanation

    page = explanation(code)
    return {
        "id": code,
        "name": Code.of(code).name.title().replace("_", ""),
        "shortDescription": {"text": Code.of(code).summary},
        "fullDescription": {"text": page.meaning},
        "help": {"text": page.text(), "markdown": page.markdown},
    }


def _notification(file: str, more: More) -> Record:
    return {
        "associatedRule": {"id": more.code},
        "level": str(more.severity),
        "message": {"text": more.text},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": _uri(file)}}}],
    }


def _result(found: Diagnostic, codes: Sequence[str]) -> Record:
    result: Record = {
        "ruleId": found.code,
        "ruleIndex": codes.index(found.code),
        "level": str(found.severity),
        "message": {"text": sarif_text(found.message, *([found.hint] if found.hint else []))},
    }
    if found.where is not None and found.where.file:
        result["locations"] = [_location(found.where, _region(found))]
    if related := [_related_location(number, c.message, c.where) for number, c in enumerate(found.causes)]:
        result["relatedLocations"] = related
    return result


def _region(finding: Diagnostic) -> Record:
    excerpt, line = finding.excerpt, finding.line
    if excerpt is None:
        return {"startLine": line} if line else {}
    region: Record = {"startLine": excerpt.line, "snippet": {"text": excerpt.text}}
    if excerpt.width:
        start = excerpt.skipped + excerpt.column
        region |= {"startColumn": start, "endColumn": start + excerpt.width}
    return region


def _related_location(number: int, message: str, where: Location) -> Record:
    region = {"startLine": where.line} if where.line else {}
    return {"id": number, "message": {"text": sarif_text(message)}, **_location(where, region)}


def _location(where: Location, region: Record) -> Record:
    location: Record = {"physicalLocation": {"artifactLocation": {"uri": _uri(where.file)}}}
    if region:
        location["physicalLocation"]["region"] = region
    if where.layer is not None:
        logical = {"name": where.layer, "kind": "element"}
        location["logicalLocations"] = [{**logical, "fullyQualifiedName": where.layer}]
    return location


def _uri(file: str) -> str:
    """Return a path as an address: relative to where the command ran, where that is possible."""
    path = Path(file)
    if path.is_absolute():
        return path.as_uri()
    return quote(path.as_posix())
