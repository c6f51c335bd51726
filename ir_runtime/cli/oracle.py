"""``ir-runtime oracle``: compute the outputs of a model in f64."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .helping import GroupedCommand
from .long import Debugging, debugging_options, declared_types
from .models import as_json
from .render import number, plural, result, table
from .terminal import show

if TYPE_CHECKING:
    from .outputs import Summary

__all__ = ["oracle"]

_EPILOG = """\b
ir-runtime oracle net.xml -i image=cat.npy -o truth.npz --layers 'conv*'
"""


_REST = "a pipe gets all"


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@debugging_options(
    declared_types,
    click.option("-o", "--output", metavar="PATH", help="Save the tensors in the formats of run -o."),
    click.option(
        "--layers", multiple=True, metavar="GLOB", help="Also show and save these layers. Repeatable."
    ),
)
@as_json
def oracle(debugging: Debugging, output: str | None, layers: Sequence[str], types: str) -> None:
    """Compute the outputs of MODEL in f64, without rounding to its f32, f16 or bf16."""
    from ..debug import oracle as compute
    from ..ir.element import ElementType
    from .outputs import STDOUT, check_count, check_target, save, summarize

    target = None if output is None else check_target(output)
    if target == STDOUT and debugging.as_json:
        raise click.UsageError("-o - and --json cannot be given together: both write to stdout")
    with debugging.working("computing") as (model, feeds):
        truth = compute(model, feeds, layers, types=types)
    if target is not None:
        check_count(target, list(truth))
        save(target, dict(truth))
        show(f"saved {plural(len(truth), 'tensor')} to {visible(str(output))}", err=True)
    summaries = {name: summarize(array, ElementType.from_dtype(array.dtype)) for name, array in truth.items()}
    if target == STDOUT:
        show(_text(summaries), err=True)
        return
    result(
        debugging.as_json,
        lambda: {"tensors": [{"name": name, **summary.record()} for name, summary in summaries.items()]},
        lambda: _text(summaries),
    )


def _text(summaries: dict[str, Summary]) -> str:
    rows = [
        [
            name,
            summary.type,
            f"[{','.join(map(str, summary.shape))}]",
            *map(number, (summary.min, summary.mean, summary.max)),
        ]
        for name, summary in summaries.items()
    ]
    return table(
        "In f64",
        ["name", "type", "shape", "min", "mean", "max"],
        rows,
        right=("min", "mean", "max"),
        least=("type", "mean", "shape"),
        rest=_REST,
    )
