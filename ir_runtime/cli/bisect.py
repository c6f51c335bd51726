"""``ir-runtime bisect``: the first layer in which another execution goes wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .fed import Feeding, fed
from .limited import limited
from .long import cache_folder, cached, working
from .models import as_json, read, weights
from .render import result

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["bisect"]

_EPILOG = """\b
ir-runtime bisect net.xml --against openvino -i x=x.npy

The layers are cut in two again and again, and of each half only what leaves it is compared: so nothing
inside is observed, and memory stays small. Ends with 1 if a layer is found, and with 2 if rounding
explains how the outputs differ.
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL")
@click.option(
    "--against",
    required=True,
    metavar="SIDE",
    help="What differs: openvino, openvino:bf16, a backend, or the path of another IR.",
)
@fed
@weights
@limited
@cached
@as_json
def bisect(
    model: str,
    against: str,
    feeding: Feeding,
    weights: str | None,
    as_json: bool,
    limits: Limits,
    cache: str | None,
) -> None:
    """Find the first layer of MODEL in which another execution differs from f64 by more than rounding."""
    from ..debug import bisect as search

    net = read(model, weights, limits=limits)
    feeds = feeding(net)
    with working("bisecting", as_json, cache_folder(cache)):
        found = search(net, feeds, against)
    result(as_json, found.record, lambda: str(found))
    raise SystemExit(Exit.FINDINGS)
