"""``ir-runtime diff``: list the differences between two models."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .helping import GroupedCommand
from .models import as_json, read
from .options import limit_options
from .render import plural, result, table
from .terminal import columns

if TYPE_CHECKING:
    from ..debug import Difference
    from ..limits import Limits

__all__ = ["diff"]

_EPILOG = """\b
ir-runtime diff old.xml new.xml

Layers are matched by structure and names; new names or ids alone do not count as changes. The exit code is 1 if
something changed, else 0.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@limit_options
@as_json
def diff(old: str, new: str, limits: Limits, as_json: bool) -> None:
    """List the changes from model OLD to model NEW: layers, attributes, connections, shapes, weights."""
    from ..debug import diff as compare

    difference = compare(read(old, None, limits=limits), read(new, None, limits=limits))
    is_short = columns() is None or not difference
    result(as_json, difference.record, lambda: str(difference) if is_short else _format_changes(difference))
    if difference:
        raise SystemExit(Exit.FINDINGS)


def _format_changes(difference: Difference) -> str:
    """Format the changes as a table that fits the terminal."""
    rows = [[change.layer, change.operation, change.kind, change.what] for change in difference.changes]
    header = ["layer", "operation", "change", "what"]
    changes = table(
        plural(len(rows), "change"),
        header,
        rows,
        sentences=("what",),
        least=("operation",),
        rest="a pipe gets all",
    )
    return f"{changes}\n{difference.summary}"
