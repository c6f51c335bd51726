"""``ir-runtime ops``: list the supported operations, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .helping import GroupedCommand
from .models import as_json
from .render import result, table
from .terminal import render_for_terminal

if TYPE_CHECKING:
    from ..ops import Op

__all__ = ["ops"]


@click.command(cls=GroupedCommand, group="Look")
@click.argument("name", metavar="[NAME]", required=False)
@as_json
def ops(name: str | None, as_json: bool) -> None:
    """List the supported operations, or describe one.

    NAME is an operation such as ReduceL2, or one of its versions such as ReduceL2-4.
    """
    from ..ops._define.describe import page, record

    selected = _all_operations() if name is None else _find_operations(name)

    def text() -> str:
        return (
            _list(selected)
            if name is None
            else render_for_terminal("\n".join(page(cls) for cls in selected).rstrip())
        )

    result(as_json, lambda: {"operations": [record(cls) for cls in selected]}, text, pager=True)


def _all_operations() -> list[type[Op]]:
    from ..ops import load_extensions, registry

    load_extensions()
    return list(registry)


def _list(operations: list[type[Op]]) -> str:
    from ..ops._define.describe import TESTED_AGAINST, group, summary

    rows = [[cls.versioned_name(), group(cls), summary(cls)] for cls in operations]
    names = len({cls.name for cls in operations})
    title = f"{names} operations, {len(operations)} versions, tested against {TESTED_AGAINST}"
    return table(
        title, ["operation", "group", "what it does"], rows, sentences=["what it does"], least=["group"]
    )


def _find_operations(name: str) -> list[type[Op]]:
    from .._util.nearest import suggestion
    from ..ops import registry

    every = _all_operations()
    type, _, number = name.rpartition("-")
    version = type if type and number.isdecimal() else name
    versions = registry.versions(version)
    if not versions:
        hint = suggestion(registry.near(version)) or "ir-runtime ops lists them"
        raise click.BadParameter(f"unknown operation {version!r}; {hint}", param_hint="NAME")
    if version == name:
        return versions
    matches = [cls for cls in every if cls in versions and cls.since == int(number)]
    if not matches:
        names = ", ".join(cls.versioned_name() for cls in versions)
        what = f"unknown version {number} of {versions[0].name}; its versions are {names}"
        raise click.BadParameter(what, param_hint="NAME")
    return matches
