"""Kill workers, or the whole program, at random times of runs by rows; the results must equal those of an undisturbed run.

``PYTHONPATH=tests python -m scaling.kills --runs 20`` prints the events of each run, and exits with 1 if a result differs.
``--seed`` determines the times: a number of recorded chunks, and up to 50 ms more.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import zarr

import ir_runtime as ov
from ir_runtime import opset13 as op

CHUNKS, BATCH, WIDTH = 60, 4, 256
MANIFEST = "out.zarr.manifest.jsonl"
PATIENCE = 600.0
"""Seconds until something that must happen has failed to."""


def prepare(folder: Path, chunks: int = CHUNKS) -> None:
    """Make a model whose chunks take some milliseconds, and its data."""
    rng = np.random.default_rng(0)
    x = found = op.parameter([-1, WIDTH, WIDTH], np.float32, name="x")
    for _ in range(4):
        weights = rng.standard_normal((WIDTH, WIDTH)).astype(np.float32) / np.float32(WIDTH**0.5)
        found = op.tanh(op.matmul(found, op.constant(weights), False, False))
    scores = op.reduce_mean(found, op.constant(np.array([2])), keep_dims=False)
    ov.save_model(ov.Model([op.result(scores)], [x], "tanh"), folder / "net.xml", compress_to_fp16=False)
    np.save(folder / "x.npy", rng.standard_normal((chunks * BATCH - 3, WIDTH, WIDTH)).astype(np.float32))


class Run:
    """A run by rows in another process.

    Args:
        folder: the working directory, with the model and the data; it gets the result.
        resume: whether to resume a former run.
    """

    def __init__(self, folder: Path, resume: bool = False) -> None:
        code = "import sys; from ir_runtime.cli import main; main(sys.argv[1:])"
        line = f"run net.xml -i x.npy -o out.zarr --batch {BATCH} --workers 2"
        command = [sys.executable, "-c", code, *line.split(), *(["--resume"] if resume else [])]
        self._manifest = folder / MANIFEST
        self._process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def recorded(self) -> int:
        """Return the number of recorded chunks."""
        return self._manifest.read_text().count('"done"') if self._manifest.exists() else 0

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *problem: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def wait(self, chunks: int, delay: float) -> int:
        """Wait until chunks are recorded, and a moment more; return the number of recorded chunks."""
        deadline = time.monotonic() + PATIENCE
        while self.recorded() < chunks and self._process.poll() is None:
            assert time.monotonic() < deadline, f"{self.recorded()} of {chunks} chunks are recorded"
            time.sleep(0.002)
        time.sleep(delay)
        return self.recorded()

    def kill(self) -> list[psutil.Process]:
        """Kill the client; return its child processes, which must end by themselves."""
        children = psutil.Process(self._process.pid).children(recursive=True)
        self._process.kill()
        self._process.communicate()
        return children

    def kill_worker(self, rng: random.Random) -> bool:
        """Kill a worker; return whether one was running."""
        workers = list(self._workers())
        if workers and self._process.poll() is None:
            rng.choice(workers).kill()
        return bool(workers)

    def _workers(self) -> Iterator[psutil.Process]:
        try:
            for child in psutil.Process(self._process.pid).children(recursive=True):
                if "spawn_main" in " ".join(child.cmdline()):
                    yield child
        except psutil.NoSuchProcess:
            return

    def end(self) -> None:
        """Wait for a successful end."""
        _, problems = self._process.communicate(timeout=PATIENCE)
        assert self._process.returncode == 0, problems


def result(folder: Path) -> np.ndarray:
    """Return the complete result."""
    return np.asarray(zarr.open(folder / "out.zarr", mode="r")[:])


def clean(folder: Path) -> None:
    """Remove the result."""
    shutil.rmtree(folder / "out.zarr", ignore_errors=True)
    (folder / MANIFEST).unlink(missing_ok=True)


def undisturbed(folder: Path) -> np.ndarray:
    """Return the result of an undisturbed run."""
    clean(folder)
    with Run(folder) as run:
        run.end()
    return result(folder)


def worker_killed(folder: Path, rng: random.Random) -> str:
    """Run, and kill a worker after a while; return the events."""
    clean(folder)
    with Run(folder) as run:
        done = run.wait(rng.randrange(1, CHUNKS - 6), rng.uniform(0, 0.05))
        killed = run.kill_worker(rng)
        run.end()
    return f"{'killed' if killed else 'had ended'} at {done:3} chunks"


def client_killed(folder: Path, rng: random.Random) -> str:
    """Run, kill the client after a while, and resume; return the events."""
    clean(folder)
    with Run(folder) as run:
        done = run.wait(rng.randrange(1, CHUNKS - 6), rng.uniform(0, 0.05))
        children = run.kill()
    with Run(folder, resume=True) as again:
        again.end()
    _, alive = psutil.wait_procs(children, timeout=PATIENCE)
    assert not alive, f"{len(alive)} processes of a client that was killed go on"
    return f"killed at {done:3} chunks, resumed"


KINDS = {"worker": worker_killed, "client": client_killed}


def main(runs: int, seed: int) -> int:
    """Print the events of each run; return the number of wrong results."""
    rng, wrong = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        expected = undisturbed(folder)
        for kind, disturbed in KINDS.items():
            for number in range(runs):
                begun = time.monotonic()
                try:
                    said = disturbed(folder, rng)
                    equal = np.array_equal(result(folder), expected)
                except (AssertionError, subprocess.TimeoutExpired) as reason:
                    said, equal = f"FAILED: {reason}", False
                wrong += not equal
                text = f"{kind} {number + 1:3} {said}, {'equal' if equal else 'DIFFERENT'}"
                print(f"{text}, {time.monotonic() - begun:.0f} s", flush=True)
    print(f"{2 * runs} runs, {wrong} different")
    return wrong


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    os.environ.pop("IR_RUNTIME_BACKEND", None)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(min(main(options.runs, options.seed), 1))
