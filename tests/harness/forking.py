"""A program that forks while its other threads run, compile and wait: ``forking.py backend way count``.

``fork`` forks as pre-forking servers do; ``pool`` and ``process`` use `multiprocessing` as data loaders do. The findings of
the child processes are printed as JSON. A child that takes ten minutes counts as hung.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import ir_runtime as ir
from harness.nets import End, Net
from ir_runtime.backends.native.threading import parallel as compiled_threads
from ir_runtime.backends.numpy import parallel
from ir_runtime.ir.tensor import Array

HANGS = 600


def products() -> ir.Model:
    """A model of matrix products that threads share, and a recurrence for which BLAS starts its own threads."""
    net, rng = Net(), np.random.default_rng(0)

    def weights(*shape: int) -> End:
        return net.constant((rng.standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32), "f32")

    y = net.parameter("x", "4,64", out="FP32 4 64")
    for _ in range(2):
        y = net.op("MatMul", y, weights(64, 512), out="FP32 4 512")
        y = net.op("Tanh", y, out="FP32 4 512")
        y = net.op("MatMul", y, weights(512, 64), out="FP32 4 64")
    steps = net.op("Unsqueeze", y, net.constant([0]), out="FP32 1 4 64")
    state, zeros = "FP32 1 1 384", np.zeros((1, 1, 384))
    given = [steps, net.constant(zeros, "f32"), net.constant(zeros, "f32"), net.constant([4])]
    given += [weights(1, 1536, 64), weights(1, 1536, 384), weights(1, 1536)]
    found = net.layer("LSTMSequence", given, ["FP32 1 1 4 384", state, state], version="opset5",
                      hidden_size=384, direction="forward")  # fmt: skip
    net.result(found[0])
    return ir.read_model(net.xml(), net.weights)


@dataclass
class Scene:
    """A model, its expected output, and its thread limit."""

    model: ir.Model
    compiled: ir.CompiledModel
    x: Array
    wanted: Array
    threads: tuple[int, ...]

    @classmethod
    def of(cls, backend: str) -> Scene:
        model = products()
        compiled = ir.compile_model(model, backend=backend)
        x = np.random.default_rng(1).standard_normal((4, 64)).astype(np.float32)
        return cls(model, compiled, x, compiled(x)[0].copy(), counts())

    def agrees(self, found: Array) -> bool:
        """Return whether an output is as expected; not bit for bit, as concurrent runs get fewer threads and NumPy then rounds differently."""
        return np.allclose(found, self.wanted, rtol=0, atol=1e-5)

    def child(self) -> str:
        """Return the errors that a child process finds; empty if none."""
        signal.alarm(HANGS)
        if counts() != self.threads:
            return f"{counts()} threads instead of {self.threads}"
        fresh = ir.compile_model(self.model, backend=self.compiled.backend)
        for compiled in (self.compiled, fresh):
            request = compiled.create_infer_request()
            request.start_async(self.x)
            request.wait()
            for found in (request.results[0], compiled(self.x)[0]):
                if not self.agrees(found):
                    return "other numbers"
        return "" if counts() == self.threads else f"{counts()} threads after a run"


def counts() -> tuple[int, ...]:
    """Return the thread counts of BLAS and of each backend."""
    own = parallel._blas._get() if parallel._blas._get else 0
    with parallel.single_blas():
        inside = parallel._blas._get() if parallel._blas._get else 0
    return own, inside, parallel.thread_count(1 << 62), compiled_threads.threads()


def os_threads() -> int:
    """Return the number of threads of this process; where the system does not report it, the number of Python threads."""
    tasks = Path("/proc/self/task")
    return len(list(tasks.iterdir())) if tasks.exists() else threading.active_count()


def settled(threads: int) -> None:
    """Wait until at most ``threads`` threads remain: stopped threads exit asynchronously."""
    ends = time.monotonic() + HANGS
    while os_threads() > threads and time.monotonic() < ends:
        time.sleep(0.01)


SCENE: Scene


def told() -> str:
    """Return the findings of a child, exceptions included."""
    try:
        return SCENE.child()
    except BaseException:
        return traceback.format_exc()


def of_pool(_: int) -> str:
    return told()


def forked() -> str:
    reading, writing = os.pipe()
    if not (child := os.fork()):
        os.write(writing, told().encode()[-4000:] or b"-")
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    _, status = os.waitpid(child, 0)
    return said.strip("-") if said else f"ended with status {status}"


def in_process() -> str:
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    process = context.Process(target=lambda: answers.put(told()))
    process.start()
    process.join()
    return "ended by itself" if answers.empty() else str(answers.get())


def in_pool() -> str:
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return "".join(pool.map(of_pool, range(4)))


WAYS: dict[str, Callable[[], str]] = {"fork": forked, "process": in_process, "pool": in_pool}


def busy(scene: Scene, over: threading.Event) -> list[threading.Thread]:
    """Start threads that run a model, two of them at once, compile one, and use a queue."""

    def run() -> None:
        while not over.is_set():
            if not scene.agrees(scene.compiled(scene.x)[0]):
                os.abort()

    def compile() -> None:
        while not over.is_set():
            ir.compile_model(scene.model, backend=scene.compiled.backend)(scene.x)

    def queue() -> None:
        requests = ir.AsyncInferQueue(scene.compiled, 2)
        while not over.is_set():
            requests.start_async(scene.x)
        requests.wait_all()

    threads = [threading.Thread(target=work) for work in (run, run, compile, queue)]
    for thread in threads:
        thread.start()
    return threads


def main(backend: str, way: str, count: str) -> None:
    global SCENE
    parallel.MIN_PARALLEL_WORK = 0  # also layers as small as these are shared
    SCENE = Scene.of(backend)
    over = threading.Event()
    threads = busy(SCENE, over)
    try:
        found = Counter(WAYS[way]() for _ in range(int(count)))
    finally:
        over.set()
    for thread in threads:
        thread.join()
    print(
        json.dumps({"children": found, "before": SCENE.threads, "after": counts(), "parent": SCENE.child()})
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
