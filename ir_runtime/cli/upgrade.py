"""``ir-runtime upgrade``: convert a model to IR version 11, or for an older release of OpenVINO."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .helping import GroupedCommand
from .models import read, weights
from .options import limit_options
from .render import finding
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["upgrade"]

_EPILOG = """\b
ir-runtime upgrade old.xml new.xml
ir-runtime upgrade new.xml old.xml --for 2021.4

Versions 2 to 7 have layers that are no longer defined: each is replaced by operations that compute the same
("ir-runtime guide legacy" lists them), so that current releases of OpenVINO read the result. Inputs and outputs
keep their names. For an older release, operations that it lacks are replaced by older ones that compute exactly
the same, if possible ("ir-runtime guide releases").
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Keep")
@click.argument("old", metavar="OLD")
@click.argument("target", metavar="NEW")
@click.option(
    "--for",
    "for_release",
    metavar="RELEASE",
    help="Write a model for this release of OpenVINO, such as 2021.4; by default, for the newest.",
)
@weights
@limit_options
def upgrade(old: str, target: str, for_release: str | None, weights: str | None, limits: Limits) -> None:
    """Convert OLD, a model of any IR version, to NEW in version 11, or for an older release of OpenVINO."""
    from ..openvino.saving import save_content
    from ..releases.release import Release

    if for_release is not None:
        Release.of(for_release)  # before the model is read
    net = read(old, weights, limits=limits)
    for note in net.report.notes:
        show(finding(note), err=True)
    content = save_content(net, target, for_release=for_release)
    count = sum(1 for _ in content.graph.everywhere())
    show(f"saved {count:,} layers of IR version {content.version} to {visible(target)}", err=True)
