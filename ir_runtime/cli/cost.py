"""``ir-runtime cost``: FLOPs, parameters and memory of one inference."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from .._util.escaping import one_line, shown
from .._util.text import format_prefixed
from ..ir.formula import Formula
from .helping import GroupedCommand
from .models import as_json, example_options, note_missing, read, weights
from .options import limit_options
from .render import join_conclusion, plain, plural, result, table
from .shaping import hinting_at_shapes, shape_options, shapes_of
from .terminal import show

if TYPE_CHECKING:
    from ..analysis.cost import Cost, LayerCount, RunLength
    from ..ir.formula import Count
    from ..limits import Limits
    from ..openvino.node import Output

__all__ = ["cost", "short"]

_EPILOG = """\b
ir-runtime cost net.xml
ir-runtime cost net.xml --shape 'input_ids=[1,128]' --top 20
ir-runtime cost decoder.xml --at batch=1 --at seq=1 --at 'n*=512'
ir-runtime cost net.xml --json

The model does not run. A multiply-accumulate is one MAC and two FLOPs; an elementwise function such as exp is one
FLOP; operations that only move data have none. Layers computed at compilation are excluded. With dynamic lengths,
counts are formulas such as 2·seq·768·768; --shape and --at evaluate them. Lengths known only at run time are n1,
n2, ..., iterations of a loop are trips1; a table shows where they occur. Operations whose work depends on the data,
such as non-maximum suppression, are counted by the size of their inputs.

