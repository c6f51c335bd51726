"""Findings about a model, and counts of those that exceed the limit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple

from ._util.escaping import one_line, quoted, visible
from ._util.text import display_width

__all__ = [
    "Cause",
    "Diagnostic",
    "Diagnostics",
    "Excerpt",
    "Location",
    "MOST",
    "Mark",
    "More",
    "Severity",
    "fold",
]

# The longest layer name shown in a location, in characters.
_LONGEST_NAME = 200
# The width of the line number before the text of an excerpt, in columns.
_MARGIN = 8
# The number of lines that a folded finding lists.
_LINES = 3


class Severity(StrEnum):
    """The severity of a finding: an error makes the model invalid.

    >>> from ir_runtime import Severity
    >>> [str(severity) for severity in Severity]
    ['error', 'warning', 'note']
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Location:
    """A location in a model: file, line, and layer with its operation.

    >>> print(Location("net.xml", 26, "conv1", "Convolution-1"))
    net.xml:26: layer 'conv1' (Convolution-1)
    """

    file: str = ""
    line: int | None = None
    layer: str | None = None
    operation: str = ""

    def __str__(self) -> str:
        place = ":".join(str(part) for part in (visible(self.file), self.line) if part)
        layer = f"layer {quoted(self.layer, _LONGEST_NAME)}" if self.layer is not None else ""
        if layer and self.operation:
            layer += f" ({one_line(self.operation, _LONGEST_NAME)})"
        return ": ".join(filter(None, (place, layer)))


