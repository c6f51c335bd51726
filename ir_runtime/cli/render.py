"""Format results as text, with tables that fit the terminal, or as JSON."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import click

from .._util.escaping import json_text, shown, visible
from .._util.records import Json, encodable
from .._util.text import display_width, shorten
from .terminal import columns, is_on_one_screen, show

if TYPE_CHECKING:
    from ..diagnostics import Diagnostic, More
    from ..ir.shape import PartialShape

__all__ = [
    "Record",
    "join_conclusion",
    "dump",
    "failure",
    "finding",
    "fit_table",
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

    NaN and infinities become the strings ``"NaN"``, ``"Infinity"`` and ``"-Infinity"``.
    """
    return json_text(encodable(data), whole=whole, indent=2)


def result(
    as_json: bool, record: Callable[[], Record], text: Callable[[], str], *, pager: bool = False
) -> None:
    """Print the result of a command as JSON or text; long text may be paged.

    JSON includes the version of its schema; ``ir-runtime explain json`` prints the schemas.
    """
    if as_json:
        click.echo(dump({"schema": SCHEMA, **record()}))
    else:
        show(text(), pager=pager)


def join_conclusion(conclusion: Sequence[str], details: Sequence[str]) -> str:
    """Join conclusion and details; if the text exceeds the terminal, the conclusion comes last so that it stays visible."""
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
    """Format a table; on a terminal, fit it to the width, and truncate it if ``rest`` says how to see all rows.

    Columns dropped on a narrow terminal are named below the table.

    Args:
        title: the line above the table.
        header: the names of the columns.
        rows: the cells.
        right: the names of numeric columns, which are right-aligned.
        sentences: the names of columns whose cells may wrap between words; other cells are elided in the middle.
        least: the names of columns to drop if there is no room, least important first.
        rest: how to see the truncated rows; by default, all rows are shown.
    """
    cells = [[shown(cell) for cell in row] for row in rows]
    width = columns()
    hidden = len(cells) - SHOWN if rest and width is not None and len(cells) > SHOWN + 1 else 0
    cells = cells[: len(cells) - hidden]
    dropped: Sequence[str] = ()
    if width is None:
        heading, lines = _align(header, cells, right)
    else:
        heading, lines, dropped = fit_table(header, cells, right, sentences, width, least)
    if heading:
        lines.insert(0, click.style(heading, dim=True))
    more = [f"  … and {hidden:,} more; {rest}"] if hidden else []
    if dropped:
        more.append(f"  no room for {', '.join(dropped)}; a pipe gets all")
    return "\n".join([click.style(title, bold=True), *lines, *more])


