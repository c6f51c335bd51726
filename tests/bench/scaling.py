"""What runs by rows cost, on real workers, and what that means for many of them, by simulation.

Measured: seconds of the model for a chunk, seconds that a task costs beside it, rows a second of one and two workers
of one thread, and of `AsyncInferQueue`. The simulation has one scheduler, which hands out a task in a fixed time, and
workers that have a few tasks ready; it is driven by what was measured, and held against one and two real workers.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import ir_runtime as ov
from ir_runtime.dask import Runner
from ir_runtime.dask.cluster import connected
from ir_runtime.dask.datasets import open_dataset
from ir_runtime.dask.job import PER_THREAD, Job, run_job
from ir_runtime.dask.manifest import Manifest
from ir_runtime.dask.planning import ArrayType, Planner
from ir_runtime.dask.targets import create_targets, open_targets

WORKERS = (1, 2, 10, 100, 1_000)


def simulated(workers: int, task: float, scheduling: float, tasks: int) -> float:
    """Return the seconds that so many tasks take.

    Args:
        workers: each computes one task at a time, and has `PER_THREAD` in all.
        task: seconds of a task at its worker.
        scheduling: seconds of the scheduler, and of the client, for a task; one at a time.
        tasks: how many there are.
    """
    ends = [(0.0, worker) for worker in range(workers) for _ in range(PER_THREAD)]
    free = [0.0] * workers
    now = 0.0
    heapq.heapify(ends)
    for _ in range(tasks):
        ready, worker = heapq.heappop(ends)
        now = max(now, ready) + scheduling
        free[worker] = max(free[worker], now) + task
        heapq.heappush(ends, (free[worker], worker))
    return max(free)


def job_of(model: str, data: Path, target: Path, rows: int) -> Job:
    """Return a job on a data set, whose results are new."""
    runner = Runner.of(model, batch=rows)
    net = ov.read_model(model)
    name = net.input().label
    source = open_dataset(str(data), name)
    planner = Planner.of(runner, net, {name: source.shape})
    types = planner.outputs({name: (rows, *source.shape[1:])}, "a chunk")
    whole = {
        n: ArrayType((source.shape[0], *t.shape[1:]), t.dtype)
        for n, t in zip(runner.outputs, types, strict=True)
    }
    targets = open_targets(target, whole, rows)
    create_targets(targets)
    return Job(planner.runner, {name: source}, targets, rows, source.shape[0])


def rate_of(client: Any, job: Job, folder: Path, name: str) -> float:
    """Return rows a second; the workers have the model already."""
    manifest = Manifest.create(folder / name, {})
    summary = run_job(client, job, manifest)
    manifest.close()
    return summary.rows / summary.seconds


def queue_rate(model: str, data: np.ndarray, rows: int, threads: int) -> float:
    """Return rows a second of `AsyncInferQueue`, with as many requests as threads."""
    net = ov.read_model(model)
    compiled = ov.compile_model(
        net, backend=Runner.of(net).backend, config={"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": threads}
    )
    queue = ov.AsyncInferQueue(compiled, threads)
    for _ in range(2):
        begun = time.perf_counter()
        for start in range(0, len(data), rows):
            queue.start_async({0: data[start : start + rows]})
        queue.wait_all()
    return len(data) / (time.perf_counter() - begun)


def main(options: argparse.Namespace) -> None:
    """Print the tables."""
    net = ov.read_model(options.model)
    shape = [d.get_length() if d.is_static else d.get_min_length() or 1 for d in net.input().partial_shape][
        1:
    ]
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        rng = np.random.default_rng(0)
        data = rng.standard_normal((options.rows, *shape)).astype(np.float32)
        np.save(folder / "x.npy", data)
        rates = {}
        for scheduler, workers in (("local", 1), ("local", 2), ("threads", 2)):
            client = stack.enter_context(connected(scheduler, workers))
            for turn in ("warm", "timed"):
                key = f"{scheduler}{workers}{turn}"
                job = job_of(options.model, folder / "x.npy", folder / f"{key}.npy", options.batch)
                rates[scheduler, workers] = rate_of(client, job, folder, key)
            client.close()
        runner = job.runner
        runner(data[: options.batch])
        begun = time.perf_counter()
        for start in range(0, options.rows, options.batch):
            runner(data[start : start + options.batch])
        plain = (time.perf_counter() - begun) / -(-options.rows // options.batch)
        queue = queue_rate(options.model, data, options.batch, 2)
    task = options.batch / rates["local", 1]
    print(f"{options.model}, {options.batch} rows a task, {options.rows} rows")
    print(f"the model alone       {plain * 1e3:9.2f} ms a task")
    print(f"beside it, a task     {(task - plain) * 1e3:9.2f} ms")
    for (scheduler, workers), rate in rates.items():
        print(
            f"{scheduler:8} {workers} workers   {rate:9.1f} rows/s   {rate / rates['local', 1]:.2f} of one worker"
        )
    print(f"AsyncInferQueue, 2    {queue:9.1f} rows/s   threads / queue {rates['threads', 2] / queue:.2f}")
    print("simulated: workers, rows/s, of one, utilization of workers")
    for workers in WORKERS:
        tasks = max(200, 50 * workers)
        seconds = simulated(workers, plain + options.overhead, options.scheduling, tasks)
        rate = tasks * options.batch / seconds
        one = options.batch / (plain + options.overhead)
        print(f"{workers:6}  {rate:12.1f}  {rate / one:8.2f}  {rate / one / workers:6.1%}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--rows", type=int, default=256)
    parser.add_argument("--batch", type=int, default=1, help="rows of a task")
    parser.add_argument(
        "--overhead", type=float, default=0.002, help="seconds of a worker for a task, beside the model"
    )
    parser.add_argument("--scheduling", type=float, default=0.001, help="seconds of the scheduler for a task")
    sys.exit(main(parser.parse_args()))
