"""A program that interrupts runs by a timer, like Ctrl-C, and prints its findings: ``interrupting.py backend count``."""

from __future__ import annotations

import json
import random
import signal
import sys
import time

from harness.forking import Scene, counts, os_threads, settled
from ir_runtime.backends.numpy import parallel


def interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def seconds(scene: Scene) -> float:
    """Return the duration of a run."""
    start = time.perf_counter()
    scene.compiled(scene.x)
    return time.perf_counter() - start


def main(backend: str, count: str) -> None:
    parallel.MIN_PARALLEL_WORK = 0
    scene = Scene.of(backend)
    lasts = min(seconds(scene) for _ in range(5))  # interrupts are to come while it runs
    before = os_threads()
    signal.signal(signal.SIGALRM, interrupt)
    draw, interrupted, wrong = random.Random(0), 0, 0
    while interrupted < int(count):
        try:
            signal.setitimer(signal.ITIMER_REAL, draw.uniform(1e-5, lasts))
            try:
                scene.compiled(scene.x)
            finally:
                signal.setitimer(signal.ITIMER_REAL, 0)
        except KeyboardInterrupt:
            interrupted += 1
            wrong += not scene.agrees(scene.compiled(scene.x)[0])
    settled(before)
    found = {"wrong": wrong, "threads": os_threads(), "before": before}
    print(json.dumps({**found, "counts": counts(), "expected": scene.threads}))


if __name__ == "__main__":
    main(*sys.argv[1:])