The weights may be missing: shapes that depend on them are then taken from the file, and "declared" marks the
layers with such shapes.
"""

# The maximum width of a formula in a table.
_SHOWN = 50

_WHAT = {"trips": "iterations", "parts": "iterations", "frame": "length of a frame"}


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Look")
@click.argument("model", metavar="MODEL")
@shape_options
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    metavar="N",
    help="Number of layers to show, by descending FLOPs; 0 shows all, in model order.",
)
@click.option(
    "--at",
    "lengths",
    multiple=True,
    metavar="NAME=N",
    help="Value of a dynamic length: seq=128, n*=32.",
)
@example_options
@weights
@limit_options
@as_json
def cost(
    model: str,
    shapes: Sequence[str],
    lengths: Sequence[str],
    top: int,
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    limits: Limits,
    as_json: bool,
) -> None:
    """Count FLOPs, parameters and memory of one inference of MODEL, per layer and per operation."""
    from ..openvino.costing import cost as counted

    net = read(model, weights, example, values, limits=limits, lacking=True)
    note_missing(net, bool(shapes))
    with hinting_at_shapes():
        counts = counted(net, shapes_of(shapes) or None)
    if lengths:
        counts = counts.given(_numbers(lengths, counts.symbols))
    result(
        as_json,
        lambda: {"file": model, **counts.record()},
        lambda: join_conclusion([_totals(model, counts, net.inputs)], [*_details(counts, top)]),
    )
    if counts.unknown:
        show(f"not counted, as ranks are not known: {', '.join(map(shown, counts.unknown))}", err=True)


def _numbers(texts: Sequence[str], names: frozenset[str]) -> dict[str, int]:
    """Parse assignments such as ``n*=32``, and return the value of each dynamic length whose name matches."""
    from .._util.nearest import did_you_mean

    numbers: dict[str, int] = {}
    for text in texts:
        pattern, equals, number = text.partition("=")
        if not (equals and number.isascii() and number.isdecimal()):
            raise click.BadParameter(f"{text!r} is not NAME=N, such as seq=128", param_hint="--at")
        matching = fnmatch.filter(sorted(names), pattern)
        if not matching:
            known = (
                f"the formulas have {', '.join(sorted(names))}" if names else "the costs are numbers already"
            )
            near = did_you_mean(pattern, names, before="; ")
            raise click.BadParameter(f"unknown length {pattern!r}: {known}{near}", param_hint="--at")
        numbers |= dict.fromkeys(matching, int(number))
    return numbers


def _totals(path: str, result: Cost, inputs: Sequence[Output]) -> str:
    totals = [
        ["FLOPs", _exact(result.flops)],
        ["MACs", _exact(result.macs)],
        ["parameters", _exact(result.parameters)],
        [
            "activation peak, bytes",
            _why_no_peak(result, inputs) if result.peak is None else _exact(result.peak),
        ],
    ]
    title = f"{shown(path)}: {plural(len(result.layers), 'layer')} that run"
    return table(title, ["quantity", "value"], totals, sentences=("quantity", "value"))


def _details(result: Cost, top: int) -> Iterator[str]:
    if result.lengths:
        rows = [[row.input, str(row.axis), row.name, row.bounds] for row in result.lengths]
        yield table("Open lengths", ["input", "axis", "name", "bounds"], rows)
    used = frozenset[str]().union(
        *(count.symbols for count in (result.flops, result.macs) if isinstance(count, Formula))
    )
    if rows := [[row.name, row.layer, _what(row)] for row in result.run_lengths if row.name in used]:
        yield table("Numbers known only at run time", ["name", "layer", "what"], rows, sentences=("what",))
    yield table(
        "Operations",
        ["operation", "layers", "FLOPs", "share", "MACs", "parameters"],
        [
            [
                o.operation,
                str(o.layers),
                short(o.flops),
                _share(o.flops, result.flops),
                short(o.macs),
                short(o.parameters),
            ]
            for o in result.operations
        ],
        right=("layers", "FLOPs", "share", "MACs", "parameters"),
        least=("MACs", "layers", "parameters", "share"),
    )
    if result.weights:
        rows = [[w.type, *map(plain, (w.tensors, w.numbers, w.bytes))] for w in result.weights]
        header = ["type", "tensors", "numbers", "bytes"]
        yield table("Weights", header, rows, right=header[1:], least=("tensors", "numbers"))
    yield from _layers(result, top)


def _what(number: RunLength) -> str:
    """Describe an unknown of a formula that is known only at run time."""
    if number.axis is not None:
        return f"axis {number.axis}"
    return _WHAT.get(number.name.rstrip("0123456789"), "")


def _why_no_peak(result: Cost, inputs: Sequence[Output]) -> str:
    """Explain which dynamic lengths leave the activation peak unknown, and which option sets them."""
    if result.unknown:
        return "unknown, as ranks are not known"
    if not result.lengths:
        return "depends on lengths known only at run time"
    names = ", ".join(dict.fromkeys(length.name for length in result.lengths))
    return f"depends on {names}; pass numbers: {_shapes_to_give(result, inputs)}"


def _shapes_to_give(result: Cost, inputs: Sequence[Output]) -> str:
    """Return the ``--shape`` options that would make all inputs static: ``--shape 'image[BATCH,1,8,8]'``."""
    names: dict[str, dict[int, str]] = {}
    for length in result.lengths:
        names.setdefault(length.input, {})[length.axis] = length.name.upper()
    shapes = []
    for port in inputs:
        label = next((name for name in (*port.names, port.node.friendly_name) if name in names), None)
        if label is not None:
            dims = (names[label].get(axis, str(dim)) for axis, dim in enumerate(port.partial_shape))
            shapes.append(f"--shape '{label}[{','.join(dims)}]'")
    return " ".join(shapes)


def _layers(result: Cost, top: int) -> Iterator[str]:
    rows = result.costliest[:top] if top else result.layers
    if rows:
        header = ["line", "layer", "operation", "FLOPs", "share", "parameters"]
        if any(layer.is_declared for layer in rows):
            header.append("shapes")
        title = f"The {plural(len(rows), 'layer')} with the most FLOPs" if top else "Layers"
        cells = [_row(layer, result.flops)[: len(header)] for layer in rows]
        yield table(
            title,
            header,
            cells,
            right=("line", "FLOPs", "share", "parameters"),
            least=("line", "parameters", "operation", "shapes", "share"),
        )


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
        "declared" if layer.is_declared else "",
    ]


def _share(part: Count | None, whole: Count) -> str:
    """Return a percentage; empty unless both counts are numbers."""
    return f"{100 * part / whole:.1f} %" if isinstance(part, int) and isinstance(whole, int) and whole else ""


def _exact(count: Count) -> str:
    if not isinstance(count, int):
        return _formula(count, 4 * _SHOWN)
    return plain(count) + (f" ({short(count)})" if count >= 1000 else "")


def _formula(formula: Formula, width: int) -> str:
    """Truncate a formula to the terms that fit a width."""
    text = formula.text()
    terms = text.split(" + ")
    shown = len(terms)
    while shown > 1 and len(text) > width:
        shown -= 1
        text = f"{' + '.join(terms[:shown])} + {plural(len(terms) - shown, 'more term')}"
    return one_line(text, width)


def short(count: Count) -> str:
    """Format a number with three digits and an SI prefix, ``4.09 G``; truncate a formula."""
    return format_prefixed(count) if isinstance(count, int) else _formula(count, _SHOWN)
