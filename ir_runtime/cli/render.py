"""Text for people, JSON for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from .._util.escaping import json_text, shown, visible
from .._util.records import Json, encodable
from .._util.text import display_width
from .terminal import columns, is_on_one_screen, show

if TYPE_CHECKING:
    from ..diagnostics import Diagnostic, More
    from ..ir.shape import PartialShape

__all__ = [
    "Record",
    "concluded",
    "dump",
    "failure",
    "finding",
    "number",
    "plain",
    "plural",
    "rest",
    "result",
    "shape_record",
    "table",
]

Record: TypeAlias = dict[str, Any]
"""A JSON object."""

SCHEMA = 1
"""The version of ``--json`` output, increased when something is renamed or removed."""
SHOWN = 30
"""The rows that a terminal shows of a table that may be cut."""

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}


def dump(data: Json, *, whole: bool = False) -> str:
    """Format JSON in ASCII, which any encoding can represent; see `json_text` for ``whole``.

    Numbers that JSON lacks are the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
    """
    return json_text(encodable(data), whole=whole, indent=2)


def result(
    as_json: bool, record: Callable[[], Record], text: Callable[[], str], *, pager: bool = False
) -> None:
    """Print the result of a command as JSON or text; long text may be paged.

    JSON has the version of its schema; `ir-runtime explain json` prints schemas.
    """
    if as_json:
        click.echo(dump({"schema": SCHEMA, **record()}))
    else:
        show(text(), pager=pager)


def concluded(conclusion: Sequence[str], details: Sequence[str]) -> str:
    """Join the parts of a text; on a terminal that would scroll the conclusion away, details come first."""
    first_to_last = "\n\n".join([*conclusion, *details])
    if not conclusion or is_on_one_screen(first_to_last):
        return first_to_last
    return "\n\n".join([*details, *conclusion])


def table(
    title: str,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    right: Sequence[str] = (),
    *,
    sentences: Sequence[str] = (),
    least: Sequence[str] = (),
    rest: str = "",
) -> str:
    """Format a table; on a terminal it fits the width, and is truncated if ``rest`` describes how to see all.

    Columns that a narrow terminal has no room for are named below the table.

    Args:
        title: the line above it.
        header: the names of the columns.
        rows: the cells.
        right: the names of columns of numbers, which are aligned to the right.
        sentences: the names of columns whose cells may be broken between words; others lose their middle.
        least: the names of columns that may be dropped where there is no room, the least important first.
        rest: how to see rows that are cut; by default, all are shown.
    """
    cells = [[shown(cell) for cell in row] for row in rows]
    width = columns()
    hidden = len(cells) - SHOWN if rest and width is not None and len(cells) > SHOWN + 1 else 0
    cells = cells[: len(cells) - hidden]
    dropped: Sequence[str] = ()
    if width is None:
        heading, lines = _align(header, cells, right)
    else:
        from .fitting import fitted

        heading, lines, dropped = fitted(header, cells, right, sentences, width, least)
    if heading:
        lines.insert(0, click.style(heading, dim=True))
    more = [f"  … and {hidden:,} more; {rest}"] if hidden else []
    if dropped:
        more.append(f"  no room for {', '.join(dropped)}; a pipe gets all")
    return "\n".join([click.style(title, bold=True), *lines, *more])


def _align(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the header and the rows with columns as wide as they need."""
    widths = [max(map(display_width, column)) for column in zip(header, *rows, strict=True)]
    aligned = [name in right for name in header]
    heading, *lines = (_line(row, widths, aligned) for row in (header, *rows))
    return heading, lines


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [
        " " * (width - display_width(cell)) + cell if to_right else cell + " " * (width - display_width(cell))
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  " + "  ".join(padded).rstrip()


def failure(message: str) -> str:
    """Format a message, with the words error and warning in colour."""
    return "\n".join(_color(visible(line.rstrip())) for line in message.splitlines())


def finding(diagnostic: Diagnostic) -> str:
    """Format a finding: location, severity, code, message; below it the line, causes and the hint."""
    width = columns()
    if width is not None and diagnostic.excerpt is not None:
        diagnostic = diagnostic.showing(diagnostic.excerpt.within(width))
    return failure(diagnostic.text())


def rest(file: str, more: More) -> str:
    """Format the numbers of findings that were not kept."""
    return _color(visible(f"{file}: {more}"))


def _color(line: str) -> str:
    for word, colour in _COLOURS.items():
        for opening in (f"{word}[", f"{word}: "):
            before, colored, after = line.partition(opening)
            if colored and (not before or before.endswith(": ")):
                return before + click.style(word, fg=colour, bold=True) + opening[len(word) :] + after
    return line


def number(value: float | int | None) -> str:
    """Format a number for a table; a dash for ``None``."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) else f"{value:.6g}"


def plain(count: int) -> str:
    """Format a count with thousands separators."""
    return f"{count:,}"


def plural(count: int, noun: str) -> str:
    """``1 error``, ``2 errors``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def shape_record(shape: PartialShape) -> list[int | str] | None:
    """Return a shape for JSON: numbers, text such as ``"1..8"`` or ``"?"`` where a length is open, or null."""
    if shape.rank is None:
        return None
    return [dim.min if dim.is_static else str(dim) for dim in shape]
