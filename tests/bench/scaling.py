"""What runs by Dask cost, on real workers, and what that means for many of them, by simulation.

``python tests/bench/scaling.py measure MODEL...`` prints what a task and a byte cost, the rows a second of one and two
workers of one thread, of two threads, of two plain processes, and of `AsyncInferQueue`, and what a simulation that is driven by these costs
says about one and two workers, which are compared, and about up to 1,000. All are measured in turns, and the median
of the turns is printed, so that what else the machine does falls on all of them. CPU time a row tells the share of the
machine: two plain processes that take more of it than one share its memory, and no way of ours can do better.

``python tests/bench/scaling.py large [MODEL] --gigabytes 20`` runs a model on data that is generated chunk by chunk, and
prints the most memory that each worker had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from scaling_simulation import Costs, print_simulation
from scaling_ways import Spent, Ways, copying, two_convolutions

import ir_runtime as ov
from ir_runtime.dask import Runner, job, map_blocks
from ir_runtime.dask.cluster import connect

KINDS = (("local", 1), ("local", 2), ("threads", 2))


def costs(client: Any, folder: Path, turns: int) -> Costs:
    """Print and return the costs of a chunk, a task and a byte on one worker, without the model."""
    small = Ways(copying((1,), folder / "small.xml"), np.ones((400, 1), np.float32), folder)
    wide = Ways(copying((1 << 18,), folder / "wide.xml"), np.ones((64, 1 << 18), np.float32), folder)
    several = job.TASK_SECONDS
    found: dict[str, list[float]] = {}
    for turn in range(turns + 1):
        job.TASK_SECONDS = 0.0  # a chunk is a task
        task = small.by_dask(client)
        job.TASK_SECONDS = several
        chunk, plain = small.by_dask(client), small.plain()
        part = {
            "task": task.seconds - plain.seconds,
            "scheduling": task.here,
            "worker": task.workers,
            "chunk": chunk.seconds - plain.seconds,
            "chunk here": chunk.here,
            "chunk worker": chunk.workers,
            "zarr": small.by_dask(client, ".zarr").seconds - plain.seconds,
            "byte": (wide.by_dask(client).seconds - wide.plain().seconds) / (2 * 4 << 18),
        }
        for name, seconds in part.items() if turn else ():  # the first turn compiles
            found.setdefault(name, []).append(seconds)
    middle = {name: median(seconds) for name, seconds in found.items()}
    print(f"a task of one chunk, beside the model      {middle['task'] * 1e3:8.2f} ms")
    print(f"  CPU time of the client and the scheduler {middle['scheduling'] * 1e3:8.2f} ms")
    print(f"  CPU time of the worker, with the model   {middle['worker'] * 1e3:8.2f} ms")
    print(f"a chunk of a task that has several, .npy   {middle['chunk'] * 1e3:8.2f} ms")
    print(f"  CPU time of the client and the scheduler {middle['chunk here'] * 1e3:8.2f} ms")
    print(f"  CPU time of the worker, with the model   {middle['chunk worker'] * 1e3:8.2f} ms")
    print(f"  the same to .zarr                        {middle['zarr'] * 1e3:8.2f} ms")
    print(f"a byte that is read or written             {max(middle['byte'], 0) * 1e9:8.2f} ns")
    return Costs(middle["task"], middle["scheduling"])


def measure(options: argparse.Namespace) -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        folder = Path(name)
        clients = {kind: stack.enter_context(connect(*kind)) for kind in KINDS}
        found = costs(clients["local", 1], folder, options.turns)
        for model in options.models:
            _measure(model, clients, folder, found, options)


def _measure(
    model: str, clients: dict[tuple[str, int], Any], folder: Path, found: Costs, options: argparse.Namespace
) -> None:
    shape = [d.get_length() for d in list(ov.read_model(model).input().partial_shape)[1:]]
    rng = np.random.default_rng(0)
    first = Ways(model, rng.standard_normal((4, *shape)).astype(np.float32), folder)
    for client in clients.values():  # compiles
        first.by_dask(client)
    seconds = first.plain().seconds
    data = rng.standard_normal((max(8, int(options.seconds / seconds)), *shape)).astype(np.float32)
    timed = Ways(model, data, folder)
    ways: dict[str, Callable[[], Spent]] = {
        "plain": timed.plain,
        "2 processes": timed.processes,
        **{
            f"{kind[0]} {kind[1]}": lambda client=client: timed.by_dask(client)
            for kind, client in clients.items()
        },
        "queue": timed.queue,
    }
    turns = [{name: way() for name, way in ways.items()} for _ in range(options.turns)]
    print(f"\n{Path(model).stem}, {len(data)} rows, a row a chunk, median of {len(turns)} turns")
    middle = _print_ways(turns)
    print_simulation(middle["plain"], found, {1: 1 / middle["local 1"], 2: 1 / middle["local 2"]})


def _print_ways(turns: list[dict[str, Spent]]) -> dict[str, float]:
    """Print the time of each way, and the comparisons; return the seconds per row."""
    middle = {name: median(turn[name].seconds for turn in turns) for name in turns[0]}
    cpu = {name: median(turn[name].cpu for turn in turns) for name in turns[0]}

    def ratio(slow: str, fast: str, *of: str) -> str:
        """Return the speedup of one way over another, optionally relative to that of a second pair."""
        ratios = sorted(
            turn[slow].seconds / turn[fast].seconds / (turn[of[0]].seconds / turn[of[1]].seconds if of else 1)
            for turn in turns
        )
        return f"{median(ratios):5.2f} (turns {ratios[0]:.2f} to {ratios[-1]:.2f})"

    for name, seconds in middle.items():
        print(f"  {name:11} {1 / seconds:9.1f} rows/s {cpu[name] * 1e3:9.2f} ms of CPU a row")
    print(f"  2 workers / 1 worker        {ratio('local 1', 'local 2')}; must be at least 1.7")
    print(f"  2 processes / 1, no Dask    {ratio('plain', '2 processes')}; what the cores give now")
    print(f"  2 / 1 workers, of 2 / 1 processes {ratio('local 1', 'local 2', 'plain', '2 processes')}")
    print(f"  2 threads / AsyncInferQueue {ratio('queue', 'threads 2')}; must be at least 0.95")
    print(
        f"  a row of 1 worker, beside the model {(middle['local 1'] - middle['plain']) * 1e3:.2f} ms", end=""
    )
    print(f", {(cpu['local 1'] - cpu['plain']) * 1e3:.2f} ms of CPU; must be at most 3")
    for name in ("2 processes", "local 2", "threads 2", "queue"):
        print(f"  CPU time a row, {name} / plain: {cpu[name] / cpu['plain']:.3f}")
    return middle


def large(options: argparse.Namespace) -> None:
    """Run a model on generated data, and print the memory of the workers."""
    import dask.array as da

    net = ov.read_model(options.model) if options.model else two_convolutions()
    shape = [d.get_length() for d in list(net.input().partial_shape)[1:]]
    net.reshape([-1, *shape])
    row = int(np.prod(shape)) * 4
    chunks = -(-int(options.gigabytes * 1e9) // (row * options.rows))
    x = da.map_blocks(
        generated, shape=(options.rows, *shape), chunks=((options.rows,) * chunks, *((n,) for n in shape)),
        dtype=np.float32, meta=np.empty((0,) * (len(shape) + 1), np.float32),
    )  # fmt: skip
    with (
        connect("local", options.workers) as client,
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
        f"{net.get_friendly_name()}: {x.nbytes / 1e9:.1f} GB in {chunks} chunks of {options.rows} rows, {options.batch} at once, "
        f"{options.workers} workers: {seconds:.0f} s ({planned:.1f} s to plan), {len(x) / seconds:.1f} rows/s"
    )
    for worker, peak in peaks.items():
        print(f"  most memory of {worker}: {peak / 2**30:.2f} GiB")


def generated(shape: tuple[int, ...], block_info: Any = None) -> np.ndarray:
    """Return the random values of a chunk."""
    seed = block_info[None if isinstance(block_info, dict) else 0]["chunk-location"][0]
    return np.random.default_rng(seed).random(shape, np.float32)


def peak_memory() -> int:
    """Return the peak resident memory of this process, in bytes."""
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
    two.add_argument("model", nargs="?", help="by default, two convolutions on 224 by 224")
    two.add_argument("--gigabytes", type=float, default=20.0)
    two.add_argument("--rows", type=int, default=32, help="rows of a chunk")
    two.add_argument("--batch", type=int, default=32, help="rows to run at once")
    two.add_argument("--workers", type=int, default=2)
    two.set_defaults(run=large)
    options = parser.parse_args()
    sys.exit(options.run(options))