@dataclass(frozen=True, slots=True)
class Mark:
    """The part of an XML element to mark: an attribute, a port by its id, or a dim of a port; by default, the whole element."""

    attribute: str = ""
    port: int | None = None
    output: bool = False
    dim: int | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of a file, truncated if it is long, with carets under a part of it.

    Args:
        line: the line number, from 1.
        text: the part of the line that is shown.
        column: the first marked character of ``text``, from 1.
        width: the number of marked characters.
        skipped: the number of characters of the line before ``text``.

    >>> print(Excerpt(26, "  <dim>4</dim>", 8, 1))
       26 |   <dim>4</dim>
          |        ^
    """

    line: int
    text: str
    column: int = 1
    width: int = 0
    skipped: int = 0

    def within(self, columns: int) -> Excerpt:
        """Return the part of the line around the mark that fits in ``columns`` terminal columns."""
        room = columns - _MARGIN
        if display_width(self.text) <= room:
            return self
        start = 0
        if display_width(self.text[: self.column - 1 + self.width]) > room:
            start = max(0, min(self.column - 1 - room // 4, len(self.text) - room))
        text = self.text[start:]
        while display_width(text) > room:
            text = text[:-1]
        column = self.column - start
        return replace(
            self,
            text=text,
            column=column,
            width=min(self.width, len(text) - column + 1),
            skipped=self.skipped + start,
        )

    def __str__(self) -> str:
        before, marked = self.text[: self.column - 1], self.text[self.column - 1 :][: self.width]
        mark = f"{' ' * display_width(before)}{'^' * max(display_width(marked), 1)}"
        under = f"\n      | {mark}" if self.width else ""
        return f"{self.line:>5} | {self.text}{under}"


@dataclass(frozen=True, slots=True)
class Cause:
    """One step of the trace from a finding back to its cause."""

    message: str
    where: Location

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))

    def record(self) -> dict[str, Any]:
        """Return the step as plain data, for JSON."""
        return {"message": self.message, "line": self.where.line, "layer": self.where.layer}

    def __str__(self) -> str:
        return self.message if self.where.line is None else f"{self.message} (line {self.where.line})"


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One finding: a message, a location, a hint and the causes.

    >>> print(Diagnostic("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1")))
    a.xml:7: layer 'mm' (MatMul-1): error[IR301]: rank 3 expected
    >>> finding = Diagnostic("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1"))
    >>> finding.layer, finding.line, finding.record()["severity"]
    ('mm', 7, 'error')
    >>> print(finding.showing(Excerpt(7, "<layer/>")).text())
    a.xml:7: layer 'mm' (MatMul-1): error[IR301]: rank 3 expected
        7 | <layer/>
    """

    code: str
    message: str
    where: Location | None = None
    severity: Severity = Severity.ERROR
    hint: str = ""
    mark: Mark | None = None
    excerpt: Excerpt | None = None
    causes: tuple[Cause, ...] = ()
    kind: str = ""
    """The message for several folded findings, if ``message`` differs among them."""
    clause: str = ""
    """The clause of the operation that is violated, with its number if it has one."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))
        object.__setattr__(self, "hint", one_line(self.hint))
        object.__setattr__(self, "clause", one_line(self.clause))

    @property
    def layer(self) -> str | None:
        """The name of the layer, if the finding is about one."""
        return self.where.layer if self.where else None

    @property
    def line(self) -> int | None:
        """The line in the .xml, if it is known."""
        return self.where.line if self.where else None

    def record(self) -> dict[str, Any]:
        """Return the finding as plain data, for JSON."""
        where = self.where or Location()
        return {
            "code": self.code,
            "severity": str(self.severity),
            "message": self.message,
            "file": where.file or None,
            "line": where.line,
            "layer": where.layer,
            "operation": where.operation or None,
            "hint": self.hint or None,
            "clause": self.clause or None,
            "column": self.excerpt.skipped + self.excerpt.column
            if self.excerpt and self.excerpt.width
            else None,
            "excerpt": self.excerpt.text if self.excerpt else None,
            "causes": [cause.record() for cause in self.causes],
        }

    def showing(self, excerpt: Excerpt | None) -> Diagnostic:
        """Return the finding with another excerpt, or the finding itself if it has that excerpt already."""
        return self if excerpt is self.excerpt else replace(self, excerpt=excerpt)

    def text(self) -> str:
        """Return the finding as text, with its excerpt of the file."""
        first, *rest = str(self).split("\n")
        return "\n".join([first, *(str(self.excerpt).split("\n") if self.excerpt else []), *rest])

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where and str(self.where) else ""
        causes = "".join(f"\n  because {cause}" for cause in self.causes)
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        clause = f"\n  clause: {self.clause}" if self.clause else ""
        return f"{place}{self.severity}[{self.code}]: {self.message}{causes}{clause}{hint}"


# The least number of equal findings that are folded. Errors are never folded, as each has to be corrected.
_FOLDED_FROM = {Severity.WARNING: 4, Severity.NOTE: 2}


def fold(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    r"""Fold repeated warnings and notes: replace the first of each kind with a summary and drop the others.

    >>> repeated = [Diagnostic("IR109", "not used", Location("a.xml", n), Severity.WARNING) for n in range(5, 10)]
    >>> print(*fold([*repeated, Diagnostic("IR301", "rank 3 expected")]), sep="\n")
    a.xml: warning[IR109]: not used (5 times, the first in lines 5, 6, 7)
    error[IR301]: rank 3 expected
    """
    every, groups = list(findings), defaultdict[tuple[str, ...], list[Diagnostic]](list)
    for finding in every:
        file = finding.where.file if finding.where else ""
        groups[finding.severity, finding.code, file, finding.kind or finding.message].append(finding)
    shown: dict[int, Diagnostic | None] = {}
    for group in filter(_repeats, groups.values()):
        shown |= dict.fromkeys(map(id, group)) | {id(group[0]): _fold(group)}
    folded = (shown.get(id(finding), finding) for finding in every)
    return [finding for finding in folded if finding is not None]


def _repeats(group: Sequence[Diagnostic]) -> bool:
    limit = _FOLDED_FROM.get(group[0].severity)
    return limit is not None and len(group) >= limit


def _fold(group: Sequence[Diagnostic]) -> Diagnostic:
    first = group[0]
    lines = list(dict.fromkeys(str(finding.line) for finding in group if finding.line))[:_LINES]
    places = f", the first in line{'s' * (len(lines) > 1)} {', '.join(lines)}" if lines else ""
    message = f"{first.kind or first.message} ({len(group):,} times{places})"
    where = Location(first.where.file) if first.where else None
    return Diagnostic(first.code, message, where, first.severity, first.hint)


MOST = 1000
"""The default number of findings of a file that are kept."""
# The number of findings of each code that are always kept, so that errors after many warnings are shown.
_OF_EACH = 10


class More(NamedTuple):
    """The number of findings of a code and severity that were counted but not kept."""

    code: str
    severity: Severity
    times: int

    def record(self) -> dict[str, Any]:
        """Return the count as plain data, for JSON."""
        return {"code": self.code, "severity": str(self.severity), "count": self.times}

    @property
    def text(self) -> str:
        """The count in words."""
        return f"… and {self.times:,} more of the same"

    def __str__(self) -> str:
        return f"{self.severity}[{self.code}]: {self.text}"


class Diagnostics:
    """A collection of findings: passes report all problems of a model at once.

    >>> import ir_runtime as ov
    >>> report = ov.validate(b'<net name="n" version="99"><layers/><edges/></net>')
    >>> [str(finding.code) for finding in report.errors]
    ['IR003']

    Passes add findings; callers read them:

    >>> report = Diagnostics()
    >>> report.error("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1"))
    >>> report.warning("IR105", "unused input", Location("a.xml", 5, "in"))
    >>> report.note("IR001", "read as version 11")
    >>> report.add_consequence(Location("a.xml", 9, "out"))
    >>> report.arrange()
    >>> [finding.line for finding in report], report.ok, report.count(), sorted(report.wrong)
    ([None, 5, 7], False, 3, ['mm', 'out'])
    >>> len(report.warnings), len(report.notes), report.more
    (1, 1, ())
    >>> both = Diagnostics()
    >>> both.extend(report)
    >>> both.add(report.errors[0])
    >>> both.count_more("IR301", 10)
    >>> both.withdraw(lambda finding: finding.code == "IR105")
    >>> both.escalate()
    >>> both.summary
    '12 errors, 0 warnings'

    Args:
        most: the number of findings to keep; further ones are only counted. Of each code, the first few are
            always kept.
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
        clause: str = "",
    ) -> None:
        """Add an error: the model is invalid.

        Args:
            code: the kind of finding, such as ``IR301``.
            message: the description of the problem.
            where: file, line, layer and operation.
            hint: the suggested fix.
            mark: the element of the file to point at.
            causes: the layers that lead to it.
            clause: the clause of the operation that is violated.
        """
        if self._count(code, Severity.ERROR, where):
            self._kept.append(
                Diagnostic(code, message, where, Severity.ERROR, hint, mark, causes=causes, clause=clause)
            )

    def warning(
        self,
        code: str,
        message: str,
        where: Location | None = None,
        hint: str = "",
        mark: Mark | None = None,
        kind: str = "",
    ) -> None:
        """Add a warning; ``code``, ``message``, ``where``, ``hint`` and ``mark`` are as for `error`.

        ``kind`` is the message for several such warnings when folded, if their messages differ.
        """
        if self._count(code, Severity.WARNING, where):
            self._kept.append(Diagnostic(code, message, where, Severity.WARNING, hint, mark, kind=kind))

    def note(self, code: str, message: str, where: Location | None = None, hint: str = "") -> None:
        """Add a note; ``code``, ``message``, ``where`` and ``hint`` are as for `error`."""
        if self._count(code, Severity.NOTE, where):
            self._kept.append(Diagnostic(code, message, where, Severity.NOTE, hint))

    def add(self, found: Diagnostic) -> None:
        """Add a finding."""
        if self._count(found.code, found.severity, found.where):
            self._kept.append(found)

    def add_consequence(self, where: Location) -> None:
        """Mark a layer as invalid because of an existing finding about another layer."""
        self._wrong.add(where.layer)

    def extend(self, others: Iterable[Diagnostic] | Diagnostics, more: Iterable[More] = ()) -> None:
        """Add findings and counts of findings that were not kept.

        Args:
            others: the findings, or another report, whose counts are added too.
            more: the counts, if ``others`` is not a report.
        """
        for finding in others:
            self.add(finding)
        if isinstance(others, Diagnostics):
            more = others.more
            self._wrong |= others._wrong
        for code, severity, times in more:
            self.count_more(code, times, severity)

    def count_more(self, code: str, count: int, severity: Severity = Severity.ERROR) -> None:
        """Count findings without keeping them.

        Args:
            code: such as ``IR301``.
            count: the number of findings.
            severity: their severity.
        """
        if count > 0:
            self._counts[code, severity] += count

    def _count(self, code: str, severity: Severity, where: Location | None) -> bool:
        """Count a finding, and return whether to keep it."""
        is_kept = len(self._kept) < self.most or self._counts[code, severity] < _OF_EACH
        self._counts[code, severity] += 1
        if severity is Severity.ERROR:
            self._wrong.add(where.layer if where else None)
        return is_kept

    def withdraw(self, wrong: Callable[[Diagnostic], bool]) -> None:
        """Remove the findings for which ``wrong`` returns True."""
        for finding in filter(wrong, self._kept):
            self._counts[finding.code, finding.severity] -= 1
        self._kept = [finding for finding in self._kept if not wrong(finding)]

    def arrange(self, excerpt: Callable[[Diagnostic], Excerpt | None] | None = None) -> None:
        """Sort the findings by line, and add the excerpts that ``excerpt`` returns."""
        self._kept.sort(key=lambda finding: finding.line or 0)
        if excerpt is not None:
            self._kept = [finding.showing(excerpt(finding)) for finding in self._kept]

    def escalate(self) -> None:
        """Turn every warning into an error."""
        warnings = [code for code, severity in self._counts if severity is Severity.WARNING]
        for code in warnings:
            self._counts[code, Severity.ERROR] += self._counts.pop((code, Severity.WARNING))
        self._wrong |= {finding.layer for finding in self.warnings}
        self._kept = [
            replace(finding, severity=Severity.ERROR) if finding.severity is Severity.WARNING else finding
            for finding in self._kept
        ]

    @property
    def errors(self) -> list[Diagnostic]:
        """The errors."""
        return self._with_severity(Severity.ERROR)

    @property
    def warnings(self) -> list[Diagnostic]:
        """The warnings."""
        return self._with_severity(Severity.WARNING)

    @property
    def notes(self) -> list[Diagnostic]:
        """The notes."""
        return self._with_severity(Severity.NOTE)

    def _with_severity(self, severity: Severity) -> list[Diagnostic]:
        return [finding for finding in self._kept if finding.severity is severity]

    @property
    def ok(self) -> bool:
        """Whether no finding is an error."""
        return not self.count(Severity.ERROR)

    def count(self, severity: Severity | None = None, code: str | None = None) -> int:
        """Return the number of findings of a severity or a code, including those that are not kept.

        Args:
            severity: the severity to count; any by default.
            code: the code to count, such as ``IR301``; any by default.
        """
        return sum(
            count
            for (its_code, its_severity), count in self._counts.items()
            if severity in (None, its_severity) and code in (None, its_code)
        )

    @property
    def more(self) -> tuple[More, ...]:
        """The numbers of findings that were counted but not kept, by code and severity."""
        kept = Counter((finding.code, finding.severity) for finding in self._kept)
        left = ((*kind, total - kept[kind]) for kind, total in self._counts.items())
        return tuple(More(*count) for count in left if count[-1])

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
            (finding.severity, finding.code, str(finding.where or ""), finding.message, finding.hint)
            for finding in fold(self._kept)
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
        return "\n".join([*(finding.text() for finding in fold(self)), *map(str, self.more), self.summary])

    def __repr__(self) -> str:
        return f"<Diagnostics: {self.count(Severity.ERROR)} errors, {self.count(Severity.WARNING)} warnings>"
