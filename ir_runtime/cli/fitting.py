"""Fit tables into the width of a terminal."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Collection, Iterator, Sequence

from .._util.widths import display_width, shortened

__all__ = ["fitted"]

# Columns between two columns of a table, and before the first.
_GAP = 2
# The least width of a column of names, and of one of sentences: below that, each row becomes a block.
_NAME = 16
_SENTENCE = 24


def fitted(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    sentences: Collection[str],
    columns: int,
) -> tuple[str, list[str]]:
    """Fit the header and rows of a table to a terminal.

    Long names lose their middle, and the scopes that they share where they would not differ any more; sentences are
    wrapped, and numbers stay whole. Where that does not fit, each row becomes a block of lines, and the
    header is empty.

    Args:
        header: the names of the columns.
        rows: the cells.
        right: the names of columns of numbers, which are aligned to the right.
        sentences: the names of columns whose cells may be broken between words.
        columns: the width of the terminal.
    """
    natural = [max(map(display_width, column)) for column in zip(header, *rows, strict=True)]
    floors = [
        width if name in right else min(width, _SENTENCE if name in sentences else _NAME)
        for name, width in zip(header, natural, strict=True)
    ]
    widths = _narrow(natural, floors, columns - _GAP * len(natural))
    names = [index for index, name in enumerate(header) if name not in right and name not in sentences]
    fitting = None if widths is None else _shorten(rows, names, widths)
    if widths is None or fitting is None:
        head = next((i for i, name in enumerate(header) if name not in right), 0)
        titles = _titles([row[head] for row in rows], columns - _GAP, header[head] in sentences)
        blocks = (_block(header, row, head, columns, sentences) for row in rows)
        pairs = zip(titles, blocks, strict=True)
        return "", [line for title, block in pairs for line in (*title, *block)]
    heading, *lines = _render(header, fitting, right, sentences, widths)
    return heading, lines


def _narrow(natural: Sequence[int], floors: Sequence[int], room: int) -> list[int] | None:
    """Narrow the widest columns until all fit; ``None`` if they cannot."""
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
    """Shorten the cells of columns of names; ``None`` if different names would look the same."""
    shortened_rows = [list(row) for row in rows]
    for index in names:
        cells = [row[index] for row in rows]
        ways = (cells, _without_scopes(cells, widths[index]))
        short = next((each for way in ways if _differ(cells, each := _truncate(way, widths[index]))), None)
        if short is None:
            return None
        for row, cell in zip(shortened_rows, short, strict=True):
            row[index] = cell
    return shortened_rows


def _truncate(cells: Sequence[str], width: int) -> list[str]:
    return [shortened(cell, width) for cell in cells]


def _differ(cells: Sequence[str], short: Sequence[str]) -> bool:
    return len(set(zip(cells, short, strict=True))) == len(set(short))


def _without_scopes(cells: Sequence[str], width: int) -> list[str]:
    """Remove the scopes common to all long names."""
    prefix = _common_prefix(cells, width)
    return _without(prefix[: max(prefix.rfind("."), prefix.rfind("/")) + 1], cells, width)


def _without_prefix(cells: Sequence[str], width: int) -> list[str]:
    """Remove the prefix common to all long names."""
    return _without(_common_prefix(cells, width), cells, width)


def _common_prefix(cells: Sequence[str], width: int) -> str:
    return os.path.commonprefix([cell for cell in cells if display_width(cell) > width])  # noqa: RUF071  not paths


def _without(prefix: str, cells: Sequence[str], width: int) -> list[str]:
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
    """Return the titles of blocks: shortened names if they stay distinct, or else whole names."""
    ways = (cells, _without_scopes(cells, width), _without_prefix(cells, width))
    for way in () if is_sentence else ways:
        if _differ(cells, short := _truncate(way, width)):
            return [[f"  {cell}"] for cell in short]
    return [[f"  {line}" for line in textwrap.wrap(cell, width) or [cell]] for cell in cells]


def _block(
    header: Sequence[str], row: Sequence[str], head: int, columns: int, sentences: Collection[str]
) -> Iterator[str]:
    """Yield the lines of one row below the cell that names it: the others with the names of their columns."""
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
        yield from (f"    {shortened(each, columns - 4)}" for each in full)
        line = f"{line}  {item}" if line else shortened(item, columns - 4)
    if line:
        yield f"    {line}"
