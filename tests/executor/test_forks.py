"""Forks during computations of other threads: locks, threads and settings are intact in the child and in the parent."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.nets import Net
from harness.sources import PACKAGE, trees

import ir_runtime as ir
from ir_runtime._util import forks
from ir_runtime.backends.common import blas as _blas
from ir_runtime.backends.native.threading import parallel as _pools
from ir_runtime.backends.numpy import parallel
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked on this system")

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("backend", "way", "count"),
    [
        ("numpy", "fork", 15),
        ("numpy", "process", 4),
        ("numpy", "pool", 1),
        ("native", "fork", 15),
        ("native", "process", 4),
        ("native", "pool", 1),
        ("reference", "fork", 1),
    ],
)
def test_children_of_a_busy_process(backend: str, way: str, count: int) -> None:
    """Children run models compiled before and after the fork, with as many threads; so does the parent."""
    run = [sys.executable, str(TESTS / "harness" / "forking.py"), backend, way, str(count)]
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(run, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["children"] == {"": count}
    assert found["parent"] == ""
    assert found["after"] == found["before"]


STEPS: list[int] = []
ARRIVED, GO_ON = threading.Event(), threading.Event()


@pytest.fixture
def model() -> Iterator[ir.CompiledModel]:
    """A model that counts its layers; the first one signals that it runs, and waits."""

    @op("ProbeSteps-1")
    class Steps(Op):
        """Return the input."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            if not STEPS:
                ARRIVED.set()
                GO_ON.wait()
            STEPS.append(len(STEPS))
            return data

    STEPS.clear()
    ARRIVED.clear()
    GO_ON.clear()
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    for _ in range(100):
        x = net.op("ProbeSteps", x, out="FP32 2")
    net.result(x)
    yield ir.compile_model(ir.read_model(net.xml()), backend="reference")
    GO_ON.set()
    registry.remove(Steps)


def forking(before: Any = forks.SAFEPOINT.before) -> None:
    """Perform the parent's part of a fork."""
    before()
    forks.SAFEPOINT.forking = None
    forks.SAFEPOINT.notify()


def test_a_fork_waits_until_others_have_halted_between_layers(
    model: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 3600)
    x = np.ones(2, np.float32)
    running = threading.Thread(target=model, args=(x,))
    running.start()
    ARRIVED.wait()

    def go_on() -> None:
        while forks.SAFEPOINT.forking is None:
            time.sleep(0.001)
        GO_ON.set()

    def before() -> None:
        threading.Thread(target=go_on).start()
        forks.SAFEPOINT.before()
        done = len(STEPS)
        assert 0 < done < 100
        assert running.ident in forks.SAFEPOINT.halted
        model(x)  # who forks, may compute
        assert len(STEPS) == done + 100, "and nobody else does"

    forking(before)
    running.join()
    assert len(STEPS) == 200
    assert not forks.SAFEPOINT.halted
    assert not forks.SAFEPOINT.computing


def test_a_fork_does_not_wait_for_ever(model: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """The awaited thread may itself wait for the forking one."""
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 0.1)
    running = threading.Thread(target=model, args=(np.ones(2, np.float32),))
    running.start()
    ARRIVED.wait()
    forking()
    done = len(STEPS)
    GO_ON.set()
    running.join()
    assert done < len(STEPS) == 100, "the other thread was still running"


def test_a_fork_does_not_wait_for_observers(model: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 3600)
    GO_ON.set()
    watched, forked = threading.Event(), threading.Event()

    class Waits:
        def before(self, *_: object) -> None:
            watched.set()
            forked.wait()

        def after(self, *_: object) -> None:
            pass

    running = threading.Thread(target=lambda: model(np.ones(2, np.float32), observers=[Waits()]))
    running.start()
    watched.wait()
    forking()
    is_running = running.is_alive()
    forked.set()
    running.join()
    assert is_running
    assert len(STEPS) == 100


