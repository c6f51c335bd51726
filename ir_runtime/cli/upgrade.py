"""``ir-runtime upgrade``: write a model of an older IR version as version 11."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..escaping import visible
from .limited import limited
from .models import read, weights
from .render import finding
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["upgrade"]

_EPILOG = """\b
ir-runtime upgrade old.xml new.xml

Versions 2 to 7 have layers that are no longer defined: each is replaced by operations that compute the
same ("ir-runtime guide legacy" lists them). OpenVINO reads the result. Inputs and outputs keep their names.
"""


@click.command(epilog=_EPILOG)
@click.argument("old", metavar="OLD")
@click.argument("target", metavar="NEW")
@weights
@limited
def upgrade(old: str, target: str, weights: str | None, limits: Limits) -> None:
    """Write OLD, a model of IR version 2 to 10, as NEW of version 11."""
    from ..api.saving import save_model

    net = read(old, weights, limits=limits)
    for note in net.report.notes:
        show(finding(note), err=True)
    save_model(net, target)
    count = sum(1 for _ in net._graph.everywhere())
    show(f"saved {count:,} layers of IR version 11 to {visible(target)}", err=True)
