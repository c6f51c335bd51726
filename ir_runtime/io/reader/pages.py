"""Find the ``<layer>`` elements in a page of text, in the style of the specification."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from ...codes import Code
from ...diagnostics import Location
from ...errors import ParseError

__all__ = ["Excerpt", "excerpts", "value_in"]

# An unclosed comment reaches to the end of the page. Searching for its end from each of many
# starts would take time that grows with the square of the page.
_COMMENT = r"<!--.*?(?:-->|\Z)"
_LAYER = re.compile(rf"{_COMMENT}|<layer\b[^<>]*?(?P<alone>/)?>|(?P<end></layer\s*>)", re.DOTALL)
_MARKUP = re.compile(rf"{_COMMENT}|<[^<>]*>", re.DOTALL)
_BETWEEN = re.compile(r"(?:\s|<!--(?:(?!-->).)*-->|</?layers\b[^<>]*>)*+", re.DOTALL)
_EDGES = re.compile(
    r"\s*(?:</layers\s*>)?\s*(<edges\b[^<>]*>(?:\s|</?edge\b[^<>]*>|<!--(?:(?!-->).)*-->)*+</edges\s*>)",
    re.DOTALL,
)
# Quotes and blanks as word processors make them.
_DOUBLE, _SINGLES, _BLANKS = "\u201c\u201d\u201e", "\u2018\u2019", "\u00a0\u3000"
_MARKS = f"\"'{_DOUBLE}{_SINGLES}"
_ID = re.compile(rf"<layer\b[^<>]*?\sid\s*=\s*[{_MARKS}]\s*([^{_MARKS}\s]*)")
_NUMBER = r"[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?"
_LIST = re.compile(rf"\[\s*+((?>{_NUMBER})(?:\s*+,\s*+(?>{_NUMBER}))*+)?+\s*+,?\s*+\]")
_SINGLE = re.compile(rf"(?:=|:|\bis|は)\s*({_NUMBER})(?![0-9A-Za-z.\-])")
_PLAIN = {ord(c): p for cs, p in ((_DOUBLE, '"'), (_SINGLES, "'"), (_BLANKS, " ")) for c in cs}
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """An example on a page: its well-formed layers and edges, and their first line."""

    text: str
    line: int

    @property
    def xml(self) -> bytes:
        """A parsable document with the line numbers of the page."""
        above = "\n" * (self.line - 1)
        return f"<net>{above}{self.text}</net>".encode(errors="replace")


def excerpts(text: str, name: str) -> Iterator[Excerpt]:
    """Yield the examples on a page, in order.

    Consecutive layers with distinct ids belong together; text between them or a repeated id starts the next
    example. ``<edges>`` directly after the layers belong to them.

    Raises:
        ParseError: if a layer is not closed.
    """
    text = _CONTROL.sub(" ", text)
    group: list[tuple[int, int]] = []
    seen: set[str] = set()
    for start, end in _layers(text, name):
        number = _id(text, start)
        if group and (number in seen or not _BETWEEN.fullmatch(text, group[-1][1], start)):
            yield _excerpt(text, group)
            group, seen = [], set()
        group.append((start, end))
        seen |= {number} if number else set()
    if group:
        yield _excerpt(text, group)


def value_in(comment: str) -> list[float] | float | None:
    """Return the value in a comment: a bracketed list, or a number after ``=``, ``:`` or ``is``.

    >>> value_in(" value is [2, 3] that means independent reduction ")
    [2.0, 3.0]
    >>> value_in("axes list [1] means"), value_in(" axis = -1 "), value_in("any text")
    ([1.0], -1.0, None)
    """
    if match := _LIST.search(comment):
        return [float(n) for n in (match.group(1) or "").split(",") if n.strip()]
    single = _SINGLE.search(comment)
    return float(single.group(1)) if single else None


def _layers(text: str, name: str) -> Iterator[tuple[int, int]]:
    depth, start = 0, 0
    for tag in _LAYER.finditer(text):
        if tag.group().startswith("<!--"):
            continue
        if tag.group("end"):
            depth -= 1
        else:
            start = start if depth else tag.start()
            depth += 0 if tag.group("alone") else 1
        if depth == 0:
            yield start, tag.end()
        depth = max(depth, 0)
    if depth:
        raise ParseError(
            "a <layer> element is not closed",
            code=Code.BAD_XML,
            where=Location(name, _line(text, start)),
            hint="</layer> is missing; the text may be cut off",
        )


def _id(text: str, start: int) -> str:
    """Return the id of a layer, or an empty string; ``01`` and ``1`` are equal."""
    match = _ID.match(text, start)
    return (match.group(1).lstrip("0") or "0") if match and match.group(1) else ""


def _excerpt(text: str, group: list[tuple[int, int]]) -> Excerpt:
    start, end = group[0][0], group[-1][1]
    edges = _EDGES.match(text, end)
    layers = _MARKUP.sub(_clean, text[start:end])
    tail = _MARKUP.sub(_clean, edges.group(1)) if edges else ""
    between = text.count("\n", end, edges.start(1)) * "\n" if edges else ""
    return Excerpt(f"<layers>{layers}</layers>{between}{tail}", _line(text, start))


def _clean(markup: re.Match[str]) -> str:
    """Make markup well-formed: no literal dots, straight quotes, no dashes inside comments."""
    text = markup.group()
    if text.startswith("<!--"):
        inside = re.sub(r"--+", " ", text[4:].removesuffix("-->"))
        return f"<!--{inside} -->"
    parts = re.split(r"""("[^"]*"|'[^']*')""", text.translate(_PLAIN))
    parts[::2] = [re.sub(r"\.\.\.|…", " ", outside) for outside in parts[::2]]
    return "".join(parts)


def _line(text: str, position: int) -> int:
    return text.count("\n", 0, position) + 1
