"""The report of a profile: the times of steps and runs of a model, as data, text and a trace.

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
"""A trace event; its fields depend on ``ph``, the phase."""


class Trace(TypedDict):
    """A trace in the Trace Event Format."""

    traceEvents: list[Event]
    displayTimeUnit: str


_PROCESS = 1
_RUNS, _LAYERS, _WAITING, _BODIES = range(1, 5)
_THREADS = {_RUNS: "runs", _LAYERS: "layers", _WAITING: "between layers", _BODIES: "layers in bodies"}


def _trace_of(title: str, steps: Sequence[StepTime], runs: Sequence[RunTimes], peaks: Peaks) -> Trace:
    """Return runs as a trace, with a thread each for runs, layers, the time between layers, and layers in bodies.

    A counter shows how many threads of the process were busy in each run. Worker threads do not appear: they take chunks of a
    layer within compiled code, where they cannot be observed, and their CPU times tell nothing, as idle workers spin before
    they sleep.
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
    """Return a complete event (phase X); its times are in microseconds."""
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
    """The time of a step: a layer and the layers fused into it."""

    layers: tuple[str, ...]
    """The names of the layers, in order."""
    operations: tuple[str, ...]
    """The operations of the layers, such as ``Convolution-1``."""
    pattern: str
    """The pattern that the layers match; empty if the kernel of the first layer computes the others as its epilogue."""
    seconds: float
    """The median time per run, in seconds."""
    calls: float
    """How often the step ran per run: more than once inside loops."""
    within: str
    """The body that contains the step; empty for steps of the model itself."""
    flops: int | None
    """The FLOPs of a call, as declared by its operations; ``None`` if they depend on the data."""
    bytes: int | None
    """The bytes that a call reads and writes, including weights; ``None`` if unknown."""
    range: tuple[float, float] | None = None
    """The times of the fastest and the slowest run, in seconds; ``None`` if only the median is known."""
    main: int = 0
    """The index of the layer with the most FLOPs, which names the step."""

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
        """Half the range of times, relative to the median; ``None`` without a range, or if the median is 0."""
        if self.range is None or not self.seconds:
            return None
        fastest, slowest = self.range
        return (slowest - fastest) / 2 / self.seconds

    @property
    def gflops(self) -> float | None:
        """The speed in GFLOP/s; ``None`` if the FLOPs are unknown, or the time is 0."""
        return None if self.flops is None else _rate(self.flops * self.calls, self.seconds)

    @property
    def gbytes(self) -> float | None:
        """The memory traffic in GB/s; ``None`` if the bytes are unknown, or the time is 0."""
        return None if self.bytes is None else _rate(self.bytes * self.calls, self.seconds)

    def efficiency(self, peaks: Peaks) -> float | None:
        """Return the speed as a fraction of the roofline; ``None`` if FLOPs or bytes are unknown, or the time is 0.

        It exceeds 1 if data stays in the caches.
        """
        if self.flops is None or self.bytes is None or not self.seconds:
            return None
        return peaks.attainable(self.flops * self.calls, self.bytes * self.calls) / self.seconds

    def bound(self, peaks: Peaks) -> str | None:
        """Return which of ``compute`` and ``memory`` limits the speed, or ``None`` if FLOPs or bytes are unknown."""
        if self.flops is None or self.bytes is None:
            return None
        return peaks.bound(self.flops, self.bytes)

    def record(self, peaks: Peaks, total: float) -> Record:
        """Return a dict for JSON.

        Args:
            peaks: the peak performance of the machine.
            total: the time of all steps in seconds, of which the share of this one is computed.
        """
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
    """The total time of all steps named after layers of the same operation."""

    operation: str
    steps: int
    seconds: float

    def record(self, total: float) -> Record:
        """Return a dict for JSON, with the share of ``total``, the time of all steps in seconds."""
        share = self.seconds / total if total else None
        return {"operation": self.operation, "steps": self.steps, "ms": self.seconds * 1e3, "share": share}


@dataclass(frozen=True, slots=True)
class ComparedTime:
    """The time of a set of layers in both runtimes: the smallest set that neither runtime splits."""

    layers: tuple[str, ...]
    steps: int
    seconds: float
    nodes: tuple[str, ...]
    """The execution nodes of the other runtime, each as its type and implementation."""
    other: float
    """The time of the other runtime, in seconds."""

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
    """The execution of a step in a run: the index of the step, its start by `time.perf_counter`, and its duration in seconds."""

    step: int
    start: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RunTimes:
    """The timeline of a run: its start by `time.perf_counter`, its duration and CPU time in seconds, and its steps."""

    start: float
    seconds: float
    cpu: float
    """The CPU time of all threads of the process, in seconds."""
    events: tuple[TimelineEvent, ...]


def _rate(amount: float, seconds: float) -> float | None:
    return amount / seconds / 1e9 if seconds else None


_BUSY = 3
"""The ratio of the slowest to the fastest run from which the machine counts as busy."""


@dataclass(frozen=True)
class ProfileReport:
    """The times of the layers of a model, optionally compared with another runtime."""

    model: str
    backend: str
    threads: int | None
    """The requested number of threads; ``None`` if the backend chose the number."""
    steps: tuple[StepTime, ...]
    """The steps, in execution order."""
    seconds: float
    """The median time of unobserved runs, in seconds."""
    runs: tuple[RunTimes, ...]
    """The observed runs."""
    peaks: Peaks
    range: tuple[float, float] | None = None
    """The times of the fastest and the slowest unobserved run, in seconds."""
    compared: tuple[ComparedTime, ...] = ()
    other: float | None = None
    """The median time of runs of the other runtime, in seconds."""

    @property
    def is_busy(self) -> bool:
        """Whether run times vary so much that other programs must have used the processor."""
        return self.range is not None and self.range[1] >= _BUSY * self.range[0]

    @property
    def outermost(self) -> tuple[StepTime, ...]:
        """The steps of the model itself; their times include those of their bodies."""
        return tuple(step for step in self.steps if not step.within)

    @property
    def total(self) -> float:
        """The total time of all steps, in seconds."""
        return sum(step.seconds for step in self.outermost)

    @property
    def slowest(self) -> tuple[StepTime, ...]:
        """The steps of the model itself, slowest first."""
        return tuple(sorted(self.outermost, key=lambda step: -step.seconds))

    @property
    def operations(self) -> tuple[_OperationTime, ...]:
        """The time of each operation, slowest first."""
        times_of: dict[str, list[float]] = {}
        for step in self.outermost:
            times_of.setdefault(step.operation, []).append(step.seconds)
        rows = (_OperationTime(name, len(times), sum(times)) for name, times in times_of.items())
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
        """Return `record` as JSON text."""
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
