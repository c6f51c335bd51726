"""Generation of HTML and SVG, with the names of a model escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .escaping import cut, markup_text

__all__ = ["Shown", "element", "record_html", "table"]


_SEPARATORS = re.compile(r"[_/]|[.:×](?=[^\W\d])")


def element(tag: str, *inside: str, text: str | None = None, **attributes: object) -> str:
    """Return an element; ``inside`` is markup, while ``text`` and attribute values are escaped.

    Underscores in attribute names become hyphens; a trailing one is dropped.

    >>> element("a", text="<b>", class_="x", data_id=1)
    '<a class="x" data-id="1">&lt;b&gt;</a>'
    """
    attributes_text = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{markup_text(str(value))}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = "".join(inside) + ("" if text is None else markup_text(text))
    return f"<{tag}{attributes_text}>{content}</{tag}>"


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], most: int = 200) -> str:
    """Return an HTML table of the first ``most`` rows; further rows are only counted."""
    cells = [[str(cell) for cell in row] for row in rows]
    head = element("tr", *(element("th", text=name, scope="col") for name in header))
    body = [element("tr", *(element("td", _breakable(cell)) for cell in row)) for row in cells[:most]]
    if len(cells) > most:
        rest = element("td", text=f"… and {len(cells) - most:,} more", colspan=len(header))
        body.append(element("tr", rest))
    return element("table", element("caption", text=caption), element("thead", head), element("tbody", *body))


def _breakable(text: str) -> str:
    """Return escaped text in which lines may break after separators in names and shapes."""
    return _SEPARATORS.sub(r"\g<0><wbr>", markup_text(cut(text)))


def record_html(text: str, record: Mapping[str, Any]) -> str:
    """Return a report as HTML: its text, and the lists of its record as tables."""
    parts = [element("pre", "\n".join(map(markup_text, text.split("\n"))))] if text else []
    for name, rows in record.items():
        if isinstance(rows, list) and rows and all(isinstance(row, Mapping) for row in rows):
            header = list(rows[0])
            parts.append(table(name, header, ([_cell(row.get(key)) for key in header] for row in rows)))
    return element("div", *parts)


def _cell(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_cell(inner)}" for key, inner in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(map(_cell, value))
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


class Shown:
    """Base of reports that notebooks show as text, and with the lists of their ``record`` as tables."""

    __slots__ = ()

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return record_html(str(self) if type(self).__str__ is not object.__str__ else "", self.record())
