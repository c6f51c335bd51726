"""Check that the constants of a model cover the bytes of its ``.bin`` without overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..._util.deadline import check_periodically
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics, Location, Mark, Severity
from ...ir.graph import Graph, Layer

__all__ = ["check_bytes"]

# Constants may be aligned: gaps smaller than this are padding.
_PADDING = 64


class _Range(NamedTuple):
    start: int
    end: int
    layer: Layer


def check_bytes(graph: Graph, size: int, name: str, report: Diagnostics) -> None:
    """Report constants whose bytes overlap, and bytes that belong to no constant.

    Constants with exactly the same bytes are one deduplicated constant.

    Args:
        graph: the layers, including those inside bodies.
        size: the size of the ``.bin`` in bytes.
        name: its name, for messages.
        report: takes the findings.
    """
    ranges = sorted({(r.start, r.end): r for r in _ranges(graph)}.values(), key=lambda r: r[:2])
    if any(r.end > size for r in ranges):
        return  # reported already, and may be the reason for overlaps
    _check_overlaps(ranges, report)
    # If there are other errors, the graph may lack constants that the file has.
    orphans = [] if not report.ok else [(a, b) for a, b in _gaps(ranges, size) if b - a >= _PADDING]
    if orphans:
        total = sum(b - a for a, b in orphans)
        report.warning(
            Code.ORPHAN_BYTES,
            f"{total} bytes belong to no constant, from byte {orphans[0][0]} on",
            Location(name),
            "constants may be missing from the .xml; or the .bin belongs to another",
        )


def _check_overlaps(ranges: Sequence[_Range], report: Diagnostics) -> None:
    """Report overlaps: warnings, as OpenVINO reads such files, unless the bytes cause other errors.

    Those other errors are withdrawn, so that a mistake is reported once, where it is.
    """
    misplaced: dict[str, tuple[_Range, _Range]] = {}
    for wrong, other in _overlaps(ranges):
        misplaced.setdefault(wrong.layer.name, (wrong, other))
    if not misplaced:
        return
    consequences = [finding for finding in report if _causes(finding) & misplaced.keys()]
    refused = {
        name for finding in consequences if finding.severity is Severity.ERROR for name in _causes(finding)
    }
    report.withdraw(lambda finding: bool(_causes(finding) & misplaced.keys()))
    for name, (wrong, other) in misplaced.items():
        message = (
            f"bytes {wrong.start} to {wrong.end} of the .bin are partly those of {other.layer}, "
            f"at line {other.layer.where.line}, which has bytes {other.start} to {other.end}"
        )
        severity = Severity.ERROR if name in refused else Severity.WARNING
        hint = "the offset or the size of one of them is wrong"
        place, mark = wrong.layer.where, Mark(attribute="offset")
        report.add(Diagnostic(Code.SHARED_BYTES, message, place, severity, hint, mark))


def _causes(finding: Diagnostic) -> set[str | None]:
    """Return the names of the layers that caused a finding."""
    return {cause.where.layer for cause in finding.causes}


def _ranges(graph: Graph) -> Iterator[_Range]:
    for layer in check_periodically(graph.everywhere()):
        if layer.type == "Constant" and layer.op is not None:
            attributes = vars(layer.op)
            if attributes["value"].size:
                yield _Range(attributes["offset"], attributes["offset"] + attributes["size"], layer)


def _overlaps(ranges: Sequence[_Range]) -> Iterator[tuple[_Range, _Range]]:
    """Yield overlapping pairs, the misplaced one first."""
    edges = Counter(edge for r in ranges for edge in (r.start, r.end))
    furthest: _Range | None = None
    for current in ranges:
        if furthest is not None and current.start < furthest.end:
            # A constant in its place begins where another ends, or ends where another begins.
            wrong, other = sorted((current, furthest), key=lambda r: edges[r.start] + edges[r.end])
            yield wrong, other
        if furthest is None or current.end > furthest.end:
            furthest = current


def _gaps(ranges: Sequence[_Range], size: int) -> Iterator[tuple[int, int]]:
    reached = 0
    for current in ranges:
        if current.start > reached:
            yield reached, current.start
        reached = max(reached, current.end)
    if reached < size:
        yield reached, size
