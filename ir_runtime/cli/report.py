"""``ir-runtime report``: write an HTML page with the graph and details of a model."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .exits import Exit
from .helping import GroupedCommand
from .models import read, weights
from .options import data_options, feeds_of, limit_options, parse_size
from .render import plain
from .shaping import reshape
from .terminal import show

if TYPE_CHECKING:
    from ..limits import Limits
    from ..openvino.model import Model
    from ..report import Measures, OldModel

__all__ = ["report"]

_EPILOG = """\b
ir-runtime report net.xml -o report.html
ir-runtime report net.xml --profile --histograms -i image=cat.npy
ir-runtime report net.xml --compare openvino:f32 --pictures --random
ir-runtime report net.xml --values 1M
ir-runtime report new.xml --diff old.xml

The exit code is 1 for errors in the model, a difference beyond rounding, Inf or NaN, or changes; else 0, also with
warnings. These problems are also printed.

The page needs no network and no server: open it in a browser, or attach it to an issue. Measurements use random
data for inputs that are not given.
"""


def _size_of_values(_: click.Context, __: click.Parameter, text: str | None) -> int | None:
    return None if text is None else sys.maxsize if text == "all" else parse_size(text)


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Look")
@click.argument("model", metavar="MODEL")
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    help="File to write; - for stdout.",
)
@click.option("--profile", is_flag=True, help="Measure the time of each layer.")
@click.option(
    "--runs",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Number of timed runs; the median is shown.",
)
@click.option(
    "--compare", "against", metavar="SIDE", help="Show the error of each layer, as by compare --against."
)
@click.option(
    "--trace-nan",
    "precision",
    type=click.Choice(["f32", "f16", "bf16"]),
    help="Show where Inf or NaN first appears in this precision.",
)
@click.option(
    "--histograms", is_flag=True, help="Show histograms of weights, and of activations if the model runs."
)
@click.option(
    "--pictures",
    is_flag=True,
    help="Show outputs of layers as pictures; with --compare, those of both sides and the difference.",
)
@click.option(
    "--values",
    callback=_size_of_values,
    metavar="SIZE",
    help="Include the values of constants up to SIZE, to view and save: 64K, 2M, all.  [default: a few small ones]",
)
@click.option("--diff", "old", metavar="OLD", help="Show this older model beside MODEL, with the changes.")
@click.option("--constraints/--no-constraints", default=True, help="Find the constraints on the inputs.")
@click.option("--backend", metavar="NAME", help="The backend: native, numpy, reference.")
@data_options
@weights
@limit_options
def report(
    model: str,
    output: str,
    profile: bool,
    runs: int,
    against: str | None,
    precision: str | None,
    histograms: bool,
    pictures: bool,
    values: int | None,
    old: str | None,
    constraints: bool,
    backend: str | None,
    files: Sequence[str],
    random: bool,
    seed: int,
    shapes: Sequence[str],
    weights: str | None,
    limits: Limits,
) -> None:
    """Write an HTML report of MODEL: its graph, all details of its layers, and measurements.

    Models with errors are shown together with their findings.
    """
    with_measurements = bool(profile or against or precision or pictures or files or random)
    net = read(model, weights, checked=with_measurements, limits=limits)
    measures = None
    if with_measurements:
        from ..debug import measure

        if not files:
            show(f"note: the inputs are random numbers (seed {seed}); -i gives others", err=True)
        feeds = feeds_of(net, files, shapes, seed)
        measures = measure(
            net,
            feeds,
            against=against,
            precision=precision,
            histograms=histograms,
            pictures=pictures,
            backend=backend,
        )
        if profile:
            from ..bench.profiling import add_profile
            from ..bench.profiling import profile as profiled

            measures = add_profile(measures, profiled(net, feeds, runs=runs, backend=backend))
    elif shapes or histograms:
        measures = _measure_statically(net, shapes, histograms)
    target = None if output == "-" else output
    beside = _beside(old, net, limits, constraints)
    page = net.report(target, measures, constraints=constraints, old=beside, values=values)
    if target is None:
        click.echo(page.html, nl=False)
    else:
        show("\n".join(visible(str(problem)) for problem in page.story.problems))
        show(f"{visible(output)}: {plain(len(page.html.encode()))} bytes", err=True)
    if not page.story.ok:
        raise SystemExit(Exit.FINDINGS)


def _measure_statically(net: Model, shapes: Sequence[str], histograms: bool) -> Measures:
    from ..report import Measures

    reshape(net, shapes)
    return Measures(histograms=histograms)


def _beside(old: str | None, net: Model, limits: Limits, constraints: bool) -> OldModel | None:
    from ..debug import old_model

    return None if old is None else old_model(read(old, None, limits=limits), net, constraints)
