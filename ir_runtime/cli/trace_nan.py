"""``ir-runtime trace-nan``: find the origin of Inf and NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .exits import Exit
from .helping import GroupedCommand
from .long import Debugging, debugging_options
from .models import as_json
from .render import join_conclusion, result, table
from .terminal import columns

if TYPE_CHECKING:
    from ..debug import NanTrace

__all__ = ["trace_nan"]

_EPILOG = """\b
ir-runtime trace-nan net.xml -i image=cat.npy
ir-runtime trace-nan net.xml -i image=cat.npy --as f16

The exit code is 1 if a layer produces Inf or NaN from finite inputs, else 0.
"""


@click.command("trace-nan", epilog=_EPILOG, cls=GroupedCommand, group="Check")
@click.option(
    "--as",
    "precision",
    type=click.Choice(["f32", "f16", "bf16"]),
    default="f32",
    show_default=True,
    help="Compute precision; f16 and bf16 are emulated.",
)
@debugging_options()
@as_json
def trace_nan(debugging: Debugging, precision: str) -> None:
    """Find the layers of MODEL that produce Inf or NaN from finite inputs, or come close to overflow."""
    from ..debug import trace_nan as trace

    with debugging.working("running") as (model, feeds):
        found = trace(model, feeds, precision)
    result(debugging.as_json, found.record, lambda: str(found) if columns() is None else _format_peaks(found))
    if found.origins:
        raise SystemExit(Exit.FINDINGS)


def _format_peaks(found: NanTrace) -> str:
    """Format the layers closest to overflow as a table that fits the terminal."""
    rows = [
        [f"{peak.largest:.2g}", f"{1 / peak.part:.2g}", peak.layer, peak.operation]
        for peak in found.peaks
        if peak.part
    ]
    if not rows:
        return found.summary
    title = f"Nearest to the limit {found.limit:.4g} of {found.precision}"
    header = ["largest", "times below", "layer", "operation"]
    nearest = table(title, header, rows, right=header[:2], least=("operation", "times below"))
    return join_conclusion([found.summary], [nearest])
