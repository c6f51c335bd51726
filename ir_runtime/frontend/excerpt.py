"""The line of a file that a finding is about, with the part that is meant."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from functools import cached_property

from ..diagnostics import Diagnostic, Excerpt, Mark

__all__ = ["Excerpts"]

_TAG = re.compile(r"<!--.*?-->|<(/?)([A-Za-z_][\w.-]*)((?:[^<>\"']|\"[^\"]*\"|'[^']*')*)>", re.DOTALL)
_ID = re.compile(r"\sid\s*=\s*[\"']\s*(\d+)\s*[\"']")
_CLEAN = re.compile(r"[^\S ]|[\x00-\x1f\x7f]")

# How much of a line is shown, how far what is meant may lie from where its element starts, and for how
# many findings it is looked for: a file may have as many as it likes.
_SHOWN = 100
_NEAR = 1 << 16
_LOOKED_FOR = 1000


class Excerpts:
    """Finds lines in a file; see `of`."""

    def __init__(self, data: bytes) -> None:
        self._data, self._left = data, _LOOKED_FOR

    @cached_property
    def _text(self) -> str:
        return self._data.decode("utf-8", errors="replace")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *(found.end() for found in re.finditer("\n", self._text))]

    def of(self, found: Diagnostic) -> Excerpt | None:
        """The line that a finding is about, if it has one."""
        self._left -= 1
        if self._left < 0 or not found.line or found.line > len(self._starts):
            return None
        start = self._starts[found.line - 1]
        place = self._marked(start, found.mark) if found.mark else None
        return self._excerpt(*(place or (start, start)))

    def _marked(self, start: int, mark: Mark) -> tuple[int, int] | None:
        """Where the attribute, port or dim lies, in the element that starts in the line."""
        port = list(self._port(start, mark)) if mark.port is not None else []
        if mark.attribute:
            return self._attribute(port or self._inside(start), mark.attribute)
        if not port or mark.dim is None:
            return port[0].span() if port else None
        dims = [tag for tag in port if tag.group(2) == "dim" and not tag.group(1)]
        if mark.dim >= len(dims):
            return port[0].span()
        return dims[mark.dim].end(), max(self._text.find("<", dims[mark.dim].end()), dims[mark.dim].end() + 1)

    def _port(self, start: int, mark: Mark) -> Iterator[re.Match[str]]:
        """The tags of a port, which may be the element in the line or inside it."""
        side, wanted = "", "output" if mark.output else "input"
        inside = False
        for tag in self._inside(start):
            name = tag.group(2)
            if name in ("input", "output"):
                side = name
            if name == "port" and inside:
                return
            if name == "port" and not tag.group(1) and side in ("", wanted):
                number = _ID.search(tag.group(3))
                inside = number is not None and number.group(1) == str(mark.port)
            if inside:
                yield tag

    def _attribute(self, tags: Iterable[re.Match[str]], name: str) -> tuple[int, int] | None:
        pattern = re.compile(rf"\s({re.escape(name)}\s*=\s*(?:\"[^\"]*\"|'[^']*'))")
        for tag in tags:
            if tag.group(2) in ("layer", "data", "port", "edge") and (found := pattern.search(tag.group(3))):
                return tag.start(3) + found.start(1), tag.start(3) + found.end(1)
        return None

    def _inside(self, start: int) -> Iterator[re.Match[str]]:
        """The tags of the element that starts in a line, comments apart."""
        depth = 0
        for tag in _TAG.finditer(self._text, start, min(start + _NEAR, len(self._text))):
            if not tag.group(2):
                continue
            yield tag
            closing, alone = bool(tag.group(1)), tag.group(3).endswith("/")
            depth += -1 if closing else 0 if alone else 1
            if depth <= 0:
                return

    def _end(self, start: int) -> int:
        end = self._text.find("\n", start)
        return len(self._text) if end < 0 else end

    def _excerpt(self, start: int, end: int) -> Excerpt:
        """The line in which the mark starts, or what is around the mark where the line is long."""
        line = bisect_right(self._starts, start)
        first, last = self._starts[line - 1], self._end(start)
        end = min(end, last)
        if last - first > _SHOWN:
            indent = len(self._text[first:start]) - len(self._text[first:start].lstrip())
            first = max(first + indent, start - _SHOWN // 4)
        text = _CLEAN.sub(" ", self._text[first : min(last, first + _SHOWN)].rstrip())
        width = min(end, first + len(text)) - start
        return Excerpt(line, text, start - first + 1, max(width, 0), first - self._starts[line - 1])
