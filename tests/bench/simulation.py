"""Simulated runs of the native backend with many threads, executed on a single one.

Kernels are called, recorded and replayed as for that many threads, so they divide their work by their own functions; their
counters then tell the number of units.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from ctypes import CDLL, CFUNCTYPE, c_int64, c_void_p, cast
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import takewhile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

__all__ = ["Phase", "Ran", "Watch", "many_threads", "phases", "simulated"]

BEFORE, RUNS = 6, 5  # runs until recordings are replayed, and runs that are measured
_LINE = 64


@dataclass(frozen=True)
class Phase:
    """A part of a call whose units threads take one by one.

    Args:
        seconds: on one thread.
        units: their number.
        threads: the maximum number of threads.
        rounds: how often all units are taken, with a barrier after each round.
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
        """Seconds of the thread with the most work."""
        workers = max(1, min(self.units, self.threads))
        return self.seconds * -(-self.units // workers) / max(1, self.units)


@dataclass
class Ran:
    """An executed step: the phases of its calls, and the seconds outside them."""

    name: str
    phases: list[Phase] = field(default_factory=list)
    rest: float = 0.0

    @property
    def serial(self) -> float:
        """Seconds of serial work."""
        return self.rest + sum(phase.seconds for phase in self.phases if not phase.shared)

    @property
    def seconds(self) -> float:
        """Seconds on one thread."""
        return self.rest + sum(phase.seconds for phase in self.phases)

    def waiting(self, threads: int) -> float:
        """Mean seconds that threads wait for the one with the most shared work."""
        return sum(phase.longest - phase.seconds / threads for phase in self.phases if phase.shared)


@dataclass
class Watch:
    """Runs the calls of kernels on one thread, and records each step.

    Args:
        steps: the executed steps by key: a step, or a tape with the index of a call.
        names: the step names of each tape's calls, by its address.
    """

    steps: dict[Any, Ran] = field(default_factory=dict)
    names: dict[int, list[str]] = field(default_factory=dict)
    inside: Ran | None = None
    """The step that runs now."""
    spent: float = 0.0
    """Seconds in kernels, and of the simulation itself."""

    def timed(self, name: str, run: Callable[[Any], None], key: Any, slots: Any) -> None:
        """Run an instruction, and record the time outside kernels."""
        if self.inside:  # of a body
            run(slots)
            return
        account, start, spent = self.steps.setdefault(key, Ran(name)), time.thread_time(), self.spent
        self.inside = account
        try:
            run(slots)
        finally:
            self.inside = None
        account.rest += max(0.0, time.thread_time() - start - _clock() - (self.spent - spent))
        self.spent += _clock()

    def call(self, _: int, task: int, *given: Any) -> None:
        """Run a call instead of the dispatcher."""
        start = time.thread_time()
        *arrays, threads, _ = given
        account = self.inside or self.steps.setdefault(None, Ran("outside steps"))
        account.phases += phases(task, [array.ctypes.data for array in arrays], threads)
        self.spent += time.thread_time() - start + _clock()

    def replay(self, tape: int, _: int, arrays: Sequence[Any], first: int) -> None:
        """Run the calls of a tape instead of `replay_tape`."""
        start = time.thread_time()
        found = [phases(task, addresses, threads) for task, threads, addresses in _calls(tape, arrays, first)]
        arrays[0][:8] = 0  # nothing was refused
        for index, (name, parts) in enumerate(zip(self.names[tape], found, strict=True)):
            self.steps.setdefault((tape, index), Ran(name)).phases += parts
        self.spent += time.thread_time() - start + _clock()


def _calls(tape: int, arrays: Sequence[Any], first: int) -> Iterator[tuple[int, int, list[int]]]:
    """Yield the task, the number of threads and the addresses of each call of a tape."""
    from ir_runtime.backends.native.threading.tape import FIXED, SCRATCH, TapeCall, TapeHeader

    begin = arrays[0].ctypes.data
    scratch = (begin + 127) // 64 * 64

    def located(place: int, offset: int) -> int:
        if place == FIXED:
            return offset
        return offset + (scratch if place == SCRATCH else int(arrays[place - first].ctypes.data))

    for index in range(_words(tape, TapeHeader.words)[TapeHeader.calls]):
        record = _words(tape + 8 * (TapeHeader.words + TapeCall.words * index), TapeCall.words)
        places = [getattr(TapeCall, name) for name in ("out", "a", "b", "c", "d")]
        addresses = [record[TapeCall.job], *(located(record[place], record[place + 1]) for place in places)]
        yield record[TapeCall.task], record[TapeCall.threads], addresses


def _words(address: int, count: int) -> list[int]:
    return list((c_int64 * count).from_address(address))


def phases(task: int, addresses: Sequence[int], threads: int) -> list[Phase]:
    """Run a task on one thread, and return its division into phases, from its counters.

    Units in ranges are counted directly, here in a single range; units of shares by a counter for each. A thread that takes units
    from a counter increments it once more than there are units, and ends. If a task has phases, the next counter counts finished
    units; only such tasks run again, without the previous phases. Counters of other tasks may have other meanings: if threads
    have memory of their own, a counter assigns it.
    """
    from ir_runtime.backends.native.threading.task import FIRST_RANGE

    seconds, counts = _run(task, addresses, {})
    if (rounds := _rounds(task, addresses[0])) is not None:
        return [Phase(seconds, rounds[0], threads, rounds[1], task)]
    of_task, of_range = counts[:FIRST_RANGE], counts[FIRST_RANGE]
    if task in _by_shares():
        return [Phase(seconds, sum(max(count - 1, 0) for count in of_task), threads, 1, task)]
    ended = _ended(of_task) if task in _by_phases() else []
    taken, left = [*ended, of_range or max(of_task[2 * len(ended)] - 1, 1)], [seconds]
    for phase in range(1, len(taken)):  # without those before, whose results are there
        known = {place: units for i, units in enumerate(taken[:phase]) for place in (2 * i, 2 * i + 1)}
        left.append(min(left[-1], _run(task, addresses, known)[0]))
    parts = [a - b for a, b in zip(left, [*left[1:], 0.0], strict=True)]
    return [Phase(recorder, units, threads, 1, task) for recorder, units in zip(parts, taken, strict=True)]


def _ended(counts: Sequence[int]) -> list[int]:
    """Return the units of phases followed by a barrier, each of which has two counters."""
    return list(takewhile(bool, counts[1::2]))


def _run(task: int, addresses: Sequence[int], counters: dict[int, int]) -> tuple[float, list[int]]:
    """Run a task on one thread; return the seconds, and its counters afterwards."""
    from ir_runtime.backends.native.threading.task import CALL_WORDS, COUNTERS, RANGES, WORKER_WORDS

    words = np.zeros(CALL_WORDS + _LINE // 8, np.int64)
    words = words[-words.ctypes.data % _LINE // 8 :][:CALL_WORDS]
    words[: len(addresses)] = addresses
    words[COUNTERS], words[RANGES] = words[WORKER_WORDS:].ctypes.data, 1
    for place, count in counters.items():
        words[WORKER_WORDS + place] = count
    call, address = _function(task), words.ctypes.data
    start = time.thread_time()
    call(address)
    return max(0.0, time.thread_time() - start - _call()), words[WORKER_WORDS:].tolist()


@cache
def _clock() -> float:
    """Return the seconds of a clock reading."""
    start = time.thread_time()
    for _ in range(1000):
        time.thread_time()
    return (time.thread_time() - start) / 1000


@cache
def _call() -> float:
    """Return the seconds of a clock reading and an empty function call."""
    nothing = CFUNCTYPE(None, c_int64)(cast(CDLL(None).labs, c_void_p).value or 0)
    start = time.thread_time()
    for _ in range(1000):
        nothing(0)
    return _clock() + (time.thread_time() - start) / 1000


@cache
def _function(task: int) -> Callable[[int], None]:
    return CFUNCTYPE(None, c_int64)(task)


@cache
def _by_shares() -> set[int]:
    """Return the addresses of tasks whose threads take shares."""
    from ir_runtime.backends.native.codegen.levels import IS_FAST
    from ir_runtime.backends.native.kernels._int8_gemm import levels_gemm
    from ir_runtime.backends.native.kernels._int8_windows import levels_windows
    from ir_runtime.backends.native.kernels.quantized_network import levels_winograd

    return {task.address for task in (levels_gemm, levels_windows, levels_winograd)} if IS_FAST else set()


@cache
def _by_phases() -> set[int]:
    """Return the addresses of tasks with barriers between phases."""
    from ir_runtime.backends.native.kernels._winograd import winograd
    from ir_runtime.backends.native.kernels.pooling import spatial_mean_task
    from ir_runtime.backends.native.kernels.quantized_matmul import dynamic_matmul
    from ir_runtime.backends.native.kernels.recurrence import run_cell

    return {task.address for task in (winograd, dynamic_matmul, spatial_mean_task, run_cell)}


def _rounds(task: int, job: int) -> tuple[int, int] | None:
    """Return the units per step of a recurrent layer, and the number of steps; ``None`` for other tasks."""
    from ir_runtime.backends.native.kernels.recurrence import StepsJob, run_steps

    if task != run_steps.address:
        return None
    words = _words(job, StepsJob.words)
    return words[StepsJob.units], words[StepsJob.steps] * words[StepsJob.phases]


def simulated(model: Path, feeds: Path, threads: int, mode: str) -> list[Ran]:
    """Simulate a model with this many threads; return the fastest execution of each step over several runs."""
    import ir_runtime

    config = {"EXECUTION_MODE_HINT": mode.upper(), "INFERENCE_NUM_THREADS": threads}
    with many_threads(watch := Watch(), threads):
        compiled = ir_runtime.compile_model(model, config=config, backend="native")
        with np.load(feeds) as stored:
            arrays = [next(stored[name] for name in port.names if name in stored) for port in compiled.inputs]
        runs = [_simulated(watch, partial(compiled._run_arrays, arrays)) for _ in range(BEFORE + RUNS)]
    return [min(each, key=lambda ran: ran.seconds) for each in zip(*runs[BEFORE:], strict=True)]


def _simulated(watch: Watch, run: Callable[[], object]) -> list[Ran]:
    watch.steps, watch.spent, start = {}, 0.0, time.thread_time()
    run()
    taken = time.thread_time() - start - watch.spent
    outside = watch.steps.setdefault(None, Ran("outside steps"))
    outside.rest = max(0.0, taken - sum(ran.rest for ran in watch.steps.values()))
    return list(watch.steps.values())


@contextmanager
def many_threads(watch: Watch, threads: int) -> Iterator[None]:
    """Redirect calls of tasks for that many threads to the watch."""
    from ir_runtime.backends.native.threading import parallel, recorder, replay, tape
    from ir_runtime.executor.plan import Programs

    owners: dict[Any, list[str]] = {}
    plain_next, plain_add, plain_tape = Programs.next, recorder.Part.add, tape.TapeWriter.tape

    def following(programs: Any, env: Any) -> Any:
        program, start = plain_next(programs, env), time.thread_time()
        steps = [programs.steps[first] for first in program.starts]
        timed = (
            partial(watch.timed, name_of(step), run, (id(programs), first))
            for step, first, run in zip(steps, program.starts, program.instructions, strict=True)
        )
        found = replace(program, instructions=tuple(timed))
        watch.spent += 0 if watch.inside else time.thread_time() - start + _clock()
        return found

    def add(self: Any, step: Any, *given: Any) -> None:
        plain_add(self, step, *given)
        owners.setdefault(self.writer, []).extend([name_of(step)] * len(given[3].calls))  # of the record

    def tape_of(self: Any, *given: Any) -> Any:
        found = plain_tape(self, *given)
        watch.names[found.address] = owners.get(self, [])
        return found

    with ExitStack() as stack:
        for where, name, value in (
            (parallel, "parallelism", lambda: threads),
            (parallel, "dispatcher", lambda: watch.call),
            (parallel, "pool_address", lambda: 1),
            (replay, "pool_address", lambda: 1),
            (replay, "replay", lambda: watch.replay),
            (replay, "pool_address", lambda: 1),
            (replay, "replay", lambda: watch.replay),
            (recorder.Part, "add", add),
            (tape.TapeWriter, "tape", tape_of),
            (Programs, "next", following),
        ):
            stack.enter_context(patch.object(where, name, value))
        yield


def name_of(step: Any) -> str:
    """Return the name of a step, with the types of its layers."""
    types = " + ".join(dict.fromkeys(layer.type for layer in step.layers))
    return f"{step.layers[-1].name} ({types})"
