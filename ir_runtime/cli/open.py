"""``ir-runtime open``: open the report of a model in the browser."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .exits import Exit
from .helping import GroupedCommand
from .models import read, weights
from .options import limit_options
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["open"]

_EPILOG = """\\b
ir-runtime open net.xml

The page is written to a temporary folder, whose path is printed. `ir-runtime report` writes it to a given path,
and can add measurements. The exit code is 1 if the model has errors, else 0.
"""


@click.command("open", epilog=_EPILOG, cls=GroupedCommand, group="Look")
@click.argument("model", metavar="MODEL")
@weights
@limit_options
def open(model: str, weights: str | None, limits: Limits) -> None:
    """Open a report of MODEL in the browser: a summary, the graph, and all details of its layers."""
    net = read(model, weights, checked=False, limits=limits)
    target = Path(mkdtemp(prefix="ir-runtime-")) / f"{Path(model).stem or 'model'}.html"
    page = net.report(target)
    show("\n".join(visible(str(problem)) for problem in page.story.problems), err=True)
    click.echo(visible(str(target)))
    if not webbrowser.open(target.as_uri()):
        show("no browser was found: open the page yourself", err=True)
    if not page.story.ok:
        raise SystemExit(Exit.FINDINGS)
