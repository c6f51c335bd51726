"""Measure a model, and report the results as data."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from .._util.records import Record
from .sides import OURS, Runtime, Setting, Side
from .start import Start, measure
from .timing import StopCondition, Timing, alternate, runner

if TYPE_CHECKING:
    from ..ir.array import Array
    from .agreement import Agreement

__all__ = ["RATIOS", "Measured", "Report", "bench"]

RATIOS = {
    "load": lambda side: side.start.load,
    "first": lambda side: side.start.first,
    "peak": lambda side: side.start.peak,
    "min": lambda side: side.timing.minimum,
    "median": lambda side: side.timing.median,
    "throughput": lambda side: side.timing.rate,
}
"""The figures that are compared between two sides, ours divided by theirs."""


@dataclass(frozen=True)
class Measured:
    """The results of one side."""

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
        """Return one of `RATIOS`; ``None`` without a second side, or if unknown."""
        if len(self.sides) < 2:
            return None
        ours, theirs = map(RATIOS[name], self.sides)
        return ours / theirs if ours is not None and theirs else None

    def record(self) -> Record:
        """Return a dict for JSON; ``ratio`` and ``agreement`` are null without a second side."""
        agreement = self.agreement
        compared = {name: self.ratio(name) for name in RATIOS}
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
        setting: the model, and the requested measurements.
        inputs: an array for each of its inputs.
        against: another runtime to compare with.
        requests: the number of concurrent requests.
        until: the stop condition.
        starts: the number of starts, of which the best counts.
        clock: the clock in seconds, for one request; `time.process_time` counts all threads.
        progress: called with the progress from 0 to 1.

    Returns:
        The figures; those until then, if Ctrl-C ends the runs once each side was timed.

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
        if not all(each.timing.latencies and each.timing.busy for each in runners):
            raise
        is_complete = False
    return Report(
        [
            Measured(side.runtime, side.version, side.backend, side.precision, start, timing)
            for side, start, timing in zip(sides, begun, (each.timing for each in runners), strict=True)
        ],
        _agreement(sides, inputs) if len(sides) > 1 and is_complete else None,
        partial=not is_complete,
    )


def _agreement(sides: Sequence[Side], inputs: Sequence[Array]) -> Agreement:
    from .agreement import compare

    ours, theirs = (side.results(side.request(inputs)) for side in sides)
    return compare(ours, theirs, any(side.precision != "f32" for side in sides))
