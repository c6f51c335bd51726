"""``ir-runtime cost``: the arithmetic, the parameters and the memory of one run of a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from ..diagnostics import one_line
from ..widths import visible
from .limited import limited
from .models import as_json, read, selects, weights
from .render import plain, plural, result, table
from .shaping import shaped, shapes_of

if TYPE_CHECKING:
    from ..analysis.cost.counted import Cost, LayerCount
    from ..ir.formula import Count
    from ..limits import Limits

__all__ = ["cost", "short"]

_EPILOG = """\b
ir-runtime cost net.xml
ir-runtime cost net.xml --shape 'input_ids=[1,128]' --top 20
ir-runtime cost net.xml --json

Nothing runs: each operation declares its arithmetic. A multiply-accumulate is one MAC and two FLOPs; a
function of one number, such as exp, is one FLOP; what only moves data has none. Layers that are computed
when compiling are left out. With open lengths, counts are formulas of them, such as 2·seq·768·768;
--shape gives numbers. What depends on the data alone, as the boxes that a suppression leaves, is counted
by what it reads.
"""

# Characters of a formula in a table.
_SHOWN = 50

_PREFIXES = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL")
@shaped
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="How many layers to show, the most FLOPs first; 0 for all, in their order.",
)
@selects
@weights
@limited
@as_json
def cost(
    model: str,
    shapes: Sequence[str],
    top: int,
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    limits: Limits,
    as_json: bool,
) -> None:
    """Count the FLOPs, parameters and memory of one run of MODEL, per layer and per operation."""
    from ..api.costing import cost as counted

    found = counted(read(model, weights, example, values, limits=limits), shapes_of(shapes) or None)
    result(as_json, lambda: {"file": model, **found.record()}, lambda: "\n\n".join(_text(model, found, top)))
    if found.unknown:
        click.echo(f"not counted, as ranks are not known: {', '.join(map(visible, found.unknown))}", err=True)


def _text(path: str, found: Cost, top: int) -> Iterator[str]:
    totals = [
        ["FLOPs", _exact(found.flops)],
        ["MACs", _exact(found.macs)],
        ["parameters", _exact(found.parameters)],
        ["activation peak, bytes", "depends on open lengths" if found.peak is None else _exact(found.peak)],
    ]
    yield table(
        f"{visible(path)}: {plural(len(found.layers), 'layer')} that run", ["quantity", "value"], totals
    )
    if found.lengths:
        rows = [[each.input, str(each.axis), each.name, each.bounds] for each in found.lengths]
        yield table("Open lengths", ["input", "axis", "name", "bounds"], rows)
    yield table(
        "Operations",
        ["operation", "layers", "FLOPs", "share", "MACs", "parameters"],
        [
            [
                o.operation,
                str(o.layers),
                short(o.flops),
                _share(o.flops, found.flops),
                short(o.macs),
                short(o.parameters),
            ]
            for o in found.operations
        ],
        right=("layers", "FLOPs", "share", "MACs", "parameters"),
    )
    if found.weights:
        rows = [[w.type, *map(plain, (w.tensors, w.numbers, w.bytes))] for w in found.weights]
        yield table(
            "Weights", ["type", "tensors", "numbers", "bytes"], rows, right=("tensors", "numbers", "bytes")
        )
    yield from _layers(found, top)


def _layers(found: Cost, top: int) -> Iterator[str]:
    rows = found.costliest[:top] if top else found.layers
    if rows:
        header = ["line", "layer", "operation", "FLOPs", "share", "parameters"]
        title = f"The {plural(len(rows), 'layer')} with the most FLOPs" if top else "Layers"
        cells = [_row(each, found.flops) for each in rows]
        yield table(title, header, cells, right=("line", "FLOPs", "share", "parameters"))


def _row(layer: LayerCount, flops: Count) -> list[str]:
    line = layer.layer.where.line
    share = "" if layer.within else _share(layer.flops, flops)
    counted = "?" if layer.flops is None else short(layer.flops)
    return [
        "" if line is None else str(line),
        layer.name,
        layer.operation,
        counted,
        share,
        short(layer.parameters),
    ]


def _share(part: Count | None, whole: Count) -> str:
    """Return a percentage, if both are numbers."""
    return f"{100 * part / whole:.1f} %" if isinstance(part, int) and isinstance(whole, int) and whole else ""


def _exact(count: Count) -> str:
    if not isinstance(count, int):
        return one_line(count.text(), 2 * _SHOWN)
    return plain(count) + (f" ({short(count)})" if count >= 1000 else "")


def short(count: Count) -> str:
    """Return a number with three digits and a prefix, ``4.09 G``; a formula as it is, cut if it is long."""
    if not isinstance(count, int):
        return one_line(count.text(), _SHOWN)
    size, prefix = next(((size, prefix) for size, prefix in _PREFIXES if count >= size), (1, ""))
    return f"{count / size:.3g} {prefix}" if prefix else str(count)
