"""How evenly the native backend divides the work of a run among 4 to 64 threads, by simulation on one.

Runs are those of a model that has run before: recorded calls are replayed. The kernels are called as by that many threads, but
a single one runs each, so they divide the work by their own functions, and their own counters say into how many units.
Units of a call are taken for equal, and threads take them as they become free; what it costs to start and to wait, and
memory, are not simulated. All is CPU time on one thread:

    work       of the run, all of it
    serial     the part of it that one thread does alone: Python, NumPy, and kernels that are not divided
    waiting    the part of it for which all threads wait, on average, for the one that has the most to do of a kernel
    balance    the mean over the threads of their work in kernels that are divided, divided by the most
    speedup    work divided by the time of that many threads
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from shared import Options, Part, Row, attempted, fresh, milliseconds, program, selected
from simulation import Ran, simulated
from sources import NETWORKS, source

THREADS = (4, 8, 16, 32, 64)
LARGE = 0.02
"""Part of the work above which a step is listed."""


def measure(options: Options) -> Iterator[Row]:
    """Yield a row for each network, mode and number of threads."""
    for name in selected(NETWORKS, options):
        for mode in options.modes:
            with TemporaryDirectory() as folder:
                for threads in THREADS:
                    row = {"model": name, "mode": mode, "threads": threads}
                    yield attempted(row, partial(fresh, _figures, name, mode, threads, Path(folder), options))


def _figures(name: str, mode: str, threads: int, folder: Path, options: Options) -> Row:
    return figures(simulated(*source(name, 1, folder, options), threads, mode), threads)


def figures(steps: Sequence[Ran], threads: int) -> Row:
    """Return the shares of the work, and the steps with a large serial or waiting share."""
    shared = [phase for step in steps for phase in step.phases if phase.shared]
    work = sum(step.seconds for step in steps)
    longest = sum(phase.longest for phase in shared)
    serial = sum(step.serial for step in steps)
    parts = [(step.name, step.serial / work, step.waiting(threads) / work) for step in steps]
    return {
        "work": 1e3 * work,
        "serial": serial / work,
        "waiting": sum(waiting for _, _, waiting in parts),
        "balance": sum(phase.seconds for phase in shared) / threads / longest if longest else None,
        "speedup": work / (serial + longest),
        "steps": [part for part in parts if max(part[1:]) > LARGE],
    }


def summary(rows: list[Row]) -> Iterable[str]:
    """Return the steps with a large serial or waiting share at the highest thread count, for each network."""
    yield f"\nSteps of which more than {LARGE:.0%} of the work of the network is serial or waiting, with {THREADS[-1]} threads:"
    for row in rows:
        if row["threads"] == THREADS[-1]:
            for name, serial, waiting in row["steps"]:
                yield f"  {row['model']}, {row['mode']}: {serial:.1%} serial, {waiting:.1%} waiting: {name}"


PART = Part(
    "How the native backend divides its work among threads, by simulation",
    {
        "model": str,
        "mode": str,
        "threads": str,
        "work": milliseconds,
        "serial": "{:.1%}".format,
        "waiting": "{:.1%}".format,
        "balance": "{:.2f}".format,
        "speedup": "{:.1f}".format,
    },
    measure,
    summary,
)

if __name__ == "__main__":
    sys.exit(program(PART)())
