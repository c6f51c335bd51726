"""``ir-runtime shapes``: list all shapes in a model, and the constraints on its inputs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import click

from .._util.escaping import shown, visible
from .._util.text import shorten
from .exits import Exit
from .helping import GroupedCommand
from .models import as_json, example_options, note_missing, read, weights
from .options import limit_options
from .progress import status
from .render import Record, finding, join_conclusion, plural, result, table
from .shaping import shape_options, shapes_of
from .terminal import columns, show

if TYPE_CHECKING:
    from ..analysis.constraints.constraint import Constraint, Constraints
    from ..analysis.shapes import PortShape, Shapes
    from ..limits import Limits
    from ..openvino.model import Model

__all__ = ["shapes"]

# The number of characters of a layer's name that are always shown.
_SHORTENED = 30

_EPILOG = """\b
ir-runtime shapes net.xml
ir-runtime shapes net.xml --shape 'data=[?,3,?,?]' --layers '*conv*'
ir-runtime shapes net.xml --no-confirm --json

Dynamic lengths of inputs have names, such as batch, height or seq. Other lengths are formulas in these if
inference at several lengths agrees with one, else bounds such as 1..8, or ?.

Constraints are found by testing which lengths inference accepts. "proved" means that it refuses all others;
"sampled", that it refuses those that were tried; "confirmed", that running the model on random inputs agrees.

The weights may be missing: shapes that depend on them are then taken from the file, as the column "from" shows,
and no constraints are searched.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Check")
@click.argument("model", metavar="MODEL")
@shape_options
@click.option("--layers", multiple=True, metavar="GLOB", help="Show only these layers. Repeatable.")
@click.option("--inputs", "inputs", is_flag=True, help="Also show input ports.")
@click.option("--constraints/--no-constraints", default=True, help="Find the constraints on the inputs.")
@click.option("--confirm/--no-confirm", default=True, help="Run the model to confirm the constraints.")
@example_options
@weights
@limit_options
@as_json
@click.pass_context
def shapes(
    ctx: click.Context,
    model: str,
    shapes: Sequence[str],
    layers: Sequence[str],
    inputs: bool,
    constraints: bool,
    confirm: bool,
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    limits: Limits,
    as_json: bool,
) -> None:
    """List all shapes in MODEL, and the constraints on its input sizes.

    The exit code is 1 if no input shapes satisfy the model.
    """
    from ..analysis.shapes import shapes_in

    net = read(model, weights, example, values, checked=False, limits=limits)
    if shapes:
        net.reshape(shapes_of(shapes))
    wanted_layers = _select_layers(net, layers)
    with_constraints = constraints and net.report.ok
    with status("finding the constraints on the inputs" if with_constraints else ""):
        constraints_found = net.constraints(confirm=confirm) if with_constraints else None
    listed = shapes_in(net._graph, net._values, net._parameter_types, constraints_found)
    rows = [
        row
        for row in listed.ports
        if (inputs or not row.is_input) and (wanted_layers is None or row.layer in wanted_layers)
    ]
    result(
        as_json,
        lambda: _record(model, rows, listed, constraints_found),
        lambda: _text(model, rows, listed, constraints_found),
    )
    _remark(net, note_missing(net, bool(shapes)))
    if constraints_found is not None and constraints_found.error is not None:
        ctx.exit(Exit.FINDINGS)


def _select_layers(net: Model, layers: Sequence[str]) -> frozenset[str] | None:
    """Return the names of the layers that match exact names or glob patterns; ``None`` for all.

    Raises:
        InputError: if a pattern matches no layer; the message suggests similar names.
    """
    from ..openvino.names import unknown_name

    if not layers:
        return None
    names = dict.fromkeys(layer.name for layer in net._graph.everywhere())
    selected = set[str]()
    for pattern in layers:
        matching = {pattern} if pattern in names else {name for name in names if fnmatchcase(name, pattern)}
        if not matching:
            raise unknown_name("layer", pattern, names)
        selected |= matching
    return frozenset(selected)


def _record(model: str, rows: Sequence[PortShape], listed: Shapes, constraints: Constraints | None) -> Record:
    record = None if constraints is None else constraints.record()
    ports = [row.record() for row in rows]
    return {
        "file": model,
        "inputs": [i.record() for i in listed.inputs],
        "ports": ports,
        "constraints": record,
    }


def _text(model: str, rows: Sequence[PortShape], listed: Shapes, constraints: Constraints | None) -> str:
    parts = [f"{visible(model)}: {plural(len(rows), 'port')}"]
    parts += _constraints(constraints) if constraints is not None and listed.inputs else []
    parts += [_symbols(listed)] if listed.inputs else []
    return join_conclusion(parts, [_ports(rows)])


def _symbols(listed: Shapes) -> str:
    rows = [[i.input, str(i.axis), i.name, i.bounds] for i in listed.inputs]
    return table("Open lengths", ["input", "axis", "name", "bounds"], rows)


def _ports(rows: Sequence[PortShape]) -> str:
    header = ["line", "layer", "operation", "port", "type", "shape"]
    cells = [[_line(r), r.layer, r.operation, _port(r), r.type, r.text] for r in rows]
    if any(r.declared is not None for r in rows):
        header.append("declared")
        cells = [[*row, r.declared or ""] for row, r in zip(cells, rows, strict=True)]
    if any(r.is_declared for r in rows):
        header.append("from")
        cells = [[*row, "declaration" if r.is_declared else ""] for row, r in zip(cells, rows, strict=True)]
    return table(
        "Shapes",
        header,
        cells,
        right=("line",),
        least=("line", "operation", "type", "from", "declared"),
        rest="--layers GLOB selects, a pipe gets all",
    )


def _line(row: PortShape) -> str:
    return "" if row.line is None else str(row.line)


def _port(row: PortShape) -> str:
    return f"in {row.port}" if row.is_input else str(row.port)


def _constraints(constraints: Constraints) -> Iterator[str]:
    if constraints.error is not None:
        yield finding(constraints.error)
    elif constraints.found:
        header = ["constraint", "certainty", "violations are refused by"]
        rows = [[c.text, _sure(c), _place_of(c)] for c in constraints]
        yield table("Constraints", header, rows, sentences=header[::2], least=header[2:])
    elif not constraints.undecided:
        yield "Constraints: none; every length is accepted"
    if remarks := [f"{c.text}: {c.remark}" for c in constraints if c.remark]:
        yield _list("Running", remarks)
    if constraints.undecided:
        yield _list("Undecided", constraints.undecided)


def _list(title: str, items: Sequence[str]) -> str:
    return "\n".join([click.style(title, bold=True), *(f"  {shown(item)}" for item in items)])


def _sure(constraint: Constraint) -> str:
    if constraint.confirmed is False:
        return "running differs"
    words = {"proved": constraint.proved, "confirmed": constraint.confirmed is True}
    return ", ".join(word for word, holds in words.items() if holds) or "sampled"


def _place_of(constraint: Constraint) -> str:
    """Return the line and name of the layer that imposes a constraint, shortening long names on a terminal."""
    where = constraint.reason.where if constraint.reason else None
    if where is None:
        return ""
    if (width := columns()) is not None and where.layer is not None:
        where = replace(where, layer=shorten(where.layer, max(width // 3, _SHORTENED)))
    return str(where).removeprefix(f"{where.file}:")


def _remark(net: Model, lacks_weights: bool) -> None:
    from ..diagnostics import Severity

    count = net.report.count(Severity.ERROR) - lacks_weights
    if count:
        errors = plural(count, "error")
        show(f"the model has {errors}, so shapes may be wrong; ir-runtime validate shows them", err=True)
