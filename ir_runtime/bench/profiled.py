"""The report of layer times of a model."""

from __future__ import annotations

import json
from dataclasses import dataclass

from .._util.records import Record
from .chrome import Trace, trace_of
from .peaks import Peaks
from .timed import ComparedTime, OperationTime, RunTimes, StepTime

__all__ = ["ProfileReport"]

_BUSY = 3
"""The ratio of the slowest to the fastest run on a busy machine."""


@dataclass(frozen=True)
class ProfileReport:
    """The time of each layer of a model, compared with another runtime if requested."""

    model: str
    backend: str
    threads: int | None
    """The requested number of threads; ``None`` if the backend chose it."""
    steps: tuple[StepTime, ...]
    """In the order in which they run."""
    seconds: float
    """The median time of a run that is not watched."""
    runs: tuple[RunTimes, ...]
    """The observed runs."""
    peaks: Peaks
    range: tuple[float, float] | None = None
    """The seconds of the fastest and of the slowest run that is not watched."""
    compared: tuple[ComparedTime, ...] = ()
    other: float | None = None
    """The median time of a run of the other runtime."""

    @property
    def is_busy(self) -> bool:
        """Whether runs vary so much that other programs must have used the processor."""
        return self.range is not None and self.range[1] >= _BUSY * self.range[0]

    @property
    def outermost(self) -> tuple[StepTime, ...]:
        """The steps of the model itself, including the time of their bodies."""
        return tuple(step for step in self.steps if not step.within)

    @property
    def total(self) -> float:
        """The seconds of all steps."""
        return sum(step.seconds for step in self.outermost)

    @property
    def slowest(self) -> tuple[StepTime, ...]:
        """The steps of the model itself, the slowest first."""
        return tuple(sorted(self.outermost, key=lambda step: -step.seconds))

    @property
    def operations(self) -> tuple[OperationTime, ...]:
        """The time of each operation, the slowest first."""
        found: dict[str, list[float]] = {}
        for step in self.outermost:
            found.setdefault(step.operation, []).append(step.seconds)
        rows = (OperationTime(name, len(times), sum(times)) for name, times in found.items())
        return tuple(sorted(rows, key=lambda row: -row.seconds))

    def record(self) -> Record:
        """Return a dict for JSON, with times in milliseconds."""
        return {
            "model": self.model,
            "backend": self.backend,
            "threads": self.threads,
            "runs": len(self.runs),
            "latency_ms": self.seconds * 1e3,
            "latency_range_ms": None if self.range is None else [seconds * 1e3 for seconds in self.range],
            "busy": self.is_busy,
            "steps_ms": self.total * 1e3,
            "peaks": self.peaks.record(),
            "operations": [operation.record(self.total) for operation in self.operations],
            "steps": [step.record(self.peaks, self.total) for step in self.steps],
            "openvino_latency_ms": None if self.other is None else self.other * 1e3,
            "against_openvino": [row.record() for row in self.compared],
        }

    def to_json(self) -> str:
        """Return the same as JSON."""
        return json.dumps(self.record(), indent=2)

    def chrome_trace(self) -> Trace:
        """Return the runs in the Trace Event Format, for Perfetto and chrome://tracing."""
        return trace_of(f"{self.model}, {self.backend} backend", self.steps, self.runs, self.peaks)

    def __str__(self) -> str:
        lines = [f"{self.model}, {self.backend} backend: {self.seconds * 1e3:.3f} ms"]
        lines += [_line(step, self.total) for step in self.slowest[:10]]
        return "\n".join(lines)


def _line(step: StepTime, total: float) -> str:
    share = f"{100 * step.seconds / total:5.1f} %" if total else ""
    return f"  {step.seconds * 1e3:9.3f} ms  {share}  {step.operation}  {step.name}"