def _align(
    header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the header and the rows with cells padded to the widest of their column."""
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
    """Format a message, with the words error and warning in color."""
    return "\n".join(_color(visible(line.rstrip())) for line in message.splitlines())


def finding(diagnostic: Diagnostic) -> str:
    """Format a finding: location, severity, code and message, followed by the source line, causes and the hint."""
    width = columns()
    if width is not None and diagnostic.excerpt is not None:
        diagnostic = diagnostic.showing(diagnostic.excerpt.within(width))
    return failure(diagnostic.text())


def rest(file: str, more: More) -> str:
    """Format the number of findings of a kind that were counted but not kept."""
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
    """Format a count with its noun: ``1 error``, ``2 errors``."""
    return f"{count} {noun}" + ("" if count == 1 else "s")


def shape_record(shape: PartialShape) -> list[int | str] | None:
    """Return a shape for JSON: integers, strings such as ``"1..8"`` or ``"?"`` for dynamic dimensions; ``None`` for a dynamic rank."""
    if shape.rank is None:
        return None
    return [dim.min if dim.is_static else str(dim) for dim in shape]


# The number of spaces before each column of a table.
_GAP = 2


class _Floors(NamedTuple):
    """The minimum widths of columns of names and of sentences, in characters."""

    name: int
    sentence: int


# Words of a sentence up to this length are not broken.
_WORD = 28
_COMFORTABLE = _Floors(16, 24)
_TIGHT = _Floors(12, 12)


class _Fitted(NamedTuple):
    """A table that fits a terminal."""

    heading: str
    """The header line; empty if each row is a block of lines."""
    lines: list[str]
    dropped: Sequence[str] = ()
    """The names of the dropped columns."""


class _Grid(NamedTuple):
    """The cells of a table, and the kinds of its columns."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Collection[str]
    sentences: Collection[str]

    def without(self, dropped: Collection[str]) -> _Grid:
        """Return the grid without some columns."""
        kept = [index for index, name in enumerate(self.header) if name not in dropped]
        rows = [[row[index] for index in kept] for row in self.rows]
        return self._replace(header=[self.header[index] for index in kept], rows=rows)


def fit_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    sentences: Collection[str],
    columns: int,
    least: Sequence[str] = (),
) -> _Fitted:
    """Fit the header and rows of a table to a terminal.

    Long names are elided in the middle, after dropping their common scopes if they would become equal; sentences are
    wrapped, and numbers stay whole. If that does not fit, the columns of ``least`` are dropped one by one, then names and
    sentences get narrower, and finally each row becomes a block of lines with all its cells.

    Args:
        header: the names of the columns.
        rows: the cells.
        right: the names of numeric columns, which are right-aligned.
        sentences: the names of columns whose cells may wrap between words.
        columns: the width of the terminal.
        least: the names of columns to drop if there is no room, least important first.
    """
    empty = {
        name for name, *cells in zip(header[1:], *(row[1:] for row in rows), strict=True) if not any(cells)
    }
    whole = _Grid(header, rows, right, sentences).without(empty if rows else ())
    optional = [name for name in least if name in whole.header]
    tries = [(_COMFORTABLE, optional[:count]) for count in range(len(optional) + 1)]
    for floors, dropped in (*tries, (_TIGHT, optional)):
        if (lines := _fit(whole.without(dropped), floors, columns)) is not None:
            return _Fitted(lines[0], lines[1:], dropped)
    return _Fitted("", _blocks(whole, columns))


def _fit(grid: _Grid, floors: _Floors, columns: int) -> list[str] | None:
    """Return the lines of a table, the header first; ``None`` if it does not fit."""
    header, rows, right, sentences = grid
    natural = [max(map(display_width, column)) for column in zip(header, *rows, strict=True)]
    least = [
        _least_width(name, cells, width, right, sentences, floors)
        for name, width, *cells in zip(header, natural, *rows, strict=True)
    ]
    widths = _narrow(natural, least, columns - _GAP * len(natural))
    names = [index for index, name in enumerate(header) if name not in right and name not in sentences]
    short = None if widths is None else _shorten(rows, names, widths)
    return None if widths is None or short is None else _render(header, short, right, sentences, widths)


def _least_width(
    name: str,
    cells: Sequence[str],
    natural: int,
    right: Collection[str],
    sentences: Collection[str],
    floors: _Floors,
) -> int:
    """Return the minimum width of a column: numbers and words of moderate length are not broken."""
    if name in right:
        return natural
    if name not in sentences:
        return min(natural, floors.name)
    words = (display_width(word) for cell in (name, *cells) for word in cell.split())
    longest = max((width for width in words if width <= _WORD), default=0)
    return min(natural, max(floors.sentence, longest))


def _blocks(grid: _Grid, columns: int) -> list[str]:
    """Format each row as a block of lines, titled by its first non-numeric cell."""
    header, rows, right, sentences = grid
    head = next((i for i, name in enumerate(header) if name not in right), 0)
    titles = _titles([row[head] for row in rows], columns - _GAP, header[head] in sentences)
    blocks = (_block(header, row, head, columns, sentences) for row in rows)
    return [line for title, block in zip(titles, blocks, strict=True) for line in (*title, *block)]


def _narrow(natural: Sequence[int], floors: Sequence[int], room: int) -> list[int] | None:
    """Return column widths that fit ``room`` in total, narrowing the widest columns first; ``None`` if impossible.

    Args:
        natural: the width of the contents of each column, in characters.
        floors: the minimum width of each column.
        room: the total width available.
    """
    widths = list(natural)
    while sum(widths) > room:
        left = [index for index, width in enumerate(widths) if width > floors[index]]
        if not left:
            return None
        widths[max(left, key=widths.__getitem__)] -= 1
    return widths


