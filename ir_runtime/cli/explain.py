"""``ir-runtime explain``: what a code means, an example, and how to fix it."""

from __future__ import annotations

import click

from .models import as_json
from .render import result, table

__all__ = ["explain"]


@click.command()
@click.argument("code", metavar="[CODE]", required=False)
@as_json
def explain(code: str | None, as_json: bool) -> None:
    """Explain a CODE that a finding or an error has, such as IR301; without one, list them all."""
    from ..codes import Code

    if code is None:
        rows = [[found.value, found.summary] for found in Code]
        listed = [{"code": key, "summary": summary} for key, summary in rows]
        sentences = ["what it means"]
        result(
            as_json,
            lambda: listed,
            lambda: table("Codes", ["code", *sentences], rows, sentences=sentences),
            pager=True,
        )
        return
    from ..explanations import explanation

    page = explanation(_known(code))
    fields = {
        "summary": page.code.summary,
        "meaning": page.meaning,
        "example": page.example,
        "fix": page.fix,
    }
    result(as_json, lambda: {"code": page.code.value, **fields}, page.markdown.rstrip, pager=True)


def _known(text: str) -> str:
    from ..codes import Code
    from ..errors import InputError
    from ..nearest import nearest

    name = text.upper()
    if name in set(Code):
        return name
    near = nearest(name, Code)
    hint = f"did you mean {near}? " if near else ""
    raise InputError(
        f"unknown code {text[:40]!r}", code=Code.NO_SUCH_NAME, hint=f"{hint}ir-runtime explain lists them"
    )