def test_a_fork_waits_for_imports(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A module that is being imported during the fork would stay locked in the child."""
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 3600)
    monkeypatch.setattr(forks, "PACKAGES", {"slow_to_import"})
    monkeypatch.syspath_prepend(str(tmp_path))
    events = "import threading; begun, over = threading.Event(), threading.Event()\n"
    (tmp_path / "events_of_import.py").write_text(events)
    (tmp_path / "slow_to_import.py").write_text(
        "import events_of_import as e; e.begun.set(); e.over.wait()\n"
    )
    import events_of_import  # type: ignore[import-not-found]

    importing = threading.Thread(target=__import__, args=("slow_to_import",))
    importing.start()
    events_of_import.begun.wait()
    assert forks._importing() == {importing.ident}
    threading.Thread(target=events_of_import.over.set).start()
    forking()
    assert not forks._importing()
    importing.join()
    del sys.modules["slow_to_import"], sys.modules["events_of_import"]


def in_child(function: Any) -> str:
    """Return the result of a function in a child process, or the error that it raises there."""
    reading, writing = os.pipe()
    if not (child := os.fork()):
        try:
            said = str(function())
        except BaseException as reason:
            said = repr(reason)
        os.write(writing, said.encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        said = file.read().decode()
    os.waitpid(child, 0)
    return said


quiet = pytest.mark.filterwarnings("ignore:.*use of fork.*:DeprecationWarning")


@quiet
def test_a_request_that_ran_in_the_parent_says_so_in_the_child(
    model: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "FORK_TIMEOUT", 0.1)
    queue = ir.AsyncInferQueue(model, 2)
    request = model.create_infer_request()
    x = np.ones(2, np.float32)
    request.start_async(x)
    queue.start_async(x, "mine")
    ARRIVED.wait()

    def child() -> list[str]:
        GO_ON.set()
        said = []
        for wait in (request.wait, queue.wait_all):
            with pytest.raises(
                ir.ExecutionError, match="the process was forked while the request ran"
            ) as caught:
                wait()
            said.append(str(getattr(caught.value, "__notes__", "")))
        for _ in range(3):
            queue.start_async(x)
        queue.wait_all()
        request.start_async(x)
        request.wait()
        return [*said, str(request.results[0]), str(model._running)]

    notes = ["raised by request 0, which was given 'mine'"]
    assert in_child(child) == str(["", str(notes), "[1. 1.]", "{}"])
    GO_ON.set()
    queue.wait_all()
    request.wait()
    assert request.results[0].tolist() == [1, 1]


CHILD: list[int] = []


@pytest.fixture
def forking_model() -> Iterator[ir.Model]:
    """Multithreaded products, and a layer between them that forks once."""

    @op("ProbeForks-1")
    class Forks(Op):
        """Return the input, in the child process as well."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            if not CHILD:
                CHILD.append(os.fork())
            return data

    CHILD.clear()
    net = Net()
    x, says = net.parameter("x", "300,300", out="FP32 300 300"), "FP32 300 300"
    weights = net.constant(np.eye(300, dtype=np.float32), "f32")
    inner = net.op("ProbeForks", net.op("MatMul", x, weights, out=says), out=says)
    net.result(net.op("MatMul", inner, weights, out=says))
    yield ir.read_model(net.xml(), net.weights)
    registry.remove(Forks)


@quiet
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_run_that_forks_goes_on_in_both(forking_model: ir.Model, backend: str) -> None:
    """It runs on the child's only thread, and its settings hold until it ends."""
    x = np.random.default_rng(0).random((300, 300), np.float32)
    compiled = ir.compile_model(forking_model, backend=backend)
    before = blas_threads()
    right = [np.array_equal(compiled(x)[0], x), blas_threads() == before, not compiled._running]
    right += [np.array_equal(compiled(x)[0], x), blas_threads() == before]
    if CHILD == [0]:
        os._exit(0 if all(right) else 1)
    assert all(right)
    assert os.waitstatus_to_exitcode(os.waitpid(CHILD[0], 0)[1]) == 0


def blas_threads() -> int:
    return int(parallel._blas._get()) if parallel._blas._get else 0


def elsewhere(function: Any) -> None:
    """Call a function in another thread."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_blas_has_its_threads_again_in_a_child() -> None:
    """Settings of other threads' runs are undone in the child; those of this thread are kept."""
    blas = _blas.Blas()
    numbers = [4]
    blas._get, blas._set = lambda: numbers[-1], numbers.append
    other = blas.single()
    elsewhere(other.__enter__)
    with blas.single():
        blas.after_fork()
        assert numbers[-1] == 1
    assert numbers[-1] == 4
    again = blas.single()
    elsewhere(again.__enter__)
    assert numbers[-1] == 1
    blas.after_fork()
    assert (numbers[-1], blas.limited) == (4, False)


def test_a_thread_pool_has_no_workers_in_a_child(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_pools, "_IDLE", [])  # pools of the tests before may have more workers
    pool = _pools.acquire(1)
    assert len(pool) == 1
    pool.begin_run()
    pool.after_fork()
    assert len(pool) == 0
    assert not pool._words.any(), "nobody waits for workers that do not exist"
    _pools.release(pool)
    assert _pools.acquire(1) is not pool


LOCKS = {"Lock", "RLock", "Condition", "Event", "Semaphore", "Queue", "SimpleQueue", "allocate_lock"}


def test_whoever_has_locks_says_what_becomes_of_them_in_a_child() -> None:
    found = []
    for file, tree in trees().items():
        nodes = list(ast.walk(tree))
        called = [node.func for node in nodes if isinstance(node, ast.Call)]
        names = {
            f.attr if isinstance(f, ast.Attribute) else f.id
            for f in called
            if hasattr(f, "attr") or hasattr(f, "id")
        }
        says = {node.name for node in nodes if isinstance(node, ast.FunctionDef)} | names
        says |= {
            d.id
            for node in nodes
            if isinstance(node, ast.FunctionDef)
            for d in node.decorator_list
            if isinstance(d, ast.Name)
        }
        path = file.relative_to(PACKAGE / "backends").as_posix() if "backends" in file.parts else file.name
        if names & LOCKS:
            found.append(path)
            assert says & {"after_fork", "in_child", "after_in_child"}, file
    assert {
        "common/blas.py",
        "compiled.py",
        "queue.py",
    } <= set(found)
