"""Helpers of the benchmark programs: options, subprocesses, tables and means."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import click

TESTS = Path(__file__).parents[1]
ZOO = Path(os.environ.get("IR_RUNTIME_ZOO") or Path.home() / ".cache" / "ir_runtime" / "zoo")
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

Row = dict[str, Any]
Format = Callable[[Any], str]


@dataclass(frozen=True)
class Options:
    """The command-line options."""

    names: tuple[str, ...]
    dir: Path
    backends: tuple[str, ...]
    threads: int
    batches: tuple[int, ...]
    seconds: float
    starts: int
    onnx: bool
    cpu_time: bool
    modes: tuple[str, ...] = ("accuracy",)


@dataclass(frozen=True)
class Part:
    """One benchmark: its table, and its closing text.

    ``measure`` yields rows; one with the key ``error`` has no figures. ``columns`` maps the key of each column
    to the format of its cells, left-aligned names first.
    """

    title: str
    columns: dict[str, Format]
    measure: Callable[[Options], Iterator[Row]]
    summary: Callable[[list[Row]], Iterable[str]] = lambda rows: ()


def milliseconds(value: float) -> str:
    """Format with three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def ratio(value: float) -> str:
    """Format with two decimals."""
    return f"{value:.2f}"


def small(value: float) -> str:
    """Format like 1.2e-06."""
    return f"{value:.0e}"


def fresh(function: Callable[..., Any], *given: Any) -> Any:
    """Return the result of a function of a module in a subprocess, with cold caches and its own memory."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(function, *given).result()


def geometric_mean(values: Iterable[float | None]) -> float:
    """Return the geometric mean of the known values; NaN if there are none."""
    known = [math.log(value) for value in values if value]
    return math.exp(sum(known) / len(known)) if known else math.nan


def setting(options: Options, path: Path, backend: str | None = None, **more: Any) -> Any:
    """Return the settings of a model and its threads for `ir_runtime.bench.sides.Side`."""
    from ir_runtime.bench.sides import Setting

    return Setting(str(path), threads=options.threads, backend=backend, **more)


def program(*parts: Part) -> click.Command:
    """Return the command that runs some benchmarks."""

    @click.command(help=sys.modules["__main__"].__doc__)
    @click.argument("names", nargs=-1, metavar="[NAME]...")
    @click.option(
        "--dir", "folder", type=click.Path(path_type=Path), default=ZOO, help="Folder of the models."
    )
    @click.option("--backend", "backends", multiple=True, help="By default, all but reference.")
    @click.option("--threads", type=int, default=2, show_default=True, help="Of each side.")
    @click.option("--batch", "batches", type=int, multiple=True, default=(1, 8), show_default=True)
    @click.option("--seconds", type=float, default=3.0, show_default=True, help="For each side of each row.")
    @click.option("--starts", type=int, default=3, show_default=True, help="Processes that load each model.")
    @click.option("--onnx/--no-onnx", default=True, help="Time onnx.reference, too.")
    @click.option(
        "--cpu-time", is_flag=True, help="CPU time, not wall time; for one thread on a busy machine."
    )
    @click.option(
        "--mode",
        "modes",
        multiple=True,
        type=click.Choice(["accuracy", "performance"]),
        default=("accuracy", "performance"),
        help="accuracy: both at f32; performance: what is fastest here, and OpenVINO as it comes. Repeatable.",
    )
    @click.option("--json", "target", type=click.Path(path_type=Path), help="Also write the rows to a file.")
    def main(
        names: tuple[str, ...], folder: Path, backends: tuple[str, ...], target: Path | None, **given: Any
    ) -> None:
        for name in THREAD_VARIABLES:
            os.environ[name] = str(given["threads"])  # read when NumPy is imported, so not before this line
        options = Options(names, folder.absolute(), backends or fast_backends(), **given)
        found = {part.title: table(part, options) for part in parts}
        for part in parts:
            for line in part.summary([row for row in found[part.title] if "error" not in row]):
                click.echo(line)
        if target is not None:
            target.write_text(json.dumps(found, indent=2, default=str), encoding="utf-8")

    return main


def fast_backends() -> tuple[str, ...]:
    """Return the available backends except the reference."""
    from ir_runtime.backends import available, load
    from ir_runtime.errors import IRError

    found = []
    for name in available():
        try:
            load(name)
        except (IRError, ImportError):
            continue
        found.append(name)
    return tuple(name for name in found if name != "reference")


def table(part: Part, options: Options) -> list[Row]:
    """Print the rows under a heading as they arrive; return all of them."""
    click.echo(f"\n{part.title}; {options.threads} threads")
    click.echo(_line(part.columns))
    rows = []
    for row in part.measure(options):
        rows.append(row)
        cells = {
            key: form(row[key]) if row.get(key) is not None else "-" for key, form in part.columns.items()
        }
        said = f"  {row['error']}" if "error" in row else ""
        click.echo((_line(cells.values()) if not said else _line(list(cells.values())[:2])) + said)
    return rows


def _line(cells: Iterable[str]) -> str:
    first, *rest = cells
    return f"{first:<30}" + "".join(f"{cell:>16}" for cell in rest)


def attempted(row: Row, figures: Callable[[], Row]) -> Row:
    """Return the row with its figures, or with the error."""
    try:
        return row | figures()
    except Exception as problem:  # one model that fails must not end the table
        return row | failure(problem)


def failure(problem: Exception) -> Row:
    """Return the error as one line."""
    return {"error": f"{type(problem).__name__}: {' '.join(str(problem).split())[:200]}"}


def selected(names: Sequence[str], options: Options) -> list[str]:
    """Return the requested items in the order of the table; by default all."""
    return [name for name in names if name in options.names] if options.names else list(names)
