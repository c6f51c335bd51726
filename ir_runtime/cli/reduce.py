"""``ir-runtime reduce``: reduce a model to the smallest part that reproduces a difference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .helping import GroupedCommand
from .long import Debugging, debugging_options, side_options
from .models import as_json
from .render import result

if TYPE_CHECKING:
    from ..debug.observation import SideLike
    from ..ir.tensor import Array

__all__ = ["reduce"]

_EPILOG = """\b
ir-runtime reduce net.xml --against openvino -i x=x.npy -o bug/
ir-runtime reduce net.xml --run 'python device.py' --repeat 5 -i x=x.npy -o bug/

The folder has the part as model.xml and model.bin, its inputs, its f64 outputs, show.py, which shows the difference
in a fresh process, and issue.md. Weights and inputs are replaced by random data of the same mean and deviation,
unless --keep-values is given or the difference would vanish. The first line is the verdict. If it is 'explained',
no folder is written and the exit code is 0, else 1.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@side_options
@debugging_options(
    click.option(
        "-o",
        "--output",
        required=True,
        metavar="FOLDER",
        help="New folder for the part and a program that shows the error.",
    ),
    click.option("--keep-values", is_flag=True, help="Keep weights and inputs instead of randomizing them."),
)
@as_json
def reduce(
    debugging: Debugging, side: SideLike, states: dict[str, Array] | None, output: str, keep_values: bool
) -> None:
    """Find the smallest part of MODEL whose error in another runtime exceeds rounding."""
    from ..debug import reduce as shrink

    with debugging.working("reducing") as (model, feeds):
        reduced = shrink(model, feeds, side, output, keep_values, states)
    result(debugging.as_json, reduced.record, lambda: str(reduced))
    if not reduced.report.explained:
        raise SystemExit(Exit.FINDINGS)
