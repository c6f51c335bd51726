"""``ir-runtime bisect``: find the first layer that another runtime computes wrongly."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .helping import GroupedCommand
from .long import Debugging, debugging_options, side_options
from .models import as_json
from .render import result

if TYPE_CHECKING:
    from ..debug.observation import SideLike
    from ..ir.tensor import Array

__all__ = ["bisect"]

_EPILOG = """\b
ir-runtime bisect net.xml --against openvino -i x=x.npy
ir-runtime bisect net.xml --run 'python device.py' -i x=x.npy

Bisects the layers, comparing only the outputs of each half, so no intermediate tensors need to be observed, and
memory stays small. The first line is the verdict on the outputs. The exit code is 0 if it is 'explained', so that
there is no layer to find, else 1.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@side_options
@debugging_options()
@as_json
def bisect(debugging: Debugging, side: SideLike, states: dict[str, Array] | None) -> None:
    """Find the first layer of MODEL whose error in another runtime exceeds rounding."""
    from ..debug import bisect as search

    with debugging.working("bisecting") as (model, feeds):
        bisection = search(model, feeds, side, states)
    result(debugging.as_json, bisection.record, lambda: str(bisection))
    if not bisection.report.explained:
        raise SystemExit(Exit.FINDINGS)
