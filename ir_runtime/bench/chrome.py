"""Traces in the Trace Event Format, which Perfetto and chrome://tracing open.

https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias, TypedDict

from .._util.records import Json, Record
from .peaks import Peaks
from .timed import RunTimes, StepTime

__all__ = ["Trace", "trace_of"]

Event: TypeAlias = Record
"""An event as the format has it; which fields it has depends on its ``ph``."""


class Trace(TypedDict):
    """A trace in the format."""

    traceEvents: list[Event]
    displayTimeUnit: str


_PROCESS = 1
_RUNS, _LAYERS, _WAITING, _BODIES = range(1, 5)
_THREADS = {_RUNS: "runs", _LAYERS: "layers", _WAITING: "between layers", _BODIES: "layers in bodies"}


def trace_of(title: str, steps: Sequence[StepTime], runs: Sequence[RunTimes], peaks: Peaks) -> Trace:
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
