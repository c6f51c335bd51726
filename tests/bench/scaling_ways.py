"""Ways to run a model on the rows of a file: seconds and CPU time per row.

CPU time hardly depends on load. If two ways have equal CPU times but different seconds, the machine was busy, or its cores
share memory bandwidth.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.dask import Runner, job
from ir_runtime.dask.datasets import open_dataset
from ir_runtime.dask.manifest import Manifest
from ir_runtime.dask.planning import ArrayType, Planner
from ir_runtime.dask.targets import open_targets, place_targets

__all__ = ["Spent", "Ways", "copying", "two_convolutions"]


class Spent(NamedTuple):
    """The time of a row.

    Args:
        seconds: wall time.
        here: CPU time of this process, in seconds.
        workers: CPU time of other processes.
    """

    seconds: float
    here: float
    workers: float = 0.0

    @property
    def cpu(self) -> float:
        """CPU time of all processes."""
        return self.here + self.workers


class Ways:
    """A model and the rows of a file, run in several ways.

    Args:
        model: path of the ``.xml``.
        data: the rows.
        folder: for files.
        rows: rows per chunk.
    """

    def __init__(self, model: str, data: np.ndarray, folder: Path, rows: int = 1) -> None:
        self.model, self.data, self.rows, self.folder = model, data, rows, folder
        self._x = self._new("rows.npy")
        np.save(self._x, data)

    def plain(self) -> Spent:
        """Call the runner on one thread."""
        runner = Runner.of(self.model)
        runner(self.data[: self.rows])
        return self._timed(lambda: [runner(self.data[i : i + self.rows]) for i in self._starts])

    def processes(self, count: int = 2) -> Spent:
        """Call the runner in plain processes without Dask: the maximum that the cores allow."""
        context = get_context("spawn")
        barrier, cpu = context.Barrier(count + 1), context.Value("d", 0.0)
        path, rows = str(self._x), self.rows
        parts = [
            context.Process(target=_part, args=(self.model, path, rows, n, count, barrier, cpu))
            for n in range(count)
        ]
        for part in parts:
            part.start()
        barrier.wait()  # all have compiled
        found = self._timed(barrier.wait)  # all have ended
        for part in parts:
            part.join()
        return found._replace(workers=cpu.value / len(self.data))

    def queue(self) -> Spent:
        """Run two concurrent requests with `AsyncInferQueue`, each on one thread."""
        net = ov.read_model(self.model)
        config = {"INFERENCE_NUM_THREADS": 2, "NUM_STREAMS": 2}
        queue = ov.AsyncInferQueue(ov.compile_model(net, backend=Runner.of(net).backend, config=config), 2)

        def run() -> None:
            for start in self._starts:
                queue.start_async({0: self.data[start : start + self.rows]})
            queue.wait_all()

        queue.start_async({0: self.data[: self.rows]})
        queue.wait_all()
        return self._timed(run)

    def by_dask(self, client: Any, suffix: str = ".npy") -> Spent:
        """Run by rows."""
        target = self._new(f"out{suffix}")
        found = job_of(self.model, self._x, target, self.rows)
        manifest = Manifest.create(target, {}, found.targets)
        found = replace(found, targets=place_targets(found.targets, manifest.partial))
        before = _cpu_of_workers(client)
        spent = self._timed(lambda: job.run_job(client, found, manifest))
        after = _cpu_of_workers(client)
        manifest.close()
        return spent._replace(workers=(after - before) / len(self.data))

    @property
    def _starts(self) -> range:
        return range(0, len(self.data), self.rows)

    def _new(self, name: str) -> Path:
        """Return the path of a file that does not exist."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / name

    def _timed(self, run: Callable[[], object]) -> Spent:
        cpu, begun = time.process_time(), time.perf_counter()
        run()
        seconds = time.perf_counter() - begun
        return Spent(seconds / len(self.data), (time.process_time() - cpu) / len(self.data))


def job_of(model: str, data: Path, target: Path, rows: int) -> job.Job:
    """Return a job on a data set without results."""
    net = ov.read_model(model)
    name = net.input().label
    source = open_dataset(str(data), name)
    planner = Planner.of(Runner.of(model), net, {name: source.shape}, lambda *_: "")
    types = planner.outputs({name: (rows, *source.shape[1:])}, "a chunk")
    whole = {
        n: ArrayType((source.shape[0], *t.shape[1:]), t.dtype)
        for n, t in zip(planner.runner.outputs, types, strict=True)
    }
    return job.Job(planner.runner, {name: source}, open_targets(target, whole, rows), rows, source.shape[0])


def copying(shape: tuple[int, ...], path: Path) -> str:
    """Save a trivial model."""
    x = op.parameter([-1, *shape], np.float32, name="x")
    ov.save_model(ov.Model([op.result(op.relu(x))], [x], "copying"), path, compress_to_fp16=False)
    return str(path)


def two_convolutions(size: int = 224) -> ov.Model:
    """Return a network that takes a millisecond for an image of ``size`` by ``size``."""
    rng = np.random.default_rng(0)
    x = found = op.parameter([-1, 3, size, size], np.float32, name="image")
    for inputs, outputs in ((3, 16), (16, 32)):
        filters = rng.standard_normal((outputs, inputs, 3, 3)).astype(np.float32)
        found = op.relu(op.convolution(found, op.constant(filters), [4, 4], [1, 1], [1, 1], [1, 1]))
    scores = op.reduce_mean(found, op.constant(np.array([2, 3])), keep_dims=False)
    return ov.Model([op.result(scores)], [x], "two_convolutions")


def _cpu_of_workers(client: Any) -> float:
    """Return the CPU time of worker processes."""
    return sum(cpu for process, cpu in client.run(_cpu).values() if process != os.getpid())


def _cpu() -> tuple[int, float]:
    return os.getpid(), time.process_time()


def _part(
    model: str, path: str, rows: int, number: int, count: int, barrier: Barrier, cpu: Synchronized[float]
) -> None:
    """Run every ``count``-th chunk from a given one on; add the CPU time to ``cpu``."""
    data = np.load(path)
    runner = Runner.of(model)
    runner(data[:rows])
    barrier.wait()
    begun = time.process_time()
    for start in range(number * rows, len(data), count * rows):
        runner(data[start : start + rows])
    with cpu.get_lock():
        cpu.value += time.process_time() - begun
    barrier.wait()
