"""``ir-runtime explain``: the meaning of a code of a finding, with an example and the fix."""

from __future__ import annotations

import re

import click

from .helping import GroupedCommand
from .models import as_json
from .render import result, table
from .terminal import render_for_terminal

__all__ = ["explain"]


_EPILOG = """\b
ir-runtime explain IR301
ir-runtime explain json       list the JSON Schemas of results
ir-runtime explain json run   print the JSON Schema of run --json
ir-runtime explain json error print the JSON Schema of errors with --json
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Look")
@click.argument("code", metavar="[CODE]", required=False)
@click.argument("command", metavar="[COMMAND]", required=False)
@as_json
def explain(code: str | None, command: str | None, as_json: bool) -> None:
    """Explain an error CODE such as IR301, or list all codes."""
    from ..codes import Code

    if code == "json":
        click.echo(_schema(command))
        return
    if command is not None:
        raise click.UsageError("a COMMAND follows json alone")
    if code is None:
        rows = [[code_entry.value, code_entry.summary] for code_entry in Code]
        listed = [{"code": key, "summary": summary} for key, summary in rows]
        sentences = ["what it means"]
        result(
            as_json,
            lambda: {"codes": listed},
            lambda: table("Codes", ["code", *sentences], rows, sentences=sentences),
            pager=True,
        )
        return
    from ..explanations import explanation

    page = explanation(_find_code(code))
    fields = {
        "summary": page.code.summary,
        "meaning": page.meaning,
        "example": page.example,
        "fix": page.fix,
    }
    result(
        as_json,
        lambda: {"code": page.code.value, **fields},
        lambda: render_for_terminal(page.markdown.rstrip()),
        pager=True,
    )


def _schema(command: str | None) -> str:
    """Return the JSON Schema of a command's results, or without a command the list of schemas."""
    from importlib.resources import files

    from .._util.nearest import did_you_mean
    from ..codes import Code
    from ..errors import InputError

    folder = files(__package__) / "schemas"
    names = sorted(path.name.removesuffix(".json") for path in folder.iterdir())
    if command is None:
        return "\n".join(names)
    if command not in names:
        hint = did_you_mean(command, names) or "ir-runtime explain json lists them"
        raise InputError(f"unknown command {command!r}", code=Code.NO_SUCH_NAME, hint=hint)
    return (folder / f"{command}.json").read_text(encoding="utf-8").rstrip()


def _find_code(text: str) -> str:
    from .._util.nearest import did_you_mean
    from ..codes import Code
    from ..errors import InputError

    name = text.upper()
    if name in set(Code):
        return name
    codes = sorted(map(str, Code))
    is_number = re.fullmatch(r"IR\d{3}", name)  # no suggestion, as a similar number has an unrelated meaning
    near = "" if is_number else did_you_mean(name, codes, after=" ")
    hint = f"{near}ir-runtime explain lists the codes, {codes[0]} to {codes[-1]}"
    raise InputError(f"unknown code {text[:40]!r}", code=Code.NO_SUCH_NAME, hint=hint)
