"""The report on a collection: the conclusion, a table by IR version, and each file with a problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from .verdict import Outcome, Row

__all__ = ["report"]

_HEADS = (
    "version",
    "files",
    "both run",
    "only OpenVINO",
    "only here",
    "neither",
    "validate 0",
    "largest difference",
)
LONGEST = 300
"""Characters of a message that are shown."""


def report(rows: Sequence[Row], backends: Sequence[str]) -> Iterator[str]:
    """List the lines of the report on a collection."""
    running = [row for row in rows if row.openvino.ran]
    good, valid = sum(row.good for row in running), sum(row.valid for row in running)
    broken = sum(row.broken for row in rows)
    yield f"{good} of {len(running)} files that OpenVINO runs run here as well, on {', '.join(backends)};"
    yield f"validate ends with 0 for {valid} of them. {broken} crashed or took too long."
    reasons = Counter(reason for row in running for reason in {*row.reasons.values()})
    yield from (f"{count} differ from the CPU plugin: {reason}." for reason, count in reasons.most_common())
    yield ""
    groups = [(v, [row for row in rows if row.version == v]) for v in sorted({row.version for row in rows})]
    cells = [
        _HEADS,
        *(_cells(version, group, backends) for version, group in groups),
        _cells("all", rows, backends),
    ]
    widths = [max(len(row[i]) for row in cells) for i in range(len(_HEADS))]
    for row in cells:
        yield "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
    for row in rows:
        yield from _file(row)


def _cells(version: str, rows: Sequence[Row], backends: Sequence[str]) -> tuple[str, ...]:
    theirs = [row for row in rows if row.openvino.ran]
    counts = (
        len(rows),
        sum(row.runs for row in theirs),
        sum(not row.runs for row in theirs),
        sum(row.runs for row in rows if not row.openvino.ran),
        sum(not row.runs and not row.openvino.ran for row in rows),
        sum(row.valid for row in rows),
    )
    largest = (
        max((r.differences.get(b, 0.0) for r in theirs if b not in r.reasons), default=0.0) for b in backends
    )
    return version, *map(str, counts), " ".join(f"{d:.2g}" for d in largest)


def _file(row: Row) -> Iterator[str]:
    """Describe the problems of a file."""
    if row.good:
        return
    yield ""
    yield f"{row.name} (version {row.version})"
    if not row.openvino.ran:
        yield _line("OpenVINO", row.openvino)
    for backend, outcome in row.ours.items():
        if not outcome.ran:
            yield _line(backend, outcome)
        elif backend in row.apart:
            yield f"  {backend} differs by {row.differences[backend]:.3g} times what rounding explains"
    if not row.valid:
        yield _line("validate", row.validate)


def _line(side: str, outcome: Outcome) -> str:
    text = " ".join(outcome.text.split())
    return f"  {side} {outcome.kind}: {text if len(text) <= LONGEST else text[:LONGEST] + ' …'}"
