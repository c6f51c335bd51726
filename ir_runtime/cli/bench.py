"""``ir-runtime bench``: measure speed and memory of a model, optionally against OpenVINO."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from .._util.escaping import visible
from .exits import Exit
from .helping import GroupedCommand
from .models import as_json, count_option, read, weights
from .options import PRECISION, input_files, limit_options, limit_threads
from .progress import bar
from .render import Record, join_conclusion, plural, result, table
from .shaping import input_layouts, reshape, reshape_inputs, shape_option
from .terminal import show

if TYPE_CHECKING:
    from ..bench.report import Counter, Measured, Report, ReportType
    from ..bench.sides import Runtime
    from ..limits import Limits
    from ..openvino.node import Output
    from .feeding import Feed

__all__ = ["bench"]

# Seconds per runtime if neither -t nor -niter is given.
SECONDS = 5.0
_SHORT = {"tput": "throughput", "ctput": "cumulative_throughput"}

_EPILOG = """\b
ir-runtime bench net.xml
ir-runtime bench net.xml -niter 100 -nthreads 2 --against openvino
ir-runtime bench -m net.xml -hint tput -nireq 4 -b 8 --json
ir-runtime bench net.xml -pc -report_type average_counters -report_folder out

Options have the names and meanings of benchmark_app; long options may have one dash or two. With both -niter and
-t, whichever takes longer counts.

Import, read, compile, first inference and peak memory are measured in a separate process for each runtime. Then
both run in one process, in alternating blocks with pauses, so that they see the same machine; a ratio below 1
means less than OpenVINO. On a busy machine, --cpu-time with one thread is more reliable. OpenVINO computes in f32
and does not quantize activations or its KV cache; with --mode performance it runs with its defaults. Variables
are reset before each run, untimed.

