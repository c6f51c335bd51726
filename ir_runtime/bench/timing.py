"""Time repeated runs of a model, or of several alternately."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Protocol

from .sides import Side

if TYPE_CHECKING:
    from ..ir.array import Array
    from .interfaces import Request

__all__ = ["SequentialRunner", "QueueRunner", "Runner", "Timing", "StopCondition", "alternate", "runner"]

# The seconds of a block of runs before it is the turn of the other side, and of the pause in between: BLAS workers spin for
# a while after a product, and would slow down the next side.
BLOCK = 0.25
PAUSE = 0.1
MOST_IN_BLOCK = 1000


@dataclass
class Timing:
    """The latencies of runs, and the time that they took altogether (``busy``), in seconds; runs may overlap."""

    latencies: list[float] = field(default_factory=list)
    busy: float = 0.0

    def __len__(self) -> int:
        return len(self.latencies)

    @property
    def minimum(self) -> float:
        """The minimum latency."""
        return min(self.latencies)

    @property
    def median(self) -> float:
        """The median latency."""
        return median(self.latencies)

    @property
    def mean(self) -> float:
        """The mean latency."""
        return fmean(self.latencies)

    @property
    def maximum(self) -> float:
        """The maximum latency."""
        return max(self.latencies)

    @property
    def rate(self) -> float:
        """The throughput in runs per second."""
        return len(self) / self.busy


@dataclass(frozen=True)
class StopCondition:
    """The stop condition of measurements: a minimum number of runs and of seconds per side."""

    runs: int = 1
    seconds: float = 0.0

    def progress(self, timing: Timing) -> float:
        """Return the progress of a side, from 0 to 1."""
        runs = len(timing) / self.runs
        return min(1.0, runs, timing.busy / self.seconds if self.seconds else 1.0)

    def next_block(self, timing: Timing) -> int:
        """Return the number of runs of the next block, or 0 if the condition is met.

        The first block is a single run, as its duration is unknown.
        """
        if self.progress(timing) >= 1.0:
            return 0
        if not timing.latencies:
            return 1
        average = timing.busy / len(timing)
        remaining = max(self.runs - len(timing), math.ceil((self.seconds - timing.busy) / average))
        return max(1, min(remaining, int(BLOCK / average), MOST_IN_BLOCK))


class Runner(Protocol):
    """Runs a model repeatedly and records the latencies."""

    timing: Timing

    def warm_up(self) -> None:
        """Run without measuring."""

    def block(self, count: int) -> None:
        """Run ``count`` times, and record the latencies."""


class SequentialRunner:
    """Measures a function, one call after another.

    Args:
        call: the timed function.
        before: called before each call, and not timed.
        clock: the clock in seconds; other programs hardly affect `time.process_time`, but it adds the time of all threads.
    """

    def __init__(
        self,
        call: Callable[[], object],
        before: Callable[[], object] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.timing = Timing()
        self._call, self._before, self._clock = call, before, clock

    def warm_up(self) -> None:
        """Call once without measuring."""
        self._before()
        self._call()

    def block(self, count: int) -> None:
        """Measure ``count`` calls."""
        call, before, clock = self._call, self._before, self._clock
        for _ in range(count):
            before()
            start = clock()
            call()
            duration = clock() - start
            self.timing.latencies.append(duration)
            self.timing.busy += duration


class QueueRunner:
    """Measures concurrent requests of a compiled model."""

    def __init__(self, side: Side, count: int, inputs: Sequence[Array]) -> None:
        self.timing = Timing()
        self._side, self._queue = side, side.queue(count, inputs)
        self._queue.set_callback(self._record_latency)
        self._counts = False

    def warm_up(self) -> None:
        """Run each request once without measuring."""
        self._counts = False
        self._run(len(self._queue))

    def block(self, count: int) -> None:
        """Measure ``count`` runs, but at least one per request, so that all requests run concurrently."""
        self._counts = True
        start = time.perf_counter()
        self._run(max(count, len(self._queue)))
        self.timing.busy += time.perf_counter() - start

    def _run(self, count: int) -> None:
        for _ in range(count):
            if self._side.stateful:
                self._side.reset(self._queue[self._queue.get_idle_request_id()])
            self._queue.start_async()
        self._queue.wait_all()

    def _record_latency(self, request: Request, _: object) -> None:
        if self._counts:
            self.timing.latencies.append(request.latency / 1e3)


def runner(
    side: Side,
    inputs: Sequence[Array],
    requests: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Runner:
    """Return the runner of a side: a single request in the thread of the caller, or several in the background."""
    if requests > 1 or side.setting.queued:
        return QueueRunner(side, requests, inputs)
    request = side.request(inputs)
    return SequentialRunner(lambda: request.infer(share_outputs=True), lambda: side.reset(request), clock)


def alternate(
    runners: Sequence[Runner], until: StopCondition, progress: Callable[[float], None] = lambda _: None
) -> list[Timing]:
    """Measure runners in alternating blocks until the stop condition is met, with a pause and a warm-up before each block.

    All of them are then measured under the same load of the machine.

    Args:
        runners: the runners.
        until: the stop condition of each runner.
        progress: called with the progress from 0 to 1 after each block.
    """
    alone = len(runners) == 1
    for runner in runners:
        runner.warm_up()
    while any(until.next_block(runner.timing) for runner in runners):
        for runner in runners:
            if not (count := until.next_block(runner.timing)):
                continue
            if not alone:
                time.sleep(PAUSE)
                runner.warm_up()
            runner.block(count)
            progress(min(until.progress(other.timing) for other in runners))
    return [runner.timing for runner in runners]
