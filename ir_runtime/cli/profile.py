"""``ir-runtime profile``: measure per-layer times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .._util.escaping import json_text, visible
from .cost import short
from .helping import GroupedCommand
from .models import as_json, count_option, read, weights
from .options import data_options, limit_options, limit_threads
from .render import join_conclusion, result, table
from .shaping import reshape
from .terminal import show

if TYPE_CHECKING:
    from ..bench.profiled import ProfileReport, StepTime, Trace
    from ..limits import Limits

__all__ = ["profile"]

_EPILOG = """\b
ir-runtime profile net.xml
ir-runtime profile net.xml -i image=cat.npy --runs 20 --chrome trace.json
ir-runtime profile net.xml --shape 'data=[1,3,224,224]' --threads 1 --against openvino

Profiled runs alternate with unprofiled ones; times are medians. A row is a step of the compiled model: a layer,
including layers fused into its kernel, named after the one with the most FLOPs. The spread is half the range
over the median. GFLOP/s and GB/s are counted FLOPs and bytes, including weights, per time. The roofline is the
limit given by the measured peaks of this machine: of an f32 matrix product, or a layer that is faster, and of a
memory copy. More than 100 % means that data stayed in the caches.

Inputs without a file are random. Open traces in https://ui.perfetto.dev or chrome://tracing: they show the layers
of each run, the time between them, and the number of busy threads.
"""


@click.command(epilog=_EPILOG, cls=GroupedCommand, group="Run")
@click.argument("model", metavar="MODEL")
@data_options
@weights
@click.option(
    "--runs", type=click.IntRange(min=1), default=5, show_default=True, help="Number of measured runs."
)
@click.option("--backend", metavar="NAME", help="The backend: native, numpy, reference, …")
@count_option("--threads", callback=limit_threads, help="Number of threads.")
@click.option("--against", type=click.Choice(["openvino"]), help="Also show OpenVINO's performance counters.")
@click.option("--chrome", metavar="FILE", help="Write a trace for Perfetto or chrome://tracing.")
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of rows to show, slowest first; 0 shows all, in execution order.",
)
@limit_options
@as_json
def profile(
    model: str,
    files: Sequence[str],
    random: bool,
    seed: int,
    shapes: Sequence[str],
    weights: str | None,
    runs: int,
    backend: str | None,
    threads: int | None,
    against: str | None,
    chrome: str | None,
    top: int,
    limits: Limits,
    as_json: bool,
) -> None:
    """Measure the time of each layer of MODEL, and whether compute or memory bandwidth limits it."""
    from ..bench.profiling import profile as measured
    from .feeding import collect

    if against is not None:
        from ..bench.sides import OPENVINO, import_runtime

        import_runtime(OPENVINO)  # fail early if it is missing
    if chrome is not None:
        from .._util.files import resolve_target

        resolve_target(Path(chrome))
    net = read(model, weights, limits=limits)
    reshape(net, shapes)
    feeds = collect(net, files, seed)
    arrays = [feeds[port].array for port in net.inputs]
    report = measured(net, arrays, runs=runs, backend=backend, threads=threads, against=against, name=model)
    if chrome is not None:
        _save(chrome, report.chrome_trace())
    result(as_json, report.record, lambda: join_conclusion([*_totals(report)], [*_details(report, top)]))


def _save(path: str, trace: Trace) -> None:
    from .._util.files import save_text

    save_text(path, json_text(trace))
    show(f"saved the trace to {visible(path)}", err=True)


def _totals(report: ProfileReport) -> Iterator[str]:
    peaks = report.peaks
    totals = [
        ["latency, median, ms", _ms(report.seconds)],
        ["latency, fastest and slowest run, ms", " to ".join(map(_ms, report.range or ()))],
        ["all layers, ms", _ms(report.total)],
        ["peak of a product of matrices, GFLOP/s", f"{peaks.flops / 1e9:.1f}"],
        ["peak of a copy, GB/s", f"{peaks.bandwidth / 1e9:.1f}"],
    ]
    if report.other is not None:
        totals.insert(2, ["OpenVINO's latency, median, ms", _ms(report.other)])
    threads = "" if report.threads is None else f", threads: {report.threads}"
    yield table(
        f"{visible(report.model)}: {report.backend} backend{threads}",
        ["quantity", "value"],
        totals,
        sentences=("quantity", "value"),
    )
    if report.is_busy:
        yield "The machine is busy: runs differ threefold or more, so times of layers may, too."


def _details(report: ProfileReport, top: int) -> Iterator[str]:
    rows = [
        [
            operation.operation,
            str(operation.steps),
            _ms(operation.seconds),
            _share(operation.seconds, report.total),
        ]
        for operation in report.operations
    ]
    yield table("Operations", ["operation", "steps", "ms", "share"], rows, right=("steps", "ms", "share"))
    yield _steps(report, top)
    if report.compared:
        yield _against(report, top)


def _steps(report: ProfileReport, top: int) -> str:
    shown = report.slowest[:top] if top else report.steps
    header = ["layer", "computes", "ms", "spread", "share", "FLOPs", "GFLOP/s", "GB/s", "bound", "roofline"]
    return table(
        "The slowest layers" if top else "Layers",
        header,
        [_row(report, step) for step in shown],
        right=("ms", "spread", "share", "FLOPs", "GFLOP/s", "GB/s", "roofline"),
        least=("GB/s", "GFLOP/s", "FLOPs", "spread", "bound", "roofline", "computes"),
    )


def _row(report: ProfileReport, step: StepTime) -> list[str]:
    computes = step.pattern or " + ".join(operation.partition("-")[0] for operation in step.operations)
    reached = step.efficiency(report.peaks)
    return [
        step.name,
        computes,
        _ms(step.seconds),
        "" if step.spread is None else f"± {100 * step.spread:.0f} %",
        "" if step.within else _share(step.seconds, report.total),
        "" if step.flops is None else short(step.flops),
        _rate(step.gflops),
        _rate(step.gbytes),
        (step.bound(report.peaks) or "") if step.flops else "",
        f"{100 * reached:.0f} %" if reached and step.flops else "",
    ]


def _against(report: ProfileReport, top: int) -> str:
    shown = report.compared[:top] if top else report.compared
    rows = [
        [
            row.layers[0] + (f" and {len(row.layers) - 1} more" if len(row.layers) > 1 else ""),
            _ms(row.seconds),
            _ms(row.other),
            f"{row.seconds / row.other:.2f}" if row.other else "",
            ", ".join(row.nodes),
        ]
        for row in shown
    ]
    header = ["layers", "ours, ms", "OpenVINO, ms", "ratio", "OpenVINO's nodes"]
    return table("Beside OpenVINO's counters", header, rows, right=header[1:4], least=("OpenVINO's nodes",))


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3f}"


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole else ""


def _rate(number: float | None) -> str:
    return f"{number:.3g}" if number else ""