def _shorten(
    rows: Sequence[Sequence[str]], names: Sequence[int], widths: Sequence[int]
) -> list[list[str]] | None:
    """Shorten names to the widths of their columns; ``None`` if different names would look the same.

    Args:
        rows: the cells.
        names: the indices of the columns to shorten.
        widths: the width of each column, in characters.
    """
    shortened_rows = [list(row) for row in rows]
    for index in names:
        cells = [row[index] for row in rows]
        ways = (cells, _strip_scopes(cells, widths[index]), _strip_prefix(cells, widths[index]))
        short = next((each for way in ways if _differ(cells, each := _truncate(way, widths[index]))), None)
        if short is None:
            return None
        for row, cell in zip(shortened_rows, short, strict=True):
            row[index] = cell
    return shortened_rows


def _truncate(cells: Sequence[str], width: int) -> list[str]:
    return [shorten(cell, width) for cell in cells]


def _differ(cells: Sequence[str], short: Sequence[str]) -> bool:
    return len(set(zip(cells, short, strict=True))) == len(set(short))


def _strip_scopes(cells: Sequence[str], width: int) -> list[str]:
    """Remove the scopes that all names longer than ``width`` have in common."""
    prefix = _common_prefix(cells, width)
    return _strip(prefix[: max(prefix.rfind("."), prefix.rfind("/")) + 1], cells, width)


def _strip_prefix(cells: Sequence[str], width: int) -> list[str]:
    """Remove the prefix that all names longer than ``width`` have in common."""
    return _strip(_common_prefix(cells, width), cells, width)


def _common_prefix(cells: Sequence[str], width: int) -> str:
    return os.path.commonprefix([cell for cell in cells if display_width(cell) > width])  # noqa: RUF071  not paths


def _strip(prefix: str, cells: Sequence[str], width: int) -> list[str]:
    return [f"…{cell[len(prefix) :]}" if prefix and display_width(cell) > width else cell for cell in cells]


def _render(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    sentences: Collection[str],
    widths: Sequence[int],
) -> list[str]:
    from io import StringIO

    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=None, show_header=False, padding=(0, 0, 0, _GAP))
    for name, width in zip(header, widths, strict=True):
        is_sentence = name in sentences
        grid.add_column(
            width=width,
            justify="right" if name in right else "left",
            no_wrap=not is_sentence,
            overflow="fold" if is_sentence else "ellipsis",
        )
    for row in (header, *rows):
        grid.add_row(*map(Text, row))
    console = Console(
        file=StringIO(), width=sum(widths) + _GAP * len(widths), color_system=None, legacy_windows=False
    )
    with console.capture() as captured:
        console.print(grid)
    return [line.rstrip() for line in captured.get().splitlines()]


def _titles(cells: Sequence[str], width: int, is_sentence: bool) -> list[list[str]]:
    """Return the title lines of blocks: shortened names if they stay distinct, or else wrapped whole names."""
    ways = (cells, _strip_scopes(cells, width), _strip_prefix(cells, width))
    for way in () if is_sentence else ways:
        if _differ(cells, short := _truncate(way, width)):
            return [[f"  {cell}"] for cell in short]
    return [[f"  {line}" for line in textwrap.wrap(cell, width) or [cell]] for cell in cells]


def _block(
    header: Sequence[str], row: Sequence[str], head: int, columns: int, sentences: Collection[str]
) -> Iterator[str]:
    """Yield the lines below the title of a row: its other cells, each after the name of its column."""
    line = ""
    for index, (name, cell) in enumerate(zip(header, row, strict=True)):
        if not cell or index == head:
            continue
        item = f"{name} {cell}".strip()
        if line and display_width(line) + _GAP + display_width(item) > columns - 4:
            yield f"    {line}"
            line = ""
        parts = textwrap.wrap(item, columns - 4, break_long_words=name in sentences, break_on_hyphens=False)
        *full, item = parts or [item]
        yield from (f"    {shorten(each, columns - 4)}" for each in full)
        line = f"{line}  {item}" if line else shorten(item, columns - 4)
    if line:
        yield f"    {line}"
