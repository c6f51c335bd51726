"""``ir-runtime bisect``: find the first layer in which another execution differs by more than rounding."""

from __future__ import annotations

import click

from .exits import Exit
from .helping import GroupedCommand
from .long import Debugging, against, debugs
from .models import as_json
from .render import result

__all__ = ["bisect"]

_EPILOG = """\b
ir-runtime bisect net.xml --against openvino -i x=x.npy

The layers are cut in two again and again, and of each half only what leaves it is compared: so nothing
inside is observed, and memory stays small. The first line is the verdict of the outputs; ends with 0 if it
is 'explained', so that there is no layer to find, else with 1.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@against
@debugs()
@as_json
def bisect(debugging: Debugging, against: str) -> None:
    """Find the first layer of MODEL in which another execution differs from f64 by more than rounding."""
    from ..debug import bisect as search

    with debugging.working("bisecting") as (model, feeds):
        found = search(model, feeds, against)
    result(debugging.as_json, found.record, lambda: str(found))
    if not found.report.explained:
        raise SystemExit(Exit.FINDINGS)
