"""Asynchronous requests: an error of a run or a callback is reported once, at the next start or wait."""

from __future__ import annotations

import contextvars
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.openvino import background

X = np.ones(2, np.float32)


class Odd(BaseException):
    """A `BaseException` that is neither an `Exception` nor an exit."""


KINDS = [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, Odd]


def net() -> Net:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2", out="FP32 2"), out="FP32 2"))
    return net


@pytest.fixture
def compiled() -> ir.CompiledModel:
    return ir.compile_model(ir.read_model(net().xml()), backend="numpy")


def failing(queue: ir.AsyncInferQueue, kind: type[BaseException], numbers: set[int]) -> list[int]:
    """Let the callback fail for some values; return its arguments."""
    seen: list[int] = []

    def callback(request: ir.InferRequest, number: int) -> None:
        seen.append(number)
        if number in numbers:
            raise kind(f"number {number}")

    queue.set_callback(callback)
    return seen


def ended(queue: ir.AsyncInferQueue) -> None:
    """Wait for the end of runs without raising their errors."""
    for request in queue:
        request._join()


ASKING: list[Callable[[ir.AsyncInferQueue], object]] = [
    lambda queue: queue.start_async(X, 9),
    lambda queue: queue.get_idle_request_id(),
    lambda queue: queue.is_ready(),
    lambda queue: queue.wait_all(),
]


