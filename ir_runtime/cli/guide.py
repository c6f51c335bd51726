"""``ir-runtime guide``: pages about how the package is built and extended."""

from __future__ import annotations

import click

from .models import as_json
from .render import dump, table

__all__ = ["guide"]


@click.command()
@click.argument("name", metavar="[NAME]", required=False)
@as_json
def guide(name: str | None, as_json: bool) -> None:
    """Print the guide NAME as Markdown; without a name, list the guides."""
    from ..guides import guide as found
    from ..guides import guides

    if name is not None:
        page = found(name)
        click.echo(dump(page._asdict()) if as_json else page.text.rstrip())
        return
    pages = guides()
    listed = [{"name": page.name, "title": page.title} for page in pages]
    rows = [[page.name, page.title] for page in pages]
    click.echo(dump(listed) if as_json else table("Guides", ["name", "what it is about"], rows))
