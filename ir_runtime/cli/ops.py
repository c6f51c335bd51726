"""``ir-runtime ops``: list the supported operations, or describe one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .helping import GroupedCommand
from .markdown import filled
from .models import as_json
from .render import result, table

if TYPE_CHECKING:
    from ..ops import Op

__all__ = ["ops"]


@click.command(cls=GroupedCommand, group="Look")
@click.argument("name", metavar="[NAME]", required=False)
@as_json
def ops(name: str | None, as_json: bool) -> None:
    """List the operations that are supported, or describe NAME.

    NAME is an operation, such as ReduceL2, or one version of it, such as ReduceL2-4.
    """
    from ..ops._define.describe import record
    from ..ops._define.page import page

    found = _every() if name is None else _named(name)

    def text() -> str:
        return _list(found) if name is None else filled("\n".join(page(cls) for cls in found).rstrip())

    result(as_json, lambda: {"operations": [record(cls) for cls in found]}, text, pager=True)


def _every() -> list[type[Op]]:
    from ..ops import load_extensions, registry

    load_extensions()
    return list(registry)


def _list(found: list[type[Op]]) -> str:
    from ..ops._define.describe import TESTED_AGAINST, group, summary

    rows = [[cls.versioned_name(), group(cls), summary(cls)] for cls in found]
    names = len({cls.name for cls in found})
    title = f"{names} operations, {len(found)} versions, tested against {TESTED_AGAINST}"
    return table(title, ["operation", "group", "what it does"], rows, sentences=["what it does"])


def _named(name: str) -> list[type[Op]]:
    from .._util.nearest import suggestion
    from ..ops import registry

    every = _every()
    type, _, number = name.rpartition("-")
    wanted = type if type and number.isdecimal() else name
    versions = registry.versions(wanted)
    if not versions:
        hint = suggestion(registry.near(wanted)) or "ir-runtime ops lists them"
        raise click.BadParameter(f"unknown operation {wanted!r}; {hint}", param_hint="NAME")
    if wanted == name:
        return versions
    found = [cls for cls in every if cls in versions and cls.since == int(number)]
    if not found:
        known = ", ".join(cls.versioned_name() for cls in versions)
        what = f"unknown version {number} of {versions[0].name}; its versions are {known}"
        raise click.BadParameter(what, param_hint="NAME")
    return found
