"""Measure a model, and report the results as data, and as CSV files like those of OpenVINO's benchmark_app."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .._util.escaping import csv_lines
from .._util.files import save_text
from .._util.records import Record
from .sides import OURS, Runtime, Setting, Side
from .start import Start, measure
from .timing import StopCondition, Timing, alternate, runner

if TYPE_CHECKING:
    from ..ir.array import Array
    from .agreement import Agreement
    from .interfaces import ProfiledLayer

__all__ = ["Counter", "Measured", "Report", "ReportType", "average", "bench", "count_runs", "write_report"]

_RATIOS = {
    "load": lambda side: side.start.load,
    "first": lambda side: side.start.first,
    "peak": lambda side: side.start.peak,
    "min": lambda side: side.timing.minimum,
    "median": lambda side: side.timing.median,
    "throughput": lambda side: side.timing.rate,
}
"""The figures for which a report gives the ratio of ours to theirs."""


@dataclass(frozen=True)
class Measured:
    """The results of a side."""

    runtime: str
    version: str
    backend: str
    precision: str
    start: Start
    timing: Timing

    def record(self) -> Record:
        """Return a dict for JSON: milliseconds, bytes, and inferences per second."""
        start, timing = self.start, self.timing
        return {
            "runtime": self.runtime,
            "version": self.version,
            "backend": self.backend,
            "precision": self.precision,
            "import_ms": start.imported * 1e3,
            "read_ms": start.read * 1e3,
            "compile_ms": start.compile * 1e3,
            "first_ms": start.first * 1e3,
            "peak_bytes": start.peak,
            "base_bytes": start.base,
            "latency_ms": {
                name: getattr(timing, attribute) * 1e3
                for name, attribute in (
                    ("min", "minimum"),
                    ("median", "median"),
                    ("mean", "mean"),
                    ("max", "maximum"),
                )
            },
            "throughput": timing.rate,
            "runs": len(timing),
        }


@dataclass(frozen=True)
class Report:
    """The sides, this package first, whether their results agree, and whether Ctrl-C ended the runs early."""

    sides: list[Measured]
    agreement: Agreement | None = None
    partial: bool = False

    def ratio(self, name: str) -> float | None:
        """Return the ratio of a figure, ours to theirs; ``None`` without a second side, if it is unknown, or if theirs is 0.

        Args:
            name: the name of the figure, a key of `_RATIOS`.
        """
        if len(self.sides) < 2:
            return None
        ours, theirs = map(_RATIOS[name], self.sides)
        return ours / theirs if ours is not None and theirs else None

    def record(self) -> Record:
        """Return a dict for JSON; ``ratio`` and ``agreement`` are null without a second side."""
        agreement = self.agreement
        compared = {name: self.ratio(name) for name in _RATIOS}
        return {
            "sides": [side.record() for side in self.sides],
            "ratio": compared if len(self.sides) > 1 else None,
            "agreement": None if agreement is None else asdict(agreement),
            "partial": self.partial,
        }


def bench(
    setting: Setting,
    inputs: Sequence[Array],
    *,
    against: Runtime | None = None,
    requests: int = 1,
    until: StopCondition = StopCondition(),  # noqa: B008  frozen
    starts: int = 1,
    clock: Callable[[], float] = time.perf_counter,
    progress: Callable[[float], None] = lambda _: None,
) -> Report:
    """Measure a model: starts in separate processes, then alternating runs in this one.

    Args:
        setting: the model, and the settings of runtimes.
        inputs: an array for each input of the model.
        against: another runtime to compare with.
        requests: the number of concurrent requests.
        until: the stop condition.
        starts: the number of starts, of which the best of each figure counts.
        clock: the clock in seconds, for one request; `time.process_time` counts all threads.
        progress: called with the progress from 0 to 1.

    Returns:
        The figures; partial ones if Ctrl-C ends the runs after each side was timed at least once.

    Raises:
        InputError: if the other runtime is not installed, or refuses the model.
        IRError: if this package refuses it, or fails on it.
    """
    names = [OURS] if against is None else [OURS, against]
    sides = [Side(name, setting) for name in names]
    runners = [runner(side, inputs, requests, clock) for side in sides]
    begun = [measure(name, setting, inputs, starts) for name in names]
    is_complete = True
    try:
        alternate(runners, until, progress)
    except KeyboardInterrupt:
        if not all(runner.timing.latencies and runner.timing.busy for runner in runners):
            raise
        is_complete = False
    return Report(
        [
            Measured(side.runtime, side.version, side.backend, side.precision, start, timing)
            for side, start, timing in zip(sides, begun, (runner.timing for runner in runners), strict=True)
        ],
        _agreement(sides, inputs) if len(sides) > 1 and is_complete else None,
        partial=not is_complete,
    )


def _agreement(sides: Sequence[Side], inputs: Sequence[Array]) -> Agreement:
    from .agreement import compare

    ours, theirs = (side.results(side.request(inputs)) for side in sides)
    return compare(ours, theirs, any(side.precision != "f32" for side in sides))


ReportType = Literal["no_counters", "average_counters", "detailed_counters"]

RUNS = 10
"""The maximum number of runs whose counters are reported."""
_HEADER = ("layerName", "execStatus", "layerType", "execType", "realTime (ms)", "cpuTime (ms)")


@dataclass(frozen=True)
class Counter:
    """The time of a layer in a run; its ``status`` is OPTIMIZED_OUT if it was fused into a previous layer."""

    layer: str
    operation: str
    status: str
    ms: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return asdict(self)


def count_runs(setting: Setting, inputs: Sequence[Array], runs: int) -> list[list[Counter]]:
    """Run a model with this package, after a warm-up run; return the performance counters of each run, one per layer.

    Args:
        setting: the model, and the settings of the runtime.
        inputs: an array for each input of the model.
        runs: the number of runs, limited to `RUNS`.
    """
    side = Side(OURS, replace(setting, counters=True))
    request = side.request(inputs)
    request.infer()
    counters = []
    for _ in range(min(runs, RUNS)):
        side.reset(request)
        request.infer()
        counters.append([_counter(info) for info in request.get_profiling_info()])
    return counters


def _counter(info: ProfiledLayer) -> Counter:
    return Counter(info.node_name, info.node_type, info.status.name, info.real_time.total_seconds() * 1e3)


def average(runs: Sequence[Sequence[Counter]]) -> list[Counter]:
    """Return the counter of each layer with the mean of its times over all runs."""
    return [
        replace(layer_runs[0], ms=sum(one.ms for one in layer_runs) / len(layer_runs))
        for layer_runs in zip(*runs, strict=True)
    ]


def write_report(
    folder: Path,
    kind: ReportType,
    command: Sequence[tuple[str, object]],
    results: Sequence[tuple[str, object]],
    runs: Sequence[Sequence[Counter]],
) -> list[Path]:
    """Write ``benchmark_report.csv`` and the requested counters like benchmark_app; return the files.

    Args:
        folder: the folder.
        kind: which counters to write.
        command: the names and values of command-line options.
        results: the names and values of figures.
        runs: the counters of each run.
    """
    sections = (("Command line parameters", command), ("Execution results", results))
    rows = [row for title, pairs in sections for row in ((title,), *pairs, ())]
    files = {folder / "benchmark_report.csv": rows}
    if kind != "no_counters":
        shown = [average(runs)] if kind == "average_counters" else runs
        files[folder / f"benchmark_{kind}_report.csv"] = [row for run in shown for row in _rows(run)]
    for path, lines in files.items():
        save_text(path, csv_lines(lines))
    return list(files)


def _rows(run: Sequence[Counter]) -> list[tuple[str, ...]]:
    rows = [(c.layer, f"Status.{c.status}", c.operation, "", f"{c.ms:.3f}", f"{c.ms:.3f}") for c in run]
    total = f"{sum(c.ms for c in run):.3f}"
    return [_HEADER, *rows, ("Total", "", "", "", total, total), ()]
