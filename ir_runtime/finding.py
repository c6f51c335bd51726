"""One finding about a model: a message, a location and a hint."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from ._util.escaping import one_line, quoted, visible
from ._util.widths import display_width

__all__ = ["Cause", "Diagnostic", "Excerpt", "Location", "Mark", "Severity", "fold"]

# Characters of the name of a layer that are shown with a place.
_LONGEST_NAME = 200
# Columns before the text of an excerpt.
_MARGIN = 8
# How many lines a folded finding names.
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
    """A place in a model: the file, the line, and the layer with its operation.

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
    """The part of an element to mark: an attribute, a port by its id, or one of its dims; else all of it."""

    attribute: str = ""
    port: int | None = None
    output: bool = False
    dim: int | None = None


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A line of a file, truncated if it is long, with a mark under a part of it.

    Args:
        line: its number, from 1.
        text: what is shown of it.
        column: the character of ``text`` at which the mark begins, from 1.
        width: how many characters are marked.
        skipped: how many characters of the line come before ``text``.

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
        """Return the part of the line around the mark that fits a terminal of this width."""
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
    >>> found = Diagnostic("IR301", "rank 3 expected", Location("a.xml", 7, "mm", "MatMul-1"))
    >>> found.layer, found.line, found.record()["severity"]
    ('mm', 7, 'error')
    >>> print(found.showing(Excerpt(7, "<layer/>")).text())
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
    """The message for many such findings, where that of each names something else."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", one_line(self.message))
        object.__setattr__(self, "hint", one_line(self.hint))

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
            "column": self.excerpt.skipped + self.excerpt.column
            if self.excerpt and self.excerpt.width
            else None,
            "excerpt": self.excerpt.text if self.excerpt else None,
            "causes": [cause.record() for cause in self.causes],
        }

    def showing(self, excerpt: Excerpt | None) -> Diagnostic:
        """Return the finding with another location; itself if nothing changes, which saves memory."""
        return self if excerpt is self.excerpt else replace(self, excerpt=excerpt)

    def text(self) -> str:
        """Return the finding with the line of the file that it is about."""
        first, *rest = str(self).split("\n")
        return "\n".join([first, *(str(self.excerpt).split("\n") if self.excerpt else []), *rest])

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where and str(self.where) else ""
        causes = "".join(f"\n  because {cause}" for cause in self.causes)
        hint = f"\n  hint: {self.hint}" if self.hint else ""
        return f"{place}{self.severity}[{self.code}]: {self.message}{causes}{hint}"


# The number of equal findings from which they are folded; errors never are, as each has to be corrected.
_FOLDED_FROM = {Severity.WARNING: 4, Severity.NOTE: 2}


def fold(findings: Iterable[Diagnostic]) -> list[Diagnostic]:
    r"""Fold warnings and notes that repeat, each kind into one in the place of its first, for people to read.

    >>> repeated = [Diagnostic("IR109", "not used", Location("a.xml", n), Severity.WARNING) for n in range(5, 10)]
    >>> print(*fold([*repeated, Diagnostic("IR301", "rank 3 expected")]), sep="\n")
    a.xml: warning[IR109]: not used (5 times, the first in lines 5, 6, 7)
    error[IR301]: rank 3 expected
    """
    every, groups = list(findings), defaultdict[tuple[str, ...], list[Diagnostic]](list)
    for found in every:
        file = found.where.file if found.where else ""
        groups[found.severity, found.code, file, found.kind or found.message].append(found)
    shown: dict[int, Diagnostic | None] = {}
    for group in filter(_repeats, groups.values()):
        shown |= dict.fromkeys(map(id, group)) | {id(group[0]): _fold(group)}
    kept = (shown.get(id(found), found) for found in every)
    return [found for found in kept if found is not None]


def _repeats(group: Sequence[Diagnostic]) -> bool:
    limit = _FOLDED_FROM.get(group[0].severity)
    return limit is not None and len(group) >= limit


def _fold(group: Sequence[Diagnostic]) -> Diagnostic:
    first = group[0]
    lines = list(dict.fromkeys(str(found.line) for found in group if found.line))[:_LINES]
    places = f", the first in line{'s' * (len(lines) > 1)} {', '.join(lines)}" if lines else ""
    message = f"{first.kind or first.message} ({len(group):,} times{places})"
    where = Location(first.where.file) if first.where else None
    return Diagnostic(first.code, message, where, first.severity, first.hint)
