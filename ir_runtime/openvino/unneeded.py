"""Read invalid files again as OpenVINO reads them: without the layers that no output needs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..diagnostics import Diagnostic, Diagnostics, More, Severity
from ..io.reader.document import parse
from ..io.reader.layers import FORMER_IR
from ..io.reader.model import Document, read_net
from ..io.reader.needed import may_be_unneeded
from ..io.reader.source import Source

__all__ = ["downgrade", "read_needed"]

_UNNEEDED = "no output needs this layer, so it is left out"


def read_needed(
    document: Document, source: Source, every: Diagnostics, report: Diagnostics
) -> Document | None:
    """Read a file again without the layers that no output needs; ``None`` if something else is wrong with it.

    Args:
        document: what was read of the file.
        source: the file.
        every: what was found in it.
        report: takes the findings.
    """
    if document.is_page or document.version < FORMER_IR:
        return None
    if not may_be_unneeded(document.graph, every.errors):
        return None
    root = parse(source.data, source.name, limits=document.limits)
    return read_net(root, source, document.weights, report, document.limits, needed_only=True)


def downgrade(every: Diagnostics, needed: Diagnostics) -> None:
    """Add the findings of all layers to those of the layers that outputs need, of which none is an error: as warnings.

    Args:
        every: what was found while all layers were read.
        needed: what was found without the unneeded ones; takes the findings.
    """
    reported = {_identity(found) for found in needed}
    for found in every:
        if found.severity is Severity.ERROR:
            needed.add(_as_warning(found))
        elif _identity(found) not in reported:
            needed.add(found)
    for more in _beyond(every.more, needed.more):
        severity = Severity.WARNING if more.severity is Severity.ERROR else more.severity
        needed.count_more(more.code, more.times, severity)


def _identity(found: Diagnostic) -> tuple[str, int | None, str, str | None]:
    return found.code, found.line, found.message, found.layer


def _as_warning(found: Diagnostic) -> Diagnostic:
    return replace(found, severity=Severity.WARNING, message=f"{found.message}; {_UNNEEDED}")


def _beyond(every: Iterable[More], needed: Iterable[More]) -> Iterator[More]:
    """Return how many more findings of each kind there are in one list than in the other."""
    counted = {(more.code, more.severity): more.times for more in needed}
    for code, severity, times in every:
        yield More(code, severity, times - counted.get((code, severity), 0))
