"""``ir-runtime budget``: rank layers by the accuracy lost in a lower precision."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING

import click

from .helping import GroupedCommand
from .long import Debugging, debugging_options
from .models import as_json, read
from .render import result, table
from .terminal import columns

if TYPE_CHECKING:
    from types import ModuleType

    from .._util.records import Record
    from ..debug import Budget
    from ..debug.budget import Metric
    from ..ir.tensor import Array

__all__ = ["budget"]

_EPILOG = """\b
ir-runtime budget net.xml -i x=x.npy --to w8a8 --keep 3
ir-runtime budget net.xml -i samples/ --to int4 --group-size 64,128
ir-runtime budget net_int8.xml -i a.npz -i b.npz --metric rate.py:top1

int8 and int4 quantize weights (group size -1 is one scale per channel), w8a8 weights and activations like NNCF.
stored compares a quantized model with itself in floating point, and is the default for such models; else bf16 is.

Each layer is computed alone in the lower precision; its error is relative to f32, for the output where it is
largest. The last line is an ignored_scope for NNCF. An input given several times, or as a folder of arrays, has
several samples. A metric takes a list of dicts, the outputs of each sample by name, and returns a number, higher
is better.
"""


def _numbers(_: click.Context, __: click.Parameter, text: str | None) -> Sequence[int | None]:
    """Parse a comma-separated list of integers such as ``64,128``."""
    try:
        return [None] if text is None else [int(part) for part in text.split(",")]
    except ValueError:
        raise click.BadParameter(f"{text!r} is not a list of numbers such as 64,128") from None


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Compare")
@click.option(
    "--to",
    type=click.Choice(["bf16", "f16", "int8", "int4", "w8a8", "stored"]),
    metavar="PRECISION",
    help="Lower precision: bf16, f16, int8, int4, w8a8 or stored; see below.",
)
@click.option(
    "--keep",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Number of layers to keep in f32.",
)
@click.option(
    "--group-size",
    "group_sizes",
    callback=_numbers,
    metavar="N,...",
    help="Weights per quantization scale: 64,128.",
)
@click.option(
    "--metric",
    metavar="FILE:NAME",
    help="Python function that rates outputs; higher is better.",
)
@click.option(
    "--original",
    metavar="XML",
    help="The model before quantization.",
)
@debugging_options()
@as_json
def budget(
    debugging: Debugging,
    to: str | None,
    keep: int,
    group_sizes: Sequence[int | None],
    metric: str | None,
    original: str | None,
) -> None:
    """Rank the layers of MODEL by the accuracy lost in a lower precision, and choose which to keep in f32."""
    from ..debug import budget as compute

    rate = None if metric is None else _load_metric(metric)
    before = None if original is None else read(original, None, limits=debugging.limits)
    with debugging.working_on_sets("computing") as (model, sets):
        inputs = [dict(enumerate(feeds)) for feeds in sets]
        budgets = [
            compute(model, inputs, to, keep, group_size=size, metric=rate, original=before)
            for size in group_sizes
        ]
    is_plain = columns() is None
    result(
        debugging.as_json,
        lambda: _record(budgets),
        lambda: "\n\n".join(str(one) if is_plain else _format_costs(one) for one in budgets),
    )


def _record(budgets: Sequence[Budget]) -> Record:
    """Return the record of the first budget, with those for other group sizes nested in it."""
    first, *others = (one.record() for one in budgets)
    return first | {"others": list(others)}


def _format_costs(report: Budget) -> str:
    """Format the layer costs as a table that fits the terminal."""
    if not report.layers:
        return report.summary
    has_metric = report.metric is not None
    headings = ["error", *(["metric"] if has_metric else []), "layer", "operation"]
    rows = [[*cost.figures.split("  "), cost.layer, cost.operation] for cost in report.layers]
    title = f"Error at the outputs if one layer is {report.place}"
    right = ("error", "metric")
    costs = table(title, headings, rows, right=right, least=("operation",), rest="a pipe gets all")
    return f"{costs}\n{report.summary}"


_FORM = "--metric FILE.py:FUNCTION, or --metric MODULE:FUNCTION for a module that is installed"


def _load_metric(text: str) -> Metric:
    """Load the user's metric, a function that rates outputs; its exceptions become errors with file and line.

    A file is executed only if it is named as a file. Modules are imported from ``sys.path`` without the working
    directory, so that no file there is executed by accident.

    Args:
        text: ``FILE.py:FUNCTION`` or ``MODULE:FUNCTION``.

    Raises:
        InputError: if the file, module or function does not exist or cannot be loaded.
    """
    from .._util.nearest import did_you_mean
    from ..errors import InputError

    where, colon, name = text.rpartition(":")
    if not colon or not where or not name:
        raise InputError(f"{text!r} does not name a function", hint=_FORM)
    with _convert_errors(text, "cannot be loaded"):
        module = _file(where) if where.endswith(".py") else _module(where)
    metric = getattr(module, name, None)
    if not callable(metric):
        functions = [name for name, value in vars(module).items() if callable(value)]
        raise InputError(f"{where} has no function {name!r}", hint=did_you_mean(name, functions) or _FORM)
    return _wrap_metric(text, metric)


def _wrap_metric(text: str, metric: Callable[..., float]) -> Metric:
    def rate(outputs: list[dict[str, Array]]) -> float:
        with _convert_errors(text, "failed"):
            return metric(outputs)

    return rate


@contextmanager
def _convert_errors(text: str, what: str) -> Iterator[None]:
    """Convert exceptions raised by the user's code to errors with file and line."""
    import traceback

    from ..errors import InputError

    try:
        yield
    except (InputError, MemoryError):
        raise
    except (Exception, SystemExit) as problem:
        frames = [
            frame for frame in traceback.extract_tb(problem.__traceback__) if frame.filename != __file__
        ]
        place = f" ({frames[-1].filename}, line {frames[-1].lineno})" if frames else ""
        raise InputError(f"--metric {text} {what}: {type(problem).__name__}: {problem}{place}") from None


def _file(path: str) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    from ..errors import InputError

    if not os.path.isfile(path):
        raise InputError(f"{path!r} is not a file", hint=_FORM)
    spec = spec_from_file_location("ir_runtime_metric", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _module(name: str) -> ModuleType:
    from pathlib import Path

    from .._util.child_process import search_path
    from ..errors import InputError

    before = sys.path
    sys.path = search_path()
    try:
        return import_module(name)
    except ModuleNotFoundError as problem:
        if problem.name is None or not name.startswith(problem.name):
            raise
        file = Path(*name.split(".")).with_suffix(".py")
        here = f"./{file.as_posix()}"
        hint = f"--metric {here}:FUNCTION runs the file in the working directory" if file.is_file() else _FORM
        raise InputError(f"unknown module {name!r}", hint=hint) from None
    finally:
        sys.path = before
