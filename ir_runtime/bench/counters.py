"""The time of each layer, and reports as benchmark_app writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from .._util.escaping import csv_lines
from .._util.files import save_text
from .._util.records import Record
from .sides import OURS, Setting, Side

if TYPE_CHECKING:
    from ..ir.array import Array
    from .interfaces import ProfiledLayer

__all__ = ["Counter", "ReportType", "average", "count_runs", "write_report"]

ReportType = Literal["no_counters", "average_counters", "detailed_counters"]

RUNS = 10
"""The most runs that are counted."""
_HEADER = ("layerName", "execStatus", "layerType", "execType", "realTime (ms)", "cpuTime (ms)")


@dataclass(frozen=True)
class Counter:
    """The time of a layer in a run; ``status`` is OPTIMIZED_OUT if it was fused into the previous one."""

    layer: str
    operation: str
    status: str
    ms: float

    def record(self) -> Record:
        """Return a dict for JSON."""
        return asdict(self)


def count_runs(setting: Setting, inputs: Sequence[Array], runs: int) -> list[list[Counter]]:
    """Return the counters of each of ``runs`` runs, at most `RUNS`, of this package.

    Args:
        setting: the model, and the requested measurements.
        inputs: an array for each of its inputs.
        runs: the number of runs.
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
    """Return the mean of each layer over all runs."""
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
        command: the options of the command line.
        results: names and figures.
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
