"""Reread invalid files as OpenVINO does: without the layers that no output needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..diagnostics import Diagnostic, Diagnostics, More, Severity
from ..io.reader.document import Document, parse
from ..io.reader.layers import FORMER_IR
from ..io.reader.model import read_net
from ..io.reader.needed import may_be_unneeded
from ..io.reader.source import Source

__all__ = ["downgrade", "read_needed"]

_UNNEEDED = "no output needs this layer, so it is left out"


def read_needed(
    document: Document, source: Source, every: Diagnostics, report: Diagnostics
) -> Document | None:
    """Read a file again without unneeded layers; ``None`` if it has other errors.

    Args:
        document: the file as read first.
        source: the file.
        every: its findings.
        report: takes the findings.
    """
    if document.is_page or document.version < FORMER_IR:
        return None
    if not may_be_unneeded(document.graph, every.errors):
        return None
    root = parse(source.data, source.name, limits=document.limits)
    return read_net(root, source, document.weights, report, document.limits, needed_only=True)


def downgrade(every: Diagnostics, needed: Diagnostics) -> None:
    """Add the findings of all layers, as warnings, to those of the needed layers.

    Args:
        every: the findings of all layers.
        needed: the findings without unneeded layers; more are added.
    """
    reported = {_identity(finding) for finding in needed}
    for finding in every:
        if finding.severity is Severity.ERROR:
            needed.add(_as_warning(finding))
        elif _identity(finding) not in reported:
            needed.add(finding)
    for more in _beyond(every.more, needed.more):
        severity = Severity.WARNING if more.severity is Severity.ERROR else more.severity
        needed.count_more(more.code, more.times, severity)


def _identity(finding: Diagnostic) -> tuple[str, int | None, str, str | None]:
    return finding.code, finding.line, finding.message, finding.layer


def _as_warning(finding: Diagnostic) -> Diagnostic:
    return replace(finding, severity=Severity.WARNING, message=f"{finding.message}; {_UNNEEDED}")


def _beyond(every: Iterable[More], needed: Iterable[More]) -> Iterator[More]:
    """Yield how many more findings of each kind are in one list than in the other."""
    counted = {(more.code, more.severity): more.times for more in needed}
    for code, severity, times in every:
        yield More(code, severity, times - counted.get((code, severity), 0))
