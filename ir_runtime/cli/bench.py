"""``ir-runtime bench``: measure a model, optionally against OpenVINO."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from .fed import input_files
from .models import as_json, read, weights
from .progress import bar
from .render import Record, clean, result, table
from .shaping import shape_option, shapes_of

if TYPE_CHECKING:
    from ..api.model import Model
    from ..api.nodes import Output
    from ..bench.report import Measured, Report
    from .feeding import Feed

__all__ = ["bench"]

# Seconds for each side where neither -t nor -niter says.
SECONDS = 5.0
_TITLES = {"ir_runtime": "ours", "openvino": "OpenVINO"}

_EPILOG = """\b
ir-runtime bench net.xml
ir-runtime bench net.xml -niter 100 -nthreads 2 --against openvino
ir-runtime bench net.xml -hint throughput -nireq 4 -shape 'data=[8,3,224,224]' --json

Options have the names of benchmark_app; those of several letters may also have two dashes. With both
-niter and -t, whichever takes longer decides.

Import, read, compile, first inference and peak memory are measured in a process of its own for each
side. Then the sides run in one process, in alternating blocks with a pause between, so that both see the
same machine; a ratio below 1 means less than OpenVINO's. On a busy machine, CPU time on one thread says
more. OpenVINO computes in f32, and does not quantize activations or its cache of keys. Variables are
reset before each run, untimed.

Inputs that no file gives are random, as `run --random` makes them. Results agree where they differ by
at most 1e-4 of an output's largest number (f16, bf16: 1e-2), and all but reals are equal. Where only the
order of rows differs, as of objects that are equally likely, that is said.
"""


@click.command(epilog=_EPILOG)
@click.argument("model", metavar="MODEL")
@click.option("-niter", "--niter", type=click.IntRange(min=1), metavar="N", help="Inferences on each side.")
@click.option(
    "-t",
    "--time",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long each side runs; by default 5, unless -niter is given.",
)
@click.option(
    "-nireq",
    "--nireq",
    type=click.IntRange(min=1),
    metavar="N",
    help="Requests at once; by default 1 for latency, one per core for throughput.",
)
@click.option(
    "-hint",
    "--hint",
    type=click.Choice(["latency", "throughput"]),
    default="latency",
    show_default=True,
    help="What to optimize for.",
)
@click.option(
    "-nthreads", "--nthreads", type=click.IntRange(min=1), metavar="N", help="Threads of each side."
)
@shape_option("-shape", "--shape")
@shape_option(
    "-data_shape",
    "--data-shape",
    into="data",
    help="The shape of the data of an input that keeps its open lengths. Repeatable.",
)
@input_files
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="For random inputs.")
@weights
@click.option("-b", "--backend", metavar="NAME", help="The backend: numba, numpy, reference, …")
@click.option("--against", type=click.Choice(["openvino"]), help="Also measure it, and compare.")
@click.option(
    "--starts",
    type=click.IntRange(min=1),
    default=1,
    metavar="N",
    help="Fresh processes that load the model; the best counts.  [default: 1]",
)
@click.option("--cpu-time", is_flag=True, help="Latency in CPU time, of all threads, for one request.")
@as_json
def bench(
    model: str,
    niter: int | None,
    seconds: float | None,
    nireq: int | None,
    hint: str,
    nthreads: int | None,
    shapes: Sequence[str],
    data: Sequence[str],
    files: Sequence[str],
    seed: int,
    weights: str | None,
    backend: str | None,
    against: Any,
    starts: int,
    cpu_time: bool,
    as_json: bool,
) -> None:
    """Measure how long MODEL takes to load and to run, and how much memory.

    MODEL is the .xml of an IR.
    """
    _limit_threads(nthreads)
    from ..backends import awaited
    from ..bench.report import bench as measured
    from ..bench.sides import Setting, import_runtime
    from ..bench.timing import StopCondition
    from .feeding import collect

    if against is not None:
        import_runtime(against)  # before anything takes long
    net = _model(model, weights, shapes, data)
    feeds = collect(net, files, seed)
    given = [(key, str(shape)) for key, shape in shapes_of(shapes).items()]
    # By its name, the backend's kernels are waited for, and what is measured is what answers from then on.
    setting = Setting(model, weights, given, hint, nthreads, awaited(backend, net._is_large))
    requests = nireq or (1 if hint == "latency" else os.cpu_count() or 1)
    if cpu_time and requests > 1:
        raise click.UsageError(f"--cpu-time is for one request at a time, not {requests}")
    until = StopCondition(niter or 1, seconds or (0.0 if niter else SECONDS))
    arrays = [feed.array for feed in feeds.values()]
    with bar("measuring", 1.0) as shown:
        report = measured(
            setting,
            arrays,
            against=against,
            requests=requests,
            until=until,
            starts=starts,
            clock=time.process_time if cpu_time else time.perf_counter,
            progress=shown.reach,
        )
    asked = {"model": model, "hint": hint, "threads": nthreads, "requests": requests}
    result(
        as_json,
        lambda: {**asked, "inputs": _inputs(feeds), **report.record()},
        lambda: _text(report, hint, requests, nthreads),
    )


def _limit_threads(count: int | None) -> None:
    """Set the number of threads of NumPy's BLAS, which reads it only while it is imported."""
    if count is not None and "numpy" not in sys.modules:
        for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
            os.environ[name] = str(count)


