"""What runs by Dask cost, on real workers, and what that means for many of them, by simulation.

``python tests/bench/scaling.py measure MODEL...`` prints what a task and a byte cost, the rows a second of one and two
workers of one thread, of two threads, of two plain processes, and of `AsyncInferQueue`, and what a simulation that is driven by these costs
says about one and two workers, which are compared, and about up to 1,000. All are measured in turns, and the median
of the turns is printed, so that what else the machine does falls on all of them.

``python tests/bench/scaling.py large MODEL --gigabytes 20`` runs a model on data that is generated chunk by chunk, and
prints the most memory that each worker had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scaling_simulation import Costs, print_simulation

import ir_runtime as ov
from ir_runtime import opset13 as op
from ir_runtime.dask import Runner, job, map_blocks
from ir_runtime.dask.cluster import connected
from ir_runtime.dask.datasets import open_dataset
from ir_runtime.dask.manifest import Manifest
from ir_runtime.dask.planning import ArrayType, Planner
from ir_runtime.dask.targets import create_targets, open_targets

KINDS = (("local", 1), ("local", 2), ("threads", 2))


def job_of(model: str, data: Path, target: Path, rows: int) -> job.Job:
    """Return a job on a data set, whose results are new."""
    net = ov.read_model(model)
    name = net.input().label
    source = open_dataset(str(data), name)
    planner = Planner.of(Runner.of(model), net, {name: source.shape}, lambda *_: "")
    types = planner.outputs({name: (rows, *source.shape[1:])}, "a chunk")
    whole = {
        n: ArrayType((source.shape[0], *t.shape[1:]), t.dtype)
        for n, t in zip(planner.runner.outputs, types, strict=True)
    }
    targets = open_targets(target, whole, rows)
    create_targets(targets)
    return job.Job(planner.runner, {name: source}, targets, rows, source.shape[0])


class Measured:
    """A model on the rows of a file: seconds a row of each way to run it.

    Args:
        model: path of the ``.xml``.
        data: the rows.
        folder: for files.
        rows: rows of a chunk.
    """

    def __init__(self, model: str, data: np.ndarray, folder: Path, rows: int = 1) -> None:
        self.model, self.data, self.rows, self.folder = model, data, rows, folder
        self._x = self._new("rows.npy")
        np.save(self._x, data)

    def plain(self) -> float:
        """Call the runner on one thread."""
        job = self._job(".npy")
        return self._timed(lambda: [job.runner(self.data[i : i + self.rows]) for i in self._starts])

    def processes(self, count: int = 2) -> float:
        """Call the runner in plain processes, without Dask: what the cores give at most."""
        context = get_context("spawn")
        barrier = context.Barrier(count + 1)
        path, rows = str(self._x), self.rows
        parts = [
            context.Process(target=_part, args=(self.model, path, rows, n, count, barrier))
            for n in range(count)
        ]
        for part in parts:
            part.start()
        barrier.wait()  # all have compiled
        found = self._timed(barrier.wait)  # all have ended
        for part in parts:
            part.join()
        return found

    def queue(self) -> float:
        """Run two requests at once by `AsyncInferQueue`, each on one thread."""
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

    def by_dask(self, client: Any, suffix: str = ".npy") -> float:
        """Run by rows."""
        found = self._job(suffix)
        manifest = Manifest.create(self._new("run"), {})
        summary = job.run_job(client, found, manifest)
        manifest.close()
        return summary.seconds / summary.rows

    @property
    def _starts(self) -> range:
        return range(0, len(self.data), self.rows)

    def _job(self, suffix: str) -> job.Job:
        return job_of(self.model, self._x, self._new(f"out{suffix}"), self.rows)

    def _new(self, name: str) -> Path:
        """Return the path of a file that does not exist."""
        return Path(tempfile.mkdtemp(dir=self.folder)) / name

    def _timed(self, run: Callable[[], object]) -> float:
        begun = time.perf_counter()
        run()
        return (time.perf_counter() - begun) / len(self.data)


def _part(model: str, path: str, rows: int, number: int, count: int, barrier: Barrier) -> None:
    """Run every ``count``-th chunk, from a number on."""
    data = np.load(path)
    runner = Runner.of(model)
    runner(data[:rows])
    barrier.wait()
    for start in range(number * rows, len(data), count * rows):
        runner(data[start : start + rows])
    barrier.wait()


def copying(shape: tuple[int, ...], path: Path) -> str:
    """Save a model that does next to nothing."""
    x = op.parameter([-1, *shape], np.float32, name="x")
    ov.save_model(ov.Model([op.result(op.relu(x))], [x], "copying"), path, compress_to_fp16=False)
    return str(path)


def costs(client: Any, folder: Path, turns: int) -> Costs:
    """Print and return what a chunk, a task and a byte cost on one worker, beside the model."""
    small = Measured(copying((1,), folder / "small.xml"), np.ones((400, 1), np.float32), folder)
    wide = Measured(copying((1 << 18,), folder / "wide.xml"), np.ones((64, 1 << 18), np.float32), folder)
    several = job.TASK_SECONDS
    found: dict[str, list[float]] = {}
    for turn in range(turns + 1):
        job.TASK_SECONDS = 0.0  # a chunk is a task
        begun = time.process_time()
        tasks = small.by_dask(client) - small.plain()
        here = (time.process_time() - begun) / len(small.data)
        job.TASK_SECONDS = several
        part = {
            "task": tasks,
            "scheduling": here,
            "chunk": small.by_dask(client) - small.plain(),
            "zarr": small.by_dask(client, ".zarr") - small.plain(),
            "byte": (wide.by_dask(client) - wide.plain()) / (2 * 4 << 18),
        }
        for name, seconds in part.items() if turn else ():  # the first turn compiles
            found.setdefault(name, []).append(seconds)
    middle = {name: median(seconds) for name, seconds in found.items()}
    print(f"a task of one chunk, beside the model      {middle['task'] * 1e3:8.2f} ms")
    print(f"  CPU time of the client and the scheduler {middle['scheduling'] * 1e3:8.2f} ms")
    print(f"a chunk of a task that has several, .npy   {middle['chunk'] * 1e3:8.2f} ms")
    print(f"  the same to .zarr                        {middle['zarr'] * 1e3:8.2f} ms")
    print(f"a byte that is read or written             {max(middle['byte'], 0) * 1e9:8.2f} ns")
    return Costs(middle["task"], middle["scheduling"])


def measure(options: argparse.Namespace) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        clients = {kind: stack.enter_context(connected(*kind)) for kind in KINDS}
        found = costs(clients["local", 1], folder, options.turns)
        for model in options.models:
            _measure(model, clients, folder, found, options)


def _measure(
    model: str, clients: dict[tuple[str, int], Any], folder: Path, found: Costs, options: argparse.Namespace
) -> None:
    shape = [d.get_length() for d in ov.read_model(model).input().partial_shape][1:]
    rng = np.random.default_rng(0)
    first = Measured(model, rng.standard_normal((4, *shape)).astype(np.float32), folder)
    for client in clients.values():  # compiles
        first.by_dask(client)
    first.plain()
    seconds = first.plain()
    data = rng.standard_normal((max(8, int(options.seconds / seconds)), *shape)).astype(np.float32)
    timed = Measured(model, data, folder)
    ways: dict[str, Callable[[], float]] = {
        "plain": timed.plain,
        **{
            f"{kind[0]} {kind[1]}": lambda client=client: timed.by_dask(client)
            for kind, client in clients.items()
        },
        "2 processes": timed.processes,
        "queue": timed.queue,
    }
    turns = [{name: way() for name, way in ways.items()} for _ in range(options.turns)]
    middle = {name: median(turn[name] for turn in turns) for name in ways}

    def ratio(slow: str, fast: str, *of: str) -> str:
        """Return how many times as fast one way is; relative to the same of two others, if they are given."""
        ratios = sorted(turn[slow] / turn[fast] / (turn[of[0]] / turn[of[1]] if of else 1) for turn in turns)
        return f"{median(ratios):5.2f} (turns {ratios[0]:.2f} to {ratios[-1]:.2f})"

    print(f"\n{Path(model).stem}, {len(data)} rows, a row a chunk, median of {len(turns)} turns")
    for name, seconds in middle.items():
        print(f"  {name:11} {1 / seconds:9.1f} rows/s")
    print(f"  2 workers / 1 worker        {ratio('local 1', 'local 2')}; must be at least 1.7")
    print(f"  2 processes / 1, no Dask    {ratio('plain', '2 processes')}; what the cores give now")
    print(f"  2 / 1 workers, of 2 / 1 processes {ratio('local 1', 'local 2', 'plain', '2 processes')}")
    print(f"  2 threads / AsyncInferQueue {ratio('queue', 'threads 2')}; must be at least 0.95")
    print(
        f"  a row of 1 worker, beside the model {(middle['local 1'] - middle['plain']) * 1e3:.2f} ms; must be at most 3"
    )
    print_simulation(middle["plain"], found, {1: 1 / middle["local 1"], 2: 1 / middle["local 2"]})


def large(options: argparse.Namespace) -> None:
    """Run a model on generated data, and print the memory of the workers."""
    import dask.array as da

    net = ov.read_model(options.model)
    shape = [d.get_length() for d in net.input().partial_shape][1:]
    net.reshape([-1, *shape])
    row = int(np.prod(shape)) * 4
    chunks = -(-int(options.gigabytes * 1e9) // (row * options.rows))
    x = da.map_blocks(
        generated, shape=(options.rows, *shape), chunks=((options.rows,) * chunks, *((n,) for n in shape)),
        dtype=np.float32, meta=np.empty((0,) * (len(shape) + 1), np.float32),
    )  # fmt: skip
    with (
        connected("local", options.workers) as client,
        client.as_current(),
        tempfile.TemporaryDirectory() as place,
    ):
        begun = time.perf_counter()
        [scores] = map_blocks(net, x, [net.outputs[0].label], options.batch)
        planned = time.perf_counter() - begun
        client.compute(scores.to_zarr(f"{place}/scores.zarr", compute=False), sync=True)
        seconds = time.perf_counter() - begun
        peaks = client.run(peak_memory)
        found = da.from_zarr(f"{place}/scores.zarr")
        for chunk in sorted({0, chunks // 2, chunks - 1}):  # the same bits in this process
            data = generated((options.rows, *shape), [{"chunk-location": [chunk]}])
            [expected] = Runner.of(net, [net.outputs[0].label], batch=options.batch)(data)
            here = np.asarray(found[chunk * options.rows : (chunk + 1) * options.rows])
            assert np.array_equal(here, expected), f"chunk {chunk} differs"
    print(
        f"{Path(options.model).stem}: {x.nbytes / 1e9:.1f} GB in {chunks} chunks of {options.rows} rows, {options.batch} at once, "
        f"{options.workers} workers: {seconds:.0f} s ({planned:.1f} s to plan), {len(x) / seconds:.1f} rows/s"
    )
    for worker, peak in peaks.items():
        print(f"  most memory of {worker}: {peak / 2**30:.2f} GiB")


def generated(shape: tuple[int, ...], block_info: Any = None) -> np.ndarray:
    """Return the random numbers of a chunk."""
    seed = block_info[None if isinstance(block_info, dict) else 0]["chunk-location"][0]
    return np.random.default_rng(seed).random(shape, np.float32)


def peak_memory() -> int:
    """Return the most resident memory that this process had, in bytes."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("measure")
    one.add_argument("models", nargs="+", metavar="MODEL")
    one.add_argument("--turns", type=int, default=5)
    one.add_argument("--seconds", type=float, default=8.0, help="of one thread, in each turn")
    one.set_defaults(run=measure)
    two = commands.add_parser("large")
    two.add_argument("model")
    two.add_argument("--gigabytes", type=float, default=20.0)
    two.add_argument("--rows", type=int, default=32, help="rows of a chunk")
    two.add_argument("--batch", type=int, default=32, help="rows to run at once")
    two.add_argument("--workers", type=int, default=2)
    two.set_defaults(run=large)
    options = parser.parse_args()
    sys.exit(options.run(options))
