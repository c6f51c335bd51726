"""How evenly the numba backend divides the work of a run among 4 to 64 threads, by simulation on one.

The kernels are called as by that many threads, but a single one runs each, so they divide the work by their own functions, and
their own counters say into how many units. Units of a call are taken for equal, and threads take them as they become free;
waiting and memory are not simulated. ``balance`` is the mean over the threads of their work in kernels, divided by the most;
``serial`` is the part of the run that one thread does alone: Python, NumPy, and kernels that are not divided. Its work is CPU
time on one thread; what runs between steps is not counted, and runs that are replayed spend less on Python than these.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import CFUNCTYPE, c_int64
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import numpy as np
from shared import Options, Part, Row, attempted, fresh, milliseconds, program, selected
from sources import NETWORKS, source

THREADS = (4, 8, 16, 32, 64)
SERIAL = 0.02
"""Part of the work above which a serial step is listed."""
RUNS = 5
_LINE = 64


@dataclass(frozen=True)
class Phase:
    """A part of a call whose units threads take one by one.

    Args:
        seconds: of one thread.
        units: how many there are.
        threads: how many may take them.
        rounds: how often all of them are taken, with a barrier after each.
        task: the address of the kernel.
    """

    seconds: float
    units: int
    threads: int
    rounds: int = 1
    task: int = 0

    @property
    def shared(self) -> bool:
        """Whether several threads work on it."""
        return min(self.units, self.threads) > 1

    @property
    def longest(self) -> float:
        """Seconds of the thread that has the most to do."""
        workers = max(1, min(self.units, self.threads))
        return self.seconds * -(-self.units // workers) / max(1, self.units)


@dataclass
class Ran:
    """A step that ran: the phases of its calls, and the seconds of all but them."""

    name: str
    phases: list[Phase] = field(default_factory=list)
    rest: float = 0.0

    @property
    def serial(self) -> float:
        """Seconds of what one thread does alone."""
        return self.rest + sum(phase.seconds for phase in self.phases if not phase.shared)

    @property
    def seconds(self) -> float:
        """Seconds on one thread."""
        return self.rest + sum(phase.seconds for phase in self.phases)


@dataclass
class Watch:
    """Observes the steps of a run, and runs the calls of kernels in them on one thread."""

    steps: list[Ran] = field(default_factory=list)
    _phases: list[Phase] = field(default_factory=list)
    _starts: list[float] = field(default_factory=list)
    _spent: float = 0.0

    def before(self, step: Any, inputs: Sequence[Any]) -> None:
        """Note that a step begins."""
        if not self._starts:
            self._phases, self._spent = [], 0.0
        self._starts.append(time.thread_time())

    def after(self, step: Any, outputs: Sequence[Any], seconds: float) -> None:
        """Note that it ended; steps of bodies count as part of the outermost one."""
        taken = time.thread_time() - self._starts.pop()
        if not self._starts:
            name = " + ".join(dict.fromkeys(layer.type for layer in step.layers))
            self.steps.append(
                Ran(f"{step.layers[-1].name} ({name})", self._phases, max(0.0, taken - self._spent))
            )

    def call(self, _: int, task: int, *given: Any) -> None:
        """Run a call in the place of the dispatcher."""
        start = time.thread_time()
        *arrays, threads = given
        self._phases += phases(task, arrays, threads)
        self._spent += time.thread_time() - start


def phases(task: int, arrays: Sequence[Any], threads: int) -> list[Phase]:
    """Run a task on one thread, and return what its counters say of its division.

    A thread that takes units by a counter of the task takes one more than there are, and ends. Between phases, the next
    counter counts the units that are done. Units in ranges are counted as they are, here in a single range.
    """
    from ir_runtime.backends.numba.threading.task import FIRST_RANGE

    addresses = [array.ctypes.data for array in arrays]
    seconds, counts = _run(task, addresses, {})
    if (rounds := _rounds(task, arrays[0])) is not None:
        return [Phase(seconds, rounds[0], threads, rounds[1], task)]
    of_task = counts[:FIRST_RANGE]
    taken = [counts[FIRST_RANGE] or max(of_task[0] - 1, 1)]
    for done, following in zip(of_task[1::2], of_task[2::2], strict=False):
        if not done:
            break
        taken.append(max(following - 1, 1))
    left = [seconds]
    for phase in range(1, len(taken)):  # without those before, whose results are there
        known = {place: units for i, units in enumerate(taken[:phase]) for place in (2 * i, 2 * i + 1)}
        left.append(min(left[-1], _run(task, addresses, known)[0]))
    parts = [a - b for a, b in zip(left, [*left[1:], 0.0], strict=True)]
    return [Phase(part, units, threads, 1, task) for part, units in zip(parts, taken, strict=True)]


def _run(task: int, addresses: Sequence[int], counters: dict[int, int]) -> tuple[float, list[int]]:
    """Run a task on one thread; seconds, and its counters afterwards."""
    from ir_runtime.backends.numba.threading.task import CALL_WORDS, COUNTERS, RANGES, WORKER_WORDS

    words = np.zeros(CALL_WORDS + _LINE // 8, np.int64)
    words = words[-words.ctypes.data % _LINE // 8 :][:CALL_WORDS]
    words[: len(addresses)] = addresses
    words[COUNTERS], words[RANGES] = words[WORKER_WORDS:].ctypes.data, 1
    for place, count in counters.items():
        words[WORKER_WORDS + place] = count
    call = _function(task)
    start = time.thread_time()
    call(words.ctypes.data)
    return time.thread_time() - start, words[WORKER_WORDS:].tolist()


@cache
def _function(task: int) -> Callable[[int], None]:
    return CFUNCTYPE(None, c_int64)(task)


def _rounds(task: int, job: Any) -> tuple[int, int] | None:
    """Return the units of a step of a recurrent layer, and the number of steps; ``None`` for other tasks."""
    from ir_runtime.backends.numba.kernels._recurrent_cells import StepsJob
    from ir_runtime.backends.numba.kernels._recurrent_steps import RUN_STEPS

    if task != RUN_STEPS.address:
        return None
    words = job.view(np.int64).reshape(-1)
    return int(words[StepsJob.units]), int(words[StepsJob.steps] * words[StepsJob.phases])


def watched(model: Path, feeds: Path, threads: int, mode: str) -> list[Ran]:
    """Run a model as for this many threads; the steps of the fastest of some runs, each step by itself."""
    import ir_runtime
    from ir_runtime.backends.numba.threading import parallel

    watch = Watch()
    config = {"EXECUTION_MODE_HINT": mode.upper(), "INFERENCE_NUM_THREADS": threads}
    with (
        patch.object(parallel, "_cores", lambda: threads),
        patch.object(parallel, "dispatcher", lambda: watch.call),
        patch.object(parallel, "pool_address", lambda: 1),
    ):
        compiled = ir_runtime.compile_model(model, config=config, backend="numba")
        with np.load(feeds) as stored:
            arrays = [next(stored[name] for name in port.names if name in stored) for port in compiled.inputs]
        runs = []
        for _ in range(RUNS):
            watch.steps = []
            compiled._run_arrays(arrays, [watch])
            runs.append(watch.steps)
    return [min(each, key=lambda ran: ran.seconds) for each in zip(*runs, strict=True)]


def measure(options: Options) -> Iterator[Row]:
    """A row for each network, mode and number of threads."""
    for name in selected(NETWORKS, options):
        for mode in options.modes:
            with TemporaryDirectory() as folder:
                for threads in THREADS:
                    row = {"model": name, "mode": mode, "threads": threads}
                    yield attempted(row, partial(fresh, _figures, name, mode, threads, Path(folder), options))


def _figures(name: str, mode: str, threads: int, folder: Path, options: Options) -> Row:
    return figures(watched(*source(name, 1, folder, options), threads, mode), threads)


def figures(steps: Sequence[Ran], threads: int) -> Row:
    """Return the balance, the serial part, and the steps whose serial part is large."""
    shared = [phase for step in steps for phase in step.phases if phase.shared]
    work = sum(step.seconds for step in steps)
    longest = sum(phase.longest for phase in shared)
    serial = sum(step.serial for step in steps)
    mean = sum(phase.seconds for phase in shared) / threads
    return {
        "work": 1e3 * work,
        "balance": mean / longest if longest else None,
        "serial": serial / work,
        "speedup": work / (serial + longest),
        "steps": {step.name: step.serial / work for step in steps if step.serial > SERIAL * work},
    }


def summary(rows: list[Row]) -> Iterable[str]:
    """The steps whose serial part is large with the most threads, for each network."""
    yield f"\nSteps of which one thread does more than {SERIAL:.0%} of the work of the network, with {THREADS[-1]} threads:"
    for row in rows:
        if row["threads"] == THREADS[-1]:
            for name, part in row["steps"].items():
                yield f"  {row['model']}, {row['mode']}: {part:.1%} {name}"


PART = Part(
    "How the numba backend divides its work among threads, by simulation",
    {
        "model": str,
        "mode": str,
        "threads": str,
        "work": milliseconds,
        "balance": "{:.2f}".format,
        "serial": "{:.1%}".format,
        "speedup": "{:.1f}".format,
    },
    measure,
    summary,
)

if __name__ == "__main__":
    sys.exit(program(PART)())
