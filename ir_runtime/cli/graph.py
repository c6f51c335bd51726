"""``ir-runtime graph``: export the graph of a model as DOT, SVG or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .helping import GroupedCommand
from .models import example_options, read, weights
from .options import limit_options
from .render import Record, dump
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits

__all__ = ["graph"]

_EPILOG = """\b
ir-runtime graph net.xml --format dot | dot -Tpdf > net.pdf
ir-runtime graph net.xml --format svg -o net.svg
ir-runtime graph net.xml --format model-explorer -o net.json

dot is for Graphviz; svg needs no other program, but omits the bodies of layers; json has nodes and edges with
inferred types ("ir-runtime guide seeing-the-graph" lists its fields); model-explorer is the format of Model
Explorer, with scopes as namespaces. Models with errors are drawn nevertheless. For large models, use
`ir-runtime report`.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Look")
@click.argument("model", metavar="MODEL")
@click.option(
    "--format",
    "form",
    type=click.Choice(["dot", "svg", "json", "model-explorer"]),
    default="dot",
    show_default=True,
    metavar="FORM",
    help="Output format: dot, svg, json or model-explorer.",
)
@click.option("-o", "--output", metavar="FILE", help="File to write; stdout by default, or with -.")
@click.option("--constants", is_flag=True, help="Include constants.")
@example_options
@weights
@limit_options
def graph(
    model: str,
    form: str,
    output: str | None,
    constants: bool,
    example: int | None,
    values: tuple[str, ...],
    weights: str | None,
    limits: Limits,
) -> None:
    """Write the graph of MODEL as DOT, SVG or JSON."""
    from ..openvino.drawing import record

    net = read(model, weights, example, values, checked=False, limits=limits)
    text = _text(record(net._graph, net._values, net.name, constants), form)
    if output is None or output == "-":
        click.echo(text, nl=False)
        return
    from .._util.files import save_text

    save_text(output, text)
    show(f"saved the graph to {visible(output)}", err=True)


def _text(record: Record, form: str) -> str:
    from ..openvino.drawing import dot_of, model_explorer, svg_of

    if form in ("dot", "svg"):
        return dot_of(record) if form == "dot" else svg_of(record)
    return (dump(record, whole=True) if form == "json" else dump(model_explorer(record))) + "\n"
