"""Find the line of a file that a finding refers to, and the part to mark."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate

from ..._util.cached import cached_property
from ...diagnostics import Diagnostic, Excerpt, Mark

__all__ = ["Excerpts"]

_TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*+)>")
_ASIDE = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>", re.DOTALL)
_ID = re.compile(r"\sid\s*=\s*[\"']\s*(\d+)\s*[\"']")

# Characters shown of a line, and the most between its start and the mark.
_SHOWN = 100
_NEAR = 1 << 16
# The most findings with an excerpt, and the most characters searched for their marks: a file may cause many findings,
# all of them in one line.
_LOOKED_FOR = 1000
_LOOKED_AT = 1 << 21
# The size of the blocks of bytes in which lines are counted.
_BLOCK = 1 << 12


class Excerpts:
    """Finds lines in a file; see `of`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._left, self._budget = data, _LOOKED_FOR, _LOOKED_AT

    def of(self, finding: Diagnostic) -> Excerpt | None:
        """Return the line that a finding refers to, if any."""
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
        """The number of line breaks up to the end of each block."""
        starts = range(0, len(self._data), _BLOCK)
        return list(accumulate(self._data.count(b"\n", start, start + _BLOCK) for start in starts))

    def _start(self, line: int) -> int | None:
        """Return the offset of a line."""
        before = line - 1
        block = bisect_left(self._lines, before)
        if block == len(self._lines):
            return None
        place = block * _BLOCK
        for _ in range(before - (self._lines[block - 1] if block else 0)):
            place = self._data.index(b"\n", place) + 1
        return place


class _Text:
    """The text of a file from one line on.

    Args:
        text: the line, and as much of the following text as may be searched.
        budget: how many characters may be searched for marks.
    """

    def __init__(self, text: str, budget: int) -> None:
        self._text, self.budget = text, budget

    def excerpt(self, line: int, mark: Mark | None) -> Excerpt:
        """Return the line in which the mark starts, truncated around the mark if it is long."""
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
        """Return the span of the attribute, port or dim in the element that starts in the line."""
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
        """Return the tags of a port, which may be the element in the line or inside it."""
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
        """Return the tags of the element that starts in the line."""
        depth = 0
        for tag in self._tags():
            yield tag
            closing, alone = bool(tag.group(1)), tag.group(3).endswith("/")
            depth += -1 if closing else 0 if alone else 1
            if depth <= 0:
                return

    def _tags(self) -> Iterator[re.Match[str]]:
        """Yield consecutive tags, up to the first text that is not a tag."""
        place = self._text.find("<")
        while place >= 0 and self.budget > 0:
            if (tag := _TAG.match(self._text, place)) is not None:
                yield tag
            match = tag or _ASIDE.match(self._text, place)
            after = -1 if match is None else self._text.find("<", match.end())
            self.budget -= (len(self._text) if after < 0 else after) - place
            place = after


def _printable(text: str) -> str:
    """Replace each unprintable character by a space, so that marks stay aligned."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