Inputs without a file are random, as for `run --random`. Results agree if they differ by at most 1e-4 of an output's
largest value (f16 and bf16 outputs: 1e-2; products in these types: 1e-1), and integers are equal. If only the order
of rows differs, as for detections with equal scores, the report says so.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Run")
@click.argument("model", metavar="[MODEL]", required=False)
@click.option("-m", "--model", "path", metavar="MODEL", help="The model, instead of as an argument.")
@click.option(
    "-d", "--device", default="CPU", show_default=True, help="Accepted for benchmark_app; only CPU."
)
@count_option("-b", "--batch", help="Batch size: sets axis N of -layout, or else the first axis.")
@click.option(
    "-layout", "--layout", metavar="[NAME]LAYOUT", help="Layout of the inputs: [NCHW], or by name a[NC],b[N]."
)
@count_option("-niter", "--niter", help="Number of inferences per runtime.")
@click.option(
    "-t",
    "--time",
    "seconds",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="Measuring time per runtime; by default 5, unless -niter is given.",
)
@count_option(
    "-nireq", "--nireq", help="Concurrent requests; by default 1 for latency, one per core for throughput."
)
@click.option(
    "-hint",
    "--hint",
    type=click.Choice(["latency", "throughput", "tput", "cumulative_throughput", "ctput", "none"]),
    default="latency",
    show_default=True,
    metavar="HINT",
    help="Performance hint: latency, throughput (tput), cumulative_throughput (ctput) or none.",
)
@click.option(
    "-api",
    "--api",
    type=click.Choice(["sync", "async"]),
    help="sync runs one request in this thread, async runs in the background; by default, as -nireq requires.",
)
@count_option("-nstreams", "--nstreams", help="Concurrent inferences that share the threads.")
@count_option("-nthreads", "--nthreads", callback=limit_threads, help="Threads per runtime.")
@shape_option("-shape", "--shape")
@shape_option(
    "-data_shape",
    "--data-shape",
    into="data",
    help="Shape of the data for an input that stays dynamic. Repeatable.",
)
@input_files
@click.option(
    "--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of random inputs."
)
@weights
@click.option("--backend", metavar="NAME", help="The backend: native, numpy, reference, …")
@click.option(
    "-infer_precision",
    "--precision",
    type=PRECISION,
    metavar="TYPE",
    help="Compute precision: f32, f16 or bf16; by default, the model's types here and f32 in OpenVINO.",
)
@click.option(
    "--mode",
    type=click.Choice(["accuracy", "performance"]),
    default="accuracy",
    show_default=True,
    help="EXECUTION_MODE_HINT: accuracy keeps the model's types; performance may lower precision, as OpenVINO does by default.",
)
@click.option("-pc", "--counters", is_flag=True, help="Also show per-layer times.")
@click.option(
    "-report_type",
    "--report-type",
    type=click.Choice(["no_counters", "average_counters", "detailed_counters"]),
    metavar="KIND",
    help="Write benchmark_report.csv like benchmark_app; average_counters and detailed_counters add per-layer "
    "times.",
)
@click.option(
    "-report_folder", "--report-folder", metavar="FOLDER", default=".", help="Folder of the reports."
)
@click.option("--against", type=click.Choice(["openvino"]), help="Also measure OpenVINO, and compare.")
@count_option(
    "--starts",
    default=1,
    help="Measure loading in this many fresh processes; the fastest counts.  [default: 1]",
)
@click.option(
    "--cpu-time", is_flag=True, help="Measure latency of one request as CPU time summed over all threads."
)
@limit_options
@as_json
def bench(
    model: str | None,
    path: str | None,
    device: str,
    batch: int | None,
    layout: str | None,
    niter: int | None,
    seconds: float | None,
    nireq: int | None,
    hint: str,
    api: str | None,
    nstreams: int | None,
    nthreads: int | None,
    shapes: Sequence[str],
    data: Sequence[str],
    files: Sequence[str],
    seed: int,
    weights: str | None,
    backend: str | None,
    precision: str | None,
    mode: str,
    counters: bool,
    report_type: ReportType | None,
    report_folder: str,
    against: Runtime | None,
    starts: int,
    cpu_time: bool,
    limits: Limits,
    as_json: bool,
) -> None:
    """Measure load time, inference latency, throughput and memory of MODEL.

    MODEL is the .xml of an IR.
    """
    file = _one_model(model, path)
    hint = _SHORT.get(hint, hint)
    from .._util.cores import parallelism

    requests = nireq or (parallelism() if "throughput" in hint else 1)
    if requests > 1 and (cpu_time or api == "sync"):
        what = "--cpu-time" if cpu_time else "-api sync"
        raise click.UsageError(f"{what} is for one request at a time, not {requests}")
    from ..backends import chosen
    from ..bench.report import average, count_runs
    from ..bench.report import bench as measured
    from ..bench.sides import Setting, import_runtime
    from ..bench.timing import StopCondition
    from ..openvino.devices import Device
    from ..openvino.layout import Layout
    from ..openvino.layout_helpers import set_layout
    from .feeding import collect

    Device.of(device)
    if against is not None:
        import_runtime(against)  # fail early if it is missing
    net = read(file, weights, limits=limits)
    layouts = input_layouts(net, layout)
    shapes_given = reshape_inputs(net, shapes, batch, layouts)
    reshape(net, data)
    for port, axes in layouts.items():  # of images
        set_layout(port, Layout(axes))
    feeds = collect(net, files, seed)
    setting = Setting(
        file,
        weights,
        shapes_given,
        hint,
        nthreads,
        chosen(backend),
        streams=nstreams,
        precision=precision,
        queued=api == "async",
        mode=mode,
        memory=limits.memory,
        timeout=limits.seconds,
    )
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
    options = {"model": file, "hint": hint, "threads": nthreads, "requests": requests}
    wants_counters = counters or report_type not in (None, "no_counters")
    runs = count_runs(setting, arrays, niter or 1) if wants_counters and not report.partial else []
    if report_type is not None:
        _write_reports(report_folder, report_type, options, report, runs)
    mean = average(runs) if counters and runs else []
    result(
        as_json,
        lambda: {
            **options,
            "inputs": _inputs(feeds),
            **report.record(),
            "counters": [counter.record() for counter in mean] if counters else None,
        },
        lambda: _text(report, hint, requests, nthreads, mean),
    )
    if report.partial:
        raise SystemExit(Exit.INTERRUPTED)


def _one_model(model: str | None, path: str | None) -> str:
    """Return the path of the model, given either as the argument or by ``-m``."""
    if (model is None) == (path is None):
        raise click.UsageError("give the MODEL once: as the argument, or with -m")
    return str(model or path)


def _text(report: Report, hint: str, requests: int, threads: int | None, counters: Sequence[Counter]) -> str:

    details = [_counter_text(counters)] if counters else []
    return join_conclusion([_report_text(report, hint, requests, threads)], details)


