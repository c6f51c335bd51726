"""``ir-runtime diff``: what changed from one model to another."""

from __future__ import annotations

import click

from .exits import Exit
from .models import as_json, read
from .render import result

__all__ = ["diff"]

_EPILOG = """\b
ir-runtime diff old.xml new.xml

Layers are matched by structure and names; how they are numbered and called does not matter. Ends with
1 if something changed, else with 0.
"""


@click.command(epilog=_EPILOG)
@click.argument("old", metavar="OLD")
@click.argument("new", metavar="NEW")
@as_json
def diff(old: str, new: str, as_json: bool) -> None:
    """List the layers, attributes, connections, shapes and weights in which NEW differs from OLD."""
    from ..debug import diff as compare

    found = compare(read(old, None), read(new, None))
    result(as_json, found.record, lambda: str(found))
    if found:
        raise SystemExit(Exit.FINDINGS)
