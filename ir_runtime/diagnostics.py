"""Findings about a model, and counts of those that exceed the limit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Set
from dataclasses import replace
from typing import Any, NamedTuple

from .finding import Cause, Diagnostic, Excerpt, Location, Mark, Severity, fold

__all__ = [
    "MOST",
    "Cause",
    "Diagnostic",
    "Diagnostics",
    "Excerpt",
    "Location",
    "Mark",
    "More",
    "Severity",
]

MOST = 1000
"""The default number of findings of a file that are kept."""
# The number of findings of each code that are always kept, so that errors after many warnings are shown.
_OF_EACH = 10


class More(NamedTuple):
    """The number of findings of a kind beyond those that are kept."""

    code: str
    severity: Severity
    times: int

    def record(self) -> dict[str, Any]:
        """Return plain data for JSON."""
        return {"code": self.code, "severity": str(self.severity), "count": self.times}

    @property
    def text(self) -> str:
        """Return a sentence."""
        return f"… and {self.times:,} more of the same"

    def __str__(self) -> str:
        return f"{self.severity}[{self.code}]: {self.text}"


class Diagnostics:
    """A collection of findings, so that one run reports all of them.

    >>> import ir_runtime as ov
    >>> found = ov.validate(b'<net name="n" version="99"><layers/><edges/></net>')
    >>> [str(finding.code) for finding in found.errors]
    ['IR003']

    Checking passes add findings, which others read:

    >>> report = Diagnostics()
    >>> report.error("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1"))
    >>> report.warning("IR105", "unused input", Location("a.xml", 5, "in"))
    >>> report.note("IR001", "read as version 11")
    >>> report.add_consequence(Location("a.xml", 9, "out"))
    >>> report.arrange()
    >>> [found.line for found in report], report.ok, report.count(), sorted(report.wrong)
    ([None, 5, 7], False, 3, ['mm', 'out'])
    >>> len(report.warnings), len(report.notes), report.more
    (1, 1, ())
    >>> both = Diagnostics()
    >>> both.extend(report)
    >>> both.add(report.errors[0])
    >>> both.count_more("IR301", 10)
    >>> both.withdraw(lambda found: found.code == "IR105")
    >>> both.escalate()
    >>> both.summary
    '12 errors, 0 warnings'

    Args:
        most: how many to keep; the rest is counted. Of each code, the first few are kept in any case.
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self._kept: list[Diagnostic] = []
        self._counts: Counter[tuple[str, Severity]] = Counter()
        self._wrong: set[str | None] = set()

    def error(
        self,
        code: str,
        message: str,
        where: Location | None = None,
        hint: str = "",
        *,
        mark: Mark | None = None,
        causes: tuple[Cause, ...] = (),
    ) -> None:
        """Add an error: the model is invalid.

        Args:
            code: the kind of finding, such as ``IR301``.
            message: what is wrong.
            where: file, line, layer and operation.
            hint: what to do about it.
            mark: the element of the file to point at.
            causes: the layers that lead to it.
        """
        if self._counted(code, Severity.ERROR, where):
            self._kept.append(Diagnostic(code, message, where, Severity.ERROR, hint, mark, causes=causes))

    def warning(
        self,
        code: str,
        message: str,
        where: Location | None = None,
        hint: str = "",
        mark: Mark | None = None,
        kind: str = "",
    ) -> None:
        """Add a warning; ``code``, ``message``, ``where``, ``hint`` and ``mark`` are those of `error`.

        ``kind`` is the message for several warnings of it, where that of each names something else.
        """
        if self._counted(code, Severity.WARNING, where):
            self._kept.append(Diagnostic(code, message, where, Severity.WARNING, hint, mark, kind=kind))

    def note(self, code: str, message: str, where: Location | None = None, hint: str = "") -> None:
        """Add a note; ``code``, ``message``, ``where`` and ``hint`` are those of `error`."""
        if self._counted(code, Severity.NOTE, where):
            self._kept.append(Diagnostic(code, message, where, Severity.NOTE, hint))

    def add(self, found: Diagnostic) -> None:
        """Add a finding."""
        if self._counted(found.code, found.severity, found.where):
            self._kept.append(found)

    def add_consequence(self, where: Location) -> None:
        """Mark a layer as invalid whose cause is a finding already."""
        self._wrong.add(where.layer)

    def extend(self, others: Iterable[Diagnostic] | Diagnostics, more: Iterable[More] = ()) -> None:
        """Add findings, and those that were only counted: ``more``, or those of another report.

        Args:
            others: the findings, or another report.
            more: kinds of findings, and how many there are of each.
        """
        for found in others:
            self.add(found)
        if isinstance(others, Diagnostics):
            more = others.more
            self._wrong |= others._wrong
        for code, severity, times in more:
            self.count_more(code, times, severity)

    def count_more(self, code: str, count: int, severity: Severity = Severity.ERROR) -> None:
        """Count findings without keeping them.

        Args:
            code: such as ``IR301``.
            count: how many there are.
            severity: of these findings.
        """
        if count > 0:
            self._counts[code, severity] += count

    def _counted(self, code: str, severity: Severity, where: Location | None) -> bool:
        """Count a finding; return whether to keep it."""
        kept = len(self._kept) < self.most or self._counts[code, severity] < _OF_EACH
        self._counts[code, severity] += 1
        if severity is Severity.ERROR:
            self._wrong.add(where.layer if where else None)
        return kept

    def withdraw(self, wrong: Callable[[Diagnostic], bool]) -> None:
        """Remove findings that turned out to be wrong."""
        for found in filter(wrong, self._kept):
            self._counts[found.code, found.severity] -= 1
        self._kept = [found for found in self._kept if not wrong(found)]

    def arrange(self, excerpt: Callable[[Diagnostic], Excerpt | None] | None = None) -> None:
        """Sort the findings in the order of the file, and add the lines that they are about."""
        self._kept.sort(key=lambda found: found.line or 0)
        if excerpt is not None:
            self._kept = [found.showing(excerpt(found)) for found in self._kept]

    def escalate(self) -> None:
        """Turn every warning into an error."""
        warnings = [code for code, severity in self._counts if severity is Severity.WARNING]
        for code in warnings:
            self._counts[code, Severity.ERROR] += self._counts.pop((code, Severity.WARNING))
        self._wrong |= {found.layer for found in self.warnings}
        self._kept = [
            replace(found, severity=Severity.ERROR) if found.severity is Severity.WARNING else found
            for found in self._kept
        ]

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors."""
        return self._of(Severity.ERROR)

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings."""
        return self._of(Severity.WARNING)

    @property
    def notes(self) -> list[Diagnostic]:
        """The notes."""
        return self._of(Severity.NOTE)

    def _of(self, severity: Severity) -> list[Diagnostic]:
        return [found for found in self._kept if found.severity is severity]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.count(Severity.ERROR)

    def count(self, severity: Severity | None = None, code: str | None = None) -> int:
        """Return the number of findings of a severity or a code, including those that are not kept.

        Args:
            severity: of the findings; by default any.
            code: such as ``IR301``; by default any.
        """
        return sum(
            count
            for (its_code, its_severity), count in self._counts.items()
            if severity in (None, its_severity) and code in (None, its_code)
        )

    @property
    def more(self) -> tuple[More, ...]:
        """The number of findings of each kind beyond those that are kept."""
        kept = Counter((found.code, found.severity) for found in self._kept)
        left = ((*kind, count - kept[kind]) for kind, count in self._counts.items())
        return tuple(More(*each) for each in left if each[-1])

    @property
    def wrong(self) -> Set[str | None]:
        """The names of the layers with errors; ``None`` if some error has no layer."""
        return self._wrong

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(self._kept)

    def __len__(self) -> int:
        return len(self._kept)

    def _repr_html_(self) -> str:
        from ._util.markup import table

        rows = [
            (found.severity, found.code, str(found.where or ""), found.message, found.hint)
            for found in fold(self._kept)
        ]
        return table(self.summary, ("severity", "code", "where", "what", "hint"), rows)

    @property
    def summary(self) -> str:
        """The number of errors and warnings.

        >>> Diagnostics().summary
        '0 errors, 0 warnings'
        """
        counts = [(self.count(severity), severity) for severity in (Severity.ERROR, Severity.WARNING)]
        return ", ".join(f"{count:,} {severity}{'' if count == 1 else 's'}" for count, severity in counts)

    def __str__(self) -> str:
        return "\n".join([*(found.text() for found in fold(self)), *map(str, self.more), self.summary])

    def __repr__(self) -> str:
        return f"<Diagnostics: {self.count(Severity.ERROR)} errors, {self.count(Severity.WARNING)} warnings>"