def _inputs(feeds: dict[Output, Feed]) -> list[Record]:
    return [
        {
            "name": port.label,
            "type": port.element_type.label,
            "shape": feed.array.shape,
            "source": feed.source,
        }
        for port, feed in feeds.items()
    ]


_TITLES = {"ir_runtime": "ours", "openvino": "OpenVINO"}


def _report_text(report: Report, hint: str, requests: int, threads: int | None) -> str:
    sides = report.sides
    header = ["", *(_TITLES[side.runtime] for side in sides), *(["ratio"] if len(sides) > 1 else [])]
    rows = [
        [title, *(_cell(value(side)) for side in sides), *_ratio(report, key)] for title, value, key in _ROWS
    ]
    title = f"{sides[0].backend} backend, {hint}, {plural(requests, 'request')}"
    title += f", {plural(threads, 'thread')}" if threads else ""
    parts = ["PARTIAL: interrupted, so these are the runs until then"] if report.partial else []
    parts.append(table(title, header, rows, right=header[1:], sentences=header[:1]))
    parts += [
        visible(f"{_TITLES[side.runtime]}: {side.runtime} {side.version}, products in {side.precision}")
        for side in sides
    ]
    if (agreement := report.agreement) is not None:
        verdict = "agree" if agreement.agree else "DIFFER"
        verdict += f" in the order of {agreement.moved} rows alone" if agreement.moved else ""
        parts.append(
            f"results {verdict}; largest relative difference {agreement.difference:.1e}, in output {agreement.output}"
        )
    return "\n".join(parts)


_ROWS: list[tuple[str, Callable[[Measured], float | None], str]] = [
    ("latency, median, ms", lambda side: side.timing.median * 1e3, "median"),
    ("latency, minimum, ms", lambda side: side.timing.minimum * 1e3, "min"),
    ("latency, maximum, ms", lambda side: side.timing.maximum * 1e3, ""),
    ("throughput, 1/s", lambda side: side.timing.rate, "throughput"),
    ("inferences", lambda side: len(side.timing), ""),
    ("first inference, ms", lambda side: side.start.first * 1e3, "first"),
    ("read and compile, ms", lambda side: side.start.load * 1e3, "load"),
    ("import, ms", lambda side: side.start.imported * 1e3, ""),
    ("read, ms", lambda side: side.start.read * 1e3, ""),
    ("compile, ms", lambda side: side.start.compile * 1e3, ""),
    ("peak memory, MiB", lambda side: side.start.peak and side.start.peak / 2**20, "peak"),
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


def _counter_text(counters: Sequence[Counter]) -> str:
    """Return the time of each layer as a table, slowest first."""
    total = sum(counter.ms for counter in counters) or 1.0
    ran = sorted(
        (counter for counter in counters if counter.status == "EXECUTED"), key=lambda counter: -counter.ms
    )
    rows = [
        [counter.layer, counter.operation, f"{counter.ms:.3f}", f"{counter.ms / total:.1%}"]
        for counter in ran
    ]
    inside = len(counters) - len(ran)
    title = f"Layers, mean time; {plural(inside, 'other')} ran as part of these"
    header = ["layer", "operation", "ms", "share"]
    return table(title, header, rows, right=header[2:], least=("operation",), rest="a pipe gets all")


def _write_reports(
    folder: str, kind: ReportType, options: Record, report: Report, runs: Sequence[Sequence[Counter]]
) -> None:
    """Write the reports into a folder, and print their paths."""
    from pathlib import Path

    from ..bench.report import write_report

    ours = report.sides[0].timing
    results = [
        ("latency (ms)", f"{ours.median * 1e3:.2f}"),
        ("Max latency", f"{ours.maximum * 1e3:.2f}"),
        ("Min latency", f"{ours.minimum * 1e3:.2f}"),
        ("Average latency", f"{ours.mean * 1e3:.2f}"),
        ("throughput", f"{ours.rate:.2f}"),
        ("total execution time (ms)", f"{ours.busy * 1e3:.2f}"),
        ("total number of iterations", len(ours)),
    ]
    command = [(name, "" if value is None else value) for name, value in options.items()]
    for file in write_report(Path(folder), kind, command, results, runs):
        show(f"saved the report to {visible(str(file))}", err=True)