@pytest.mark.parametrize("asking", ASKING, ids=["start", "idle", "ready", "wait"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_call_raises_what_a_callback_raised(
    compiled: ir.CompiledModel, kind: type[BaseException], asking: Callable[[ir.AsyncInferQueue], object]
) -> None:
    queue = ir.AsyncInferQueue(compiled, 2)
    seen = failing(queue, kind, {0})
    queue.start_async(X, 0)
    ended(queue)
    with pytest.raises(kind, match="number 0") as caught:
        asking(queue)
    assert caught.value.__notes__ == ["raised by request 0, which was given 0"]
    assert seen == [0], "nothing was started"
    for number in range(1, 6):
        queue.start_async(X, number)
    queue.wait_all()
    assert sorted(seen) == [0, 1, 2, 3, 4, 5], "it is told once, and no request is lost"
    assert queue.is_ready()


def test_no_failure_is_lost(compiled: ir.CompiledModel) -> None:
    queue = ir.AsyncInferQueue(compiled, 3)
    failing(queue, ValueError, {0, 1, 2})
    started = 0
    caught: list[str] = []
    while started < 3:
        try:
            queue.start_async(X, started)
            started += 1
        except ValueError as reason:
            caught.append(str(reason))
    ended(queue)
    while True:
        try:
            queue.get_idle_request_id()
            break
        except ValueError as reason:
            caught.append(str(reason))
    assert sorted(caught) == ["number 0", "number 1", "number 2"]


def test_waiting_for_all_tells_of_all(compiled: ir.CompiledModel) -> None:
    queue = ir.AsyncInferQueue(compiled, 3)
    together = threading.Barrier(3)

    def callback(request: ir.InferRequest, number: int) -> None:
        together.wait()
        raise (ValueError, SystemExit, LookupError)[number](number)

    queue.set_callback(callback)
    for number in range(3):
        queue.start_async(X, number)
    with pytest.raises(SystemExit) as caught:  # which is for the whole program
        queue.wait_all()
    assert caught.value.code == 1
    first, *others = caught.value.__notes__
    assert first == "raised by request 1, which was given 1"
    assert sorted(others) == [
        "request 0 failed, too: ValueError: 0",
        "request 2 failed, too: LookupError: 2",
    ]
    queue.wait_all()


def test_an_exit_in_a_callback_is_the_exit_of_the_program(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.write_bytes(net().xml())
    program = f"""
import sys, numpy as np, ir_runtime as ov
queue = ov.AsyncInferQueue(ov.compile_model(ov.read_model({str(model)!r})), 2)
queue.set_callback(lambda request, number: sys.exit(3) if number == 5 else None)
for number in range(1000):
    queue.start_async(np.ones(2, np.float32), number)
queue.wait_all()
print("not reached")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")


# Asks OpenVINO, or us, which call raises what. OpenVINO ends the process if it raises the same again.
CALLS = """
import sys, os, importlib, numpy as np
ov = importlib.import_module(sys.argv[1])
compiled = ov.Core().compile_model(ov.Core().read_model(sys.argv[2]), "CPU")
x = np.ones(2, np.float32)
def told(call):
    try:
        call()
    except BaseException as reason:
        return type(reason).__name__
queues = []
for kind in (ValueError, SystemExit, KeyboardInterrupt):
    for name in ("start_async", "get_idle_request_id", "is_ready", "wait_all"):
        def fail(request, number):
            raise kind(number)
        queue = ov.AsyncInferQueue(compiled, 2)
        queues.append(queue)  # which OpenVINO cannot end
        queue.set_callback(fail)
        queue.start_async([x], 0)
        for request in queue:
            getattr(request, "_join", request.wait)()  # OpenVINO's waits, and tells of nothing
        print(name, told(lambda: getattr(queue, name)(*([[x], 1] if name == "start_async" else []))), flush=True)
os._exit(0)
"""


def test_the_calls_that_raise_are_those_of_openvino(tmp_path: Path) -> None:
    model = tmp_path / "model.xml"
    model.write_bytes(net().xml())
    said = [
        subprocess.run(
            [sys.executable, "-c", CALLS, api, str(model)], capture_output=True, text=True, check=True
        )
        for api in ("openvino", "ir_runtime")
    ]
    assert said[0].stdout == said[1].stdout
    assert said[1].stdout.count("SystemExit") == 4


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_tells_who_waits(compiled: ir.CompiledModel, kind: type[BaseException]) -> None:
    request = compiled.create_infer_request()

    def fail(userdata: object) -> None:
        raise kind("mine")

    request.set_callback(fail)
    request.start_async(X)
    raised = RuntimeError if issubclass(kind, Exception) else kind  # as OpenVINO's requests raise
    with pytest.raises(raised, match="mine"):
        request.wait()
    request.wait()
    request.start_async(X)
    with pytest.raises(raised, match="mine"):
        request.wait_for(60_000)
    assert request.infer(X)[0].tolist() == [1, 1]


@pytest.mark.parametrize("again", ["infer", "start_async"])
def test_a_failure_that_nobody_waited_for_is_told_by_the_next_run(
    compiled: ir.CompiledModel, again: str
) -> None:
    request = compiled.create_infer_request()

    def fail(userdata: object) -> None:
        raise LookupError("mine")

    request.set_callback(fail)
    request.start_async(X)
    request._join()
    with pytest.raises(RuntimeError, match="LookupError: mine"):
        getattr(request, again)(X)
    assert request.infer(X)[0].tolist() == [1, 1]


def test_a_thread_that_cannot_be_started_leaves_the_request_idle(
    compiled: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = ir.AsyncInferQueue(compiled, 1)

    def full(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(background._WORKERS, "idle", [])
        patch.setattr(threading.Thread, "start", full)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="can't start new thread"):
                queue.start_async(X)
    queue.start_async(X)
    queue.wait_all()
    assert queue[0].results[0].tolist() == [1, 1]


def test_an_interrupt_after_a_thread_was_started_does_not_stop_the_run(
    compiled: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue, start = ir.AsyncInferQueue(compiled, 1), threading.Thread.start
    seen = failing(queue, ValueError, set())

    def interrupted(thread: threading.Thread) -> None:
        start(thread)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(background._WORKERS, "idle", [])
        patch.setattr(threading.Thread, "start", interrupted)
        with pytest.raises(KeyboardInterrupt):
            queue.start_async(X, 1)
    queue.wait_all()
    queue.start_async(X, 2)
    queue.wait_all()
    assert seen == [1, 2]
    assert list(queue._idle) == [0]


def test_runs_of_a_queue_share_their_threads(
    compiled: ir.CompiledModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, start = [], threading.Thread.start

    def count(thread: threading.Thread) -> None:
        started.append(thread)
        start(thread)

    level, levels = contextvars.ContextVar("level", default=0), []
    queue = ir.AsyncInferQueue(compiled, 2)
    queue.set_callback(lambda request, userdata: levels.append((level.get(), level.set(1))[0]))
    monkeypatch.setattr(background._WORKERS, "idle", [])
    monkeypatch.setattr(threading.Thread, "start", count)
    for _ in range(20):
        queue.start_async(X)
    queue.wait_all()
    assert 1 <= len(started) <= 2
    assert levels == [0] * 20, "the context of a run is its own"


def test_threads_end_that_have_nothing_to_do_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "IDLE_SECONDS", 0.01)
    workers, threads = background._Workers(), []
    workers.run(lambda worker: (threads.append(threading.current_thread()), worker.release()))
    while not threads:
        time.sleep(0.001)
    threads[0].join(60)
    assert not threads[0].is_alive()
    assert not workers.idle


def test_a_thread_that_was_just_taken_waits_for_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(background, "IDLE_SECONDS", 0.01)
    worker, done = background._Worker([]), threading.Event()
    worker.start()
    time.sleep(0.05)
    worker.jobs.put(lambda worker: (done.set(), worker.release()))
    assert done.wait(60)