def _model(path: str, weights: str | None, shapes: Sequence[str], data: Sequence[str]) -> Model:
    """Read the model, and reshape its inputs."""
    net = read(path, weights)
    for texts in filter(None, (shapes, data)):
        net.reshape(shapes_of(texts))
    return net


def _inputs(feeds: dict[Output, Feed]) -> list[Record]:
    return [
        {"name": port.label, "type": str(port.element_type), "shape": feed.array.shape, "source": feed.source}
        for port, feed in feeds.items()
    ]


def _text(report: Report, hint: str, requests: int, threads: int | None) -> str:
    sides = report.sides
    header = ["", *(_TITLES[side.runtime] for side in sides), *(["ratio"] if len(sides) > 1 else [])]
    rows = [
        [title, *(_cell(value(side)) for side in sides), *_ratio(report, key)] for title, value, key in _ROWS
    ]
    title = f"{sides[0].backend} backend, {hint}, {_count(requests, 'request')}"
    title += f", {_count(threads, 'thread')}" if threads else ""
    parts = [table(title, header, rows, right=header[1:])]
    parts += [clean(f"{_TITLES[side.runtime]}: {side.runtime} {side.version}") for side in sides]
    if (found := report.agreement) is not None:
        said = "agree" if found.agree else "DIFFER"
        said += f" in the order of {found.moved} rows alone" if found.moved else ""
        parts.append(
            f"results {said}; largest relative difference {found.difference:.1e}, in output {found.output}"
        )
    return "\n".join(parts)


_ROWS: list[tuple[str, Callable[[Measured], float | None], str]] = [
    ("import, ms", lambda side: side.start.imported * 1e3, ""),
    ("read, ms", lambda side: side.start.read * 1e3, ""),
    ("compile, ms", lambda side: side.start.compile * 1e3, ""),
    ("read and compile, ms", lambda side: side.start.load * 1e3, "load"),
    ("first inference, ms", lambda side: side.start.first * 1e3, "first"),
    ("peak memory, MiB", lambda side: side.start.peak and side.start.peak / 2**20, "peak"),
    ("latency, minimum, ms", lambda side: side.timing.minimum * 1e3, "min"),
    ("latency, median, ms", lambda side: side.timing.median * 1e3, "median"),
    ("latency, maximum, ms", lambda side: side.timing.maximum * 1e3, ""),
    ("throughput, 1/s", lambda side: side.timing.rate, "throughput"),
    ("inferences", lambda side: len(side.timing), ""),
]


def _cell(value: float | None) -> str:
    if value is None or isinstance(value, int):
        return "-" if value is None else str(value)
    return f"{value:.0f}" if value >= 1000 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _ratio(report: Report, key: str) -> list[str]:
    if len(report.sides) < 2:
        return []
    ratio = report.ratio(key) if key else None
    return ["" if not key else "-" if ratio is None else f"{ratio:.2f}"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")
