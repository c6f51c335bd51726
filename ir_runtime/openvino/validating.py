"""`validate`, which checks a model without running it, and the excerpts of files in its findings."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import accumulate
from typing import TYPE_CHECKING

from .._util.forks import cached_property
from .._util.nearest import limit_lookups
from .._util.scoped import no_collection
from ..analysis.validate import validate as find_defects
from ..diagnostics import Diagnostic, Diagnostics, Excerpt, Mark, More, Severity
from ..errors import InputError, IRError, ValidationError
from ..io.reader.document import Document, parse
from ..io.reader.layers import FORMER_IR, may_be_unneeded
from ..io.reader.model import load, read_net
from ..io.reader.source import Source, SourceLike, WeightsLike, open_source
from ..limits import DEFAULT, Limits, within
from .model import Model, PortShapes
from .shapes import ShapeLike

if TYPE_CHECKING:
    from ..releases.release import Release

__all__ = ["Excerpts", "downgrade", "read_needed", "validate"]


def validate(
    model: SourceLike | Model,
    weights: WeightsLike | None = None,
    *,
    shapes: ShapeLike | PortShapes | None = None,
    limits: Limits = DEFAULT,
    for_release: str | None = None,
) -> Diagnostics:
    """Find the errors and probable mistakes in a model, without running it.

    >>> import ir_runtime as ov
    >>> found = ov.validate(b'<net name="n" version="99"><layers/><edges/></net>')
    >>> [str(finding.code) for finding in found.errors]
    ['IR003']

    Args:
        model: a path, bytes, an open file, or a model. On a page of the specification, all
            examples are validated.
        weights: as for `read_model`.
        shapes: other shapes for the inputs, as for `Model.reshape`.
        limits: resource limits of reading the file.
        for_release: a release of OpenVINO, such as ``"2024.6"``. Features that it cannot read are errors,
            too.

    Returns:
        The findings, in file order, each with ``code``, ``severity``,
        ``message``, ``layer``, ``line``, ``excerpt``, ``causes`` and ``hint``. Their ``ok`` tells
        whether the model is valid.

    Raises:
        InputError: if shapes are given for a page, or for an input that does not exist, or the release is
            unknown.
    """
    release = None if for_release is None else _release(for_release)
    with within(limits), limit_lookups(), no_collection():
        return _find_all(model, weights, shapes, limits, release)


def _release(name: str) -> Release:
    from ..releases.release import Release

    return Release.of(name)


def _find_all(
    model: SourceLike | Model,
    weights: WeightsLike | None,
    shapes: ShapeLike | PortShapes | None,
    limits: Limits,
    release: Release | None,
) -> Diagnostics:

    report = Diagnostics(limits.findings)
    if isinstance(model, Model):
        report.extend(model.report)
        _examine(model, report, shapes, release)
        report.arrange()
        return report
    excerpt = None
    try:
        source = open_source(model, limits)
        excerpt = Excerpts(source.data).of
        for document in load(source, weights, report, limits):
            _examine(Model._read(document, report), report, shapes, release)
            report = report if report.ok else _settle(document, source, report, shapes, release)
    except InputError:
        raise
    except IRError as problem:
        report.extend(
            getattr(problem, "diagnostics", ()) or (problem.diagnostic,), getattr(problem, "more", ())
        )
    report.arrange(excerpt)
    return report


def _settle(
    document: Document,
    source: Source,
    report: Diagnostics,
    shapes: ShapeLike | PortShapes | None,
    release: Release | None,
) -> Diagnostics:
    """Return the findings about a model, with errors turned into warnings if it is valid without the layers that no output needs."""
    needed = Diagnostics(report.most)
    other = read_needed(document, source, report, needed)
    if other is None:
        return report
    _examine(Model._read(other, needed), needed, shapes, release)
    if needed.ok:
        downgrade(report, needed)
    return needed if needed.ok else report


def _examine(
    model: Model, report: Diagnostics, shapes: ShapeLike | PortShapes | None, release: Release | None
) -> None:
    """Add the findings of `find_defects`, of a reshape to ``shapes``, and of features that ``release`` lacks."""
    graph, document = model._graph, model._document
    find_defects(
        graph,
        report,
        model._values,
        parameters=model._parameter_types,
        weights=None if document.weights.data is None else (document.weights.name, len(document.weights)),
        is_page=document.is_page,
    )
    if shapes is not None and report.ok:
        try:
            model.clone().reshape(shapes)
        except ValidationError as problem:
            report.extend(problem.diagnostics, problem.more)
    if release is not None:
        from ..releases.needs import check_release, needs_of_file

        check_release(release, needs_of_file(document, graph, model._values), report)


_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)>")
_ASIDE = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_ID = re.compile(r"\sid\s*=\s*[\"']\s*(\d+)\s*[\"']")

# The number of characters shown of a line, and the most to search between its start and the mark.
_SHOWN = 100
_NEAR = 1 << 16
# The most findings with an excerpt, and the most characters to search for their marks: a file may cause many findings,
# all of them in the same line.
_LOOKED_FOR = 1000
_LOOKED_AT = 1 << 21
# The size in bytes of the blocks in which line breaks are counted.
_BLOCK = 1 << 12


class Excerpts:
    """Extracts lines from a file for findings."""

    def __init__(self, data: bytes) -> None:
        self._data, self._left, self._budget = data, _LOOKED_FOR, _LOOKED_AT

    def of(self, finding: Diagnostic) -> Excerpt | None:
        """Return the excerpt that a finding refers to, or None."""
        self._left -= 1
        if self._left < 0 or not finding.line or (start := self._start(finding.line)) is None:
            return None
        near = self._data[start : start + _NEAR].decode("utf-8", errors="replace")
        text = _Text(near, self._budget)
        excerpt = text.excerpt(finding.line, finding.mark)
        self._budget = text.budget
        return excerpt

    @cached_property
    def _lines(self) -> list[int]:
        """The cumulative number of line breaks at the end of each block."""
        starts = range(0, len(self._data), _BLOCK)
        return list(accumulate(self._data.count(b"\n", start, start + _BLOCK) for start in starts))

    def _start(self, line: int) -> int | None:
        """Return the offset in bytes at which a line starts, or None if the file has fewer lines."""
        before = line - 1
        block = bisect_left(self._lines, before)
        if block == len(self._lines):
            return None
        place = block * _BLOCK
        for _ in range(before - (self._lines[block - 1] if block else 0)):
            place = self._data.index(b"\n", place) + 1
        return place


class _Text:
    """The text of a file, from the start of a line.

    Args:
        text: the line, and as much of the text after it as may be searched.
        budget: the number of characters that may be searched for marks.
    """

    def __init__(self, text: str, budget: int) -> None:
        self._text, self.budget = text, budget

    def excerpt(self, line: int, mark: Mark | None) -> Excerpt:
        """Return the line in which the mark starts, or ``line`` without one, truncated around the mark if long."""
        start, end = (self._span(mark) if mark else None) or (0, 0)
        first = self._text.rfind("\n", 0, start) + 1
        line += self._text.count("\n", 0, start)
        last = self._text.find("\n", start)
        last = len(self._text) if last < 0 else last
        end, begin = min(end, last), first
        if last - first > _SHOWN:
            indent = len(self._text[first:start]) - len(self._text[first:start].lstrip())
            begin = max(first + indent, start - _SHOWN // 4)
        shown = _printable(self._text[begin : min(last, begin + _SHOWN)].rstrip())
        width = min(end, begin + len(shown)) - start
        return Excerpt(line, shown, start - begin + 1, max(width, 0), begin - first)

    def _span(self, mark: Mark) -> tuple[int, int] | None:
        """Return the span of the marked attribute, port or dim in the first element of the text."""
        port = list(self._port(mark)) if mark.port is not None else []
        if mark.attribute:
            return self._attribute(port or self._inside(), mark.attribute)
        if not port or mark.dim is None:
            return port[0].span() if port else None
        dims = [tag for tag in port if tag.group(2) == "dim" and not tag.group(1)]
        if mark.dim >= len(dims):
            return port[0].span()
        return dims[mark.dim].end(), max(self._text.find("<", dims[mark.dim].end()), dims[mark.dim].end() + 1)

    def _port(self, mark: Mark) -> Iterator[re.Match[str]]:
        """Yield the tags of the marked port, which is the first element of the text or inside it."""
        side, declared_side = "", "output" if mark.output else "input"
        inside = False
        for tag in self._inside():
            name = tag.group(2)
            if name in ("input", "output"):
                side = name
            if name == "port" and inside:
                return
            if name == "port" and not tag.group(1) and side in ("", declared_side):
                number = _ID.search(tag.group(3))
                inside = number is not None and number.group(1) == str(mark.port)
            if inside:
                yield tag

    def _attribute(self, tags: Iterable[re.Match[str]], name: str) -> tuple[int, int] | None:
        pattern = re.compile(rf"\s({re.escape(name)}\s*=\s*(?:\"[^\"]*\"|'[^']*'))")
        for tag in tags:
            if tag.group(2) in ("layer", "data", "port", "edge") and (match := pattern.search(tag.group(3))):
                return tag.start(3) + match.start(1), tag.start(3) + match.end(1)
        return None

    def _inside(self) -> Iterator[re.Match[str]]:
        """Yield the tags of the first element of the text."""
        depth = 0
        for tag in self._tags():
            yield tag
            closing, alone = bool(tag.group(1)), tag.group(3).endswith("/")
            depth += -1 if closing else 0 if alone else 1
            if depth <= 0:
                return

    def _tags(self) -> Iterator[re.Match[str]]:
        """Yield consecutive tags, skipping comments, up to malformed text or the end of the budget."""
        place = self._text.find("<")
        while place >= 0 and self.budget > 0:
            if (tag := _TAG.match(self._text, place)) is not None:
                yield tag
            match = tag or _ASIDE.match(self._text, place)
            after = -1 if match is None else self._text.find("<", match.end())
            self.budget -= (len(self._text) if after < 0 else after) - place
            place = after


def _printable(text: str) -> str:
    """Replace each unprintable character with a space, so that marks stay aligned."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


_UNNEEDED = "no output needs this layer, so it is left out"


def read_needed(
    document: Document, source: Source, every: Diagnostics, report: Diagnostics
) -> Document | None:
    """Read a file again without the layers that no output needs; return None if that cannot remove all errors.

    Args:
        document: the document as first read.
        source: the file.
        every: the findings about the document.
        report: receives the findings of the second reading.
    """
    if document.is_page or document.version < FORMER_IR:
        return None
    if not may_be_unneeded(document.graph, every.errors):
        return None
    root = parse(source.data, source.name, limits=document.limits)
    return read_net(root, source, document.weights, report, document.limits, needed_only=True)


def downgrade(every: Diagnostics, needed: Diagnostics) -> None:
    """Add the findings about all layers to those about the needed layers, with errors turned into warnings.

    Args:
        every: the findings about all layers.
        needed: the findings about the needed layers, to which the others are added.
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
    """Yield the counts in ``every`` minus those in ``needed``, by code and severity."""
    counted = {(more.code, more.severity): more.times for more in needed}
    for code, severity, times in every:
        yield More(code, severity, times - counted.get((code, severity), 0))
