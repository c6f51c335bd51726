"""The text of ``ir-runtime bench``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .._util.escaping import visible
from .render import Record, plural, table
from .terminal import show

if TYPE_CHECKING:
    from ..bench.counters import Counter, ReportType
    from ..bench.report import Measured, Report

__all__ = ["counter_text", "report_text", "write_reports"]

_TITLES = {"ir_runtime": "ours", "openvino": "OpenVINO"}


def report_text(report: Report, hint: str, requests: int, threads: int | None) -> str:
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


def counter_text(counters: Sequence[Counter]) -> str:
    """Return the time of each layer as a table, the longest first."""
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


def write_reports(
    folder: str, kind: ReportType, options: Record, report: Report, runs: Sequence[Sequence[Counter]]
) -> None:
    """Write the reports into a folder, and print their paths."""
    from pathlib import Path

    from ..bench.counters import write_report

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
