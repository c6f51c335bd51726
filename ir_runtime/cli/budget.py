"""``ir-runtime budget``: find the layers that lose accuracy in a lower precision."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .helping import GroupedCommand
from .long import Debugging, debugs
from .models import as_json
from .render import result, table
from .terminal import columns

if TYPE_CHECKING:
    from ..debug import Budget

__all__ = ["budget"]

_EPILOG = """\b
ir-runtime budget net.xml -i x=x.npy --to bf16 --keep 3
ir-runtime budget net.xml -i x=x.npy --to int4

Each layer that multiplies matrices is computed alone in the lower precision; errors are relative to
f32, at the output where they are largest.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@click.option(
    "--to",
    type=click.Choice(["bf16", "f16", "int8", "int4"]),
    default="bf16",
    show_default=True,
    help="The precision; int8 and int4 are those of weights.",
)
@click.option(
    "--keep", type=click.IntRange(min=0), default=3, show_default=True, help="How many layers to keep in f32."
)
@debugs()
@as_json
def budget(debugging: Debugging, to: str, keep: int) -> None:
    """Say which layers of MODEL cost accuracy in a lower precision, and what keeping the worst in f32 gains."""
    from ..debug import budget as compute

    with debugging.working("computing") as (model, feeds):
        costs = compute(model, feeds, to, keep)
    result(debugging.as_json, costs.record, lambda: str(costs) if columns() is None else _fitting(costs))


def _fitting(found: Budget) -> str:
    """Return the costs as a table for a terminal."""
    if not found.layers:
        return found.summary
    rows = [[f"{cost.error:.1e}", cost.layer, cost.operation] for cost in found.layers]
    title = f"Error at the outputs if one layer is in {found.to}"
    costs = table(title, ["error", "layer", "operation"], rows, right=("error",), rest="a pipe gets all")
    return f"{costs}\n{found.summary}"
