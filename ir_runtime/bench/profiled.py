"""The report of layer times of a model: the times of steps and runs, as data, text and a trace.

Traces are in the Trace Event Format, which Perfetto and chrome://tracing open.
https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

from .._util.records import Json, Record
from .peaks import Peaks

__all__ = ["ComparedTime", "ProfileReport", "RunTimes", "StepTime", "TimelineEvent", "Trace"]

Event: TypeAlias = Record
"""An event as the format has it; which fields it has depends on its ``ph``."""


class Trace(TypedDict):
    """A trace in the format."""

    traceEvents: list[Event]
    displayTimeUnit: str


_PROCESS = 1
_RUNS, _LAYERS, _WAITING, _BODIES = range(1, 5)
_THREADS = {_RUNS: "runs", _LAYERS: "layers", _WAITING: "between layers", _BODIES: "layers in bodies"}


def _trace_of(title: str, steps: Sequence[StepTime], runs: Sequence[RunTimes], peaks: Peaks) -> Trace:
    """Return runs as a trace: a thread each for runs, layers, the time between layers, and bodies.

    A counter shows how many threads of the process were busy in each run. Workers have no separate threads in the
    trace: they take chunks of a layer from a counter within compiled code, where no observer sees them, and their
    clocks say nothing, as idle workers spin before they sleep.
    """
    begin = min((run.start for run in runs), default=0.0)
    args = [_args(step, peaks) for step in steps]
    events = [*_names(f"ir_runtime: {title}")]
    for number, run in enumerate(runs):
        events += [*_whole(run, number, begin), *_layers(run, steps, args, begin)]
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def _names(title: str) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": _PROCESS, "tid": 0, "args": {"name": title}}
    for thread, name in _THREADS.items():
        yield {"ph": "M", "name": "thread_name", "pid": _PROCESS, "tid": thread, "args": {"name": name}}
        order = {"sort_index": thread}
        yield {"ph": "M", "name": "thread_sort_index", "pid": _PROCESS, "tid": thread, "args": order}


def _whole(run: RunTimes, number: int, begin: float) -> Iterator[Event]:
    busy = run.cpu / run.seconds if run.seconds else 0.0
    start, args = run.start - begin, {"cpu_ms": run.cpu * 1e3, "busy_threads": busy}
    yield _slice(_RUNS, f"run {number}", "run", start, run.seconds, args)
    for at, threads in ((start, busy), (start + run.seconds, 0.0)):
        counted = {"threads": threads}
        yield {"ph": "C", "name": "busy threads", "pid": _PROCESS, "ts": at * 1e6, "args": counted}


def _layers(run: RunTimes, steps: Sequence[StepTime], args: Sequence[Event], begin: float) -> Iterator[Event]:
    end = run.start
    for event in run.events:
        step, start = steps[event.step], event.start - begin
        thread = _BODIES if step.within else _LAYERS
        yield _slice(thread, step.name, step.operations[0], start, event.seconds, args[event.step])
        if not step.within:
            yield from _wait(end - begin, event.start - end, f"before {step.name}")
            end = event.start + event.seconds
    yield from _wait(end - begin, run.start + run.seconds - end, "after the last layer")


def _wait(start: float, seconds: float, name: str) -> Iterator[Event]:
    if seconds > 0:
        yield _slice(_WAITING, name, "waiting", start, seconds, {})


def _slice(
    thread: int, name: str, category: str, start: float, seconds: float, args: Mapping[str, Json]
) -> Event:
    """Return a complete event; times in a trace are microseconds."""
    times = {"ts": start * 1e6, "dur": seconds * 1e6}
    return {"ph": "X", "pid": _PROCESS, "tid": thread, "name": name, "cat": category, **times, "args": args}


def _args(step: StepTime, peaks: Peaks) -> Event:
    return {
        "layers": list(step.layers),
        "operations": list(step.operations),
        "pattern": step.pattern,
        "flops": step.flops,
        "bytes": step.bytes,
        "bound": step.bound(peaks),
    }


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step: a layer and the layers fused into it."""

    layers: tuple[str, ...]
    """The layers, by name, in order."""
    operations: tuple[str, ...]
    """Their operations."""
    pattern: str
    """The pattern that they match; empty where the first one's kernel computes the others as epilogue."""
    seconds: float
    """The median time per run."""
    calls: float
    """How often it ran in one run: more than once inside loops."""
    within: str
    """The body that it is in; empty for steps of the model itself."""
    flops: int | None
    """FLOPs of one call, as its operations declare them; ``None`` where they depend on the data."""
    bytes: int | None
    """Bytes of one call that go in and out, weights included."""
    range: tuple[float, float] | None = None
    """The seconds of the fastest and of the slowest run; ``None`` if only the median is known."""
    main: int = 0
    """The place of the layer with the most FLOPs, which gives the step its name."""

    @property
    def name(self) -> str:
        """The name of the layer with the most FLOPs."""
        return self.layers[self.main]

    @property
    def operation(self) -> str:
        """The operation of the layer with the most FLOPs."""
        return self.operations[self.main]

    @property
    def spread(self) -> float | None:
        """Half the range of the times over the median."""
        if self.range is None or not self.seconds:
            return None
        fastest, slowest = self.range
        return (slowest - fastest) / 2 / self.seconds

    @property
    def gflops(self) -> float | None:
        """GFLOPs per second."""
        return None if self.flops is None else _rate(self.flops * self.calls, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """GB per second."""
        return None if self.bytes is None else _rate(self.bytes * self.calls, self.seconds)

    def efficiency(self, peaks: Peaks) -> float | None:
        """Return the fraction of the roofline; more than 1 if data stays in the caches."""
        if self.flops is None or self.bytes is None or not self.seconds:
            return None
        return peaks.attainable(self.flops * self.calls, self.bytes * self.calls) / self.seconds

    def bound(self, peaks: Peaks) -> str | None:
        """Return the bottleneck: ``compute`` or ``memory``."""
        if self.flops is None or self.bytes is None:
            return None
        return peaks.bound(self.flops, self.bytes)

    def record(self, peaks: Peaks, total: float) -> Record:
        """Return a dict for JSON."""
        return {
            "layer": self.name,
            "layers": list(self.layers),
            "operations": list(self.operations),
            "pattern": self.pattern or None,
            "within": self.within or None,
            "ms": self.seconds * 1e3,
            "range_ms": None if self.range is None else [seconds * 1e3 for seconds in self.range],
            "share": self.seconds / total if total else None,
            "calls": self.calls,
            "flops": self.flops,
            "bytes": self.bytes,
            "gflops": self.gflops,
            "gbytes_per_second": self.gbytes,
            "bound": self.bound(peaks),
            "roofline": self.efficiency(peaks),
        }


@dataclass(frozen=True, slots=True)
class _OperationTime:
    """The sums over the steps of one operation: that of the layer with the most FLOPs."""

    operation: str
    steps: int
    seconds: float

    def record(self, total: float) -> Record:
        """Return a dict for JSON."""
        share = self.seconds / total if total else None
        return {"operation": self.operation, "steps": self.steps, "ms": self.seconds * 1e3, "share": share}


@dataclass(frozen=True, slots=True)
class ComparedTime:
    """The smallest sets of layers that both runtimes compute as units."""

    layers: tuple[str, ...]
    steps: int
    seconds: float
    nodes: tuple[str, ...]
    """The other runtime's nodes, each as its type and how it is implemented."""
    other: float
    """Seconds of the other runtime."""

    def record(self) -> Record:
        """Return a dict for JSON."""
        return {
            "layers": list(self.layers),
            "steps": self.steps,
            "ms": self.seconds * 1e3,
            "nodes": list(self.nodes),
            "other_ms": self.other * 1e3,
        }


@dataclass(frozen=True, slots=True)
class TimelineEvent:
    """A step in one run: its index, start and duration."""

    step: int
    start: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """One run."""

    start: float
    seconds: float
    cpu: float
    """Seconds of all threads of the process."""
    events: tuple[TimelineEvent, ...]


def _rate(amount: float, seconds: float) -> float | None:
    return amount / seconds / 1e9 if seconds else None


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
    def operations(self) -> tuple[_OperationTime, ...]:
        """The time of each operation, the slowest first."""
        found: dict[str, list[float]] = {}
        for step in self.outermost:
            found.setdefault(step.operation, []).append(step.seconds)
        rows = (_OperationTime(name, len(times), sum(times)) for name, times in found.items())
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
        return _trace_of(f"{self.model}, {self.backend} backend", self.steps, self.runs, self.peaks)

    def __str__(self) -> str:
        lines = [f"{self.model}, {self.backend} backend: {self.seconds * 1e3:.3f} ms"]
        lines += [_line(step, self.total) for step in self.slowest[:10]]
        return "\n".join(lines)


def _line(step: StepTime, total: float) -> str:
    share = f"{100 * step.seconds / total:5.1f} %" if total else ""
    return f"  {step.seconds * 1e3:9.3f} ms  {share}  {step.operation}  {step.name}"
