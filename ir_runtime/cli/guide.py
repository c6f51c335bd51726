"""``ir-runtime guide``: print the guides on using and extending the package."""

from __future__ import annotations

import click

from .helping import GroupedCommand
from .models import as_json
from .render import result, table
from .terminal import render_for_terminal

__all__ = ["guide"]


@click.command(cls=GroupedCommand, group="Look")
@click.argument("name", metavar="[NAME]", required=False)
@as_json
def guide(name: str | None, as_json: bool) -> None:
    """Print the guide NAME as Markdown, or list all guides."""
    from ..guides import guide as found
    from ..guides import guides

    if name is not None:
        page = found(name)
        result(as_json, page._asdict, lambda: render_for_terminal(page.text.rstrip()), pager=True)
        return
    pages = guides()
    listed = [{"name": page.name, "title": page.title} for page in pages]
    rows = [[page.name, page.title] for page in pages]
    sentences = ["what it is about"]
    result(
        as_json,
        lambda: {"guides": listed},
        lambda: table("Guides", ["name", *sentences], rows, sentences=sentences),
    )
