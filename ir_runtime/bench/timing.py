"""Time repeated runs of models, several alternately."""

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

# Seconds that one side runs before the other's turn, and that the processor rests between turns: the workers
# of a BLAS spin for a while after a product, and would slow down the next side.
BLOCK = 0.25
PAUSE = 0.1
MOST_IN_BLOCK = 1000


@dataclass
class Timing:
    """The times of runs in seconds: each one, and the total, which is less where they overlap."""

    latencies: list[float] = field(default_factory=list)
    busy: float = 0.0

    def __len__(self) -> int:
        return len(self.latencies)

    @property
    def minimum(self) -> float:
        """The fastest run."""
        return min(self.latencies)

    @property
    def median(self) -> float:
        """Half of the runs were faster."""
        return median(self.latencies)

    @property
    def mean(self) -> float:
        """The average."""
        return fmean(self.latencies)

    @property
    def maximum(self) -> float:
        """The slowest run."""
        return max(self.latencies)

    @property
    def rate(self) -> float:
        """Runs per second."""
        return len(self) / self.busy


@dataclass(frozen=True)
class StopCondition:
    """The stop condition: a number of runs and of seconds per side."""

    runs: int = 1
    seconds: float = 0.0

    def progress(self, timing: Timing) -> float:
        """Return the progress, from 0 to 1."""
        runs = len(timing) / self.runs
        return min(1.0, runs, timing.busy / self.seconds if self.seconds else 1.0)

    def next_block(self, timing: Timing) -> int:
        """Return the number of runs of the next block; 0 if there are enough.

        Before the first run, its duration is unknown: then it is one.
        """
        if self.progress(timing) >= 1.0:
            return 0
        if not timing.latencies:
            return 1
        each = timing.busy / len(timing)
        wanted = max(self.runs - len(timing), math.ceil((self.seconds - timing.busy) / each))
        return max(1, min(wanted, int(BLOCK / each), MOST_IN_BLOCK))


class Runner(Protocol):
    """Something to run any number of times."""

    timing: Timing

    def warm_up(self) -> None:
        """Run without counting."""

    def block(self, count: int) -> None:
        """Run this many times, and keep the times."""


class SequentialRunner:
    """Runs a function, one call after the other.

    Args:
        call: what is timed.
        before: called before each call, untimed.
        clock: in seconds: `time.process_time` is hardly disturbed by other programs, but counts all threads.
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
        """One call, not counted."""
        self._before()
        self._call()

    def block(self, count: int) -> None:
        """Measure this many calls."""
        call, before, clock = self._call, self._before, self._clock
        for _ in range(count):
            before()
            start = clock()
            call()
            taken = clock() - start
            self.timing.latencies.append(taken)
            self.timing.busy += taken


class QueueRunner:
    """Runs several requests at once, which share a compiled model."""

    def __init__(self, side: Side, count: int, inputs: Sequence[Array]) -> None:
        self.timing = Timing()
        self._side, self._queue = side, side.queue(count, inputs)
        self._queue.set_callback(self._done)
        self._counts = False

    def warm_up(self) -> None:
        """Each request once, not counted."""
        self._counts = False
        self._run(len(self._queue))

    def block(self, count: int) -> None:
        """Measure this many runs, but at least one of each request, as fewer would not run concurrently."""
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

    def _done(self, request: Request, _: object) -> None:
        if self._counts:
            self.timing.latencies.append(request.latency / 1e3)


def runner(
    side: Side,
    inputs: Sequence[Array],
    requests: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> Runner:
    """Return the loop that runs a side: one request in the caller's thread, several in the background."""
    if requests > 1 or side.setting.queued:
        return QueueRunner(side, requests, inputs)
    request = side.request(inputs)
    return SequentialRunner(lambda: request.infer(share_outputs=True), lambda: side.reset(request), clock)


def alternate(
    runners: Sequence[Runner], until: StopCondition, progress: Callable[[float], None] = lambda _: None
) -> list[Timing]:
    """Run each until enough was measured, in blocks by turns, with a pause and an untimed run between.

    So all see the same machine, however busy it is.

    Args:
        runners: what to run.
        until: when it is enough, for each of them.
        progress: told how much is done, from 0 to 1, after each block.
    """
    alone = len(runners) == 1
    for each in runners:
        each.warm_up()
    while any(until.next_block(each.timing) for each in runners):
        for each in runners:
            if not (count := until.next_block(each.timing)):
                continue
            if not alone:
                time.sleep(PAUSE)
                each.warm_up()
            each.block(count)
            progress(min(until.progress(other.timing) for other in runners))
    return [each.timing for each in runners]
