"""An interrupt at any point leaves a sound state: resources are released, and the next run gives the right result."""

from __future__ import annotations

import contextlib
import dis
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np
import pytest
from harness.forking import Scene, os_threads, settled

import ir_runtime as ir
from ir_runtime import limits
from ir_runtime._util import deadline, forks
from ir_runtime._util.scoped import Scope, inside
from ir_runtime.backends.core import threads
from ir_runtime.backends.native.threading import parallel as _pools
from ir_runtime.backends.native.threading import parallel as compiled_threads
from ir_runtime.backends.numpy import parallel
from ir_runtime.executor import context
from ir_runtime.executor.step import Profile

PACKAGE = str(Path(ir.__file__).parent)


@cache
def _begins(code: CodeType) -> frozenset[int]:
    """Return the offsets where a function starts or a generator resumes."""
    return frozenset(each.offset for each in dis.get_instructions(code) if each.opname == "RESUME")


@cache
def _places(code: CodeType) -> frozenset[int]:
    """Return the offsets of instructions before which Python checks for signals: after calls into C, and at backward jumps."""
    found, after_call = set(), False
    for instruction in dis.get_instructions(code):
        if after_call or instruction.opname == "JUMP_BACKWARD":
            found.add(instruction.offset)
        after_call = instruction.opname.startswith("CALL")
    return frozenset(found)


def _is_ours(code: CodeType) -> bool:
    """Return whether code belongs to the package, or to the standard library on its behalf. `threading.Condition` does not survive interrupts."""
    if code.co_filename == threading.__file__:
        return code.co_name == "start"
    return code.co_filename.startswith(PACKAGE) or code.co_filename == contextlib.__file__


class Interrupter:
    """Counts the interruptible points that a call passes, and raises `KeyboardInterrupt` at one of them."""

    def __init__(self, place: int = -1) -> None:
        self.place, self.passed = place, 0
        self.where = ""
        self._in_python: FrameType | None = None

    def during(self, call: Callable[[], Any]) -> None:
        """Make a call that is interrupted at the given point, if it gets there."""
        sys.settrace(self._called)
        try:
            call()
        finally:
            sys.settrace(None)
            self._in_python = None  # which keeps what is left of the call alive

    def _called(self, frame: FrameType, event: str, arg: object) -> Any:
        self._in_python = frame.f_back
        if not _is_ours(frame.f_code):
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        if frame.f_lasti in _begins(frame.f_code):
            self._pass(frame)
        return self._goes_on

    def _goes_on(self, frame: FrameType, event: str, arg: object) -> Any:
        if event == "opcode" and frame.f_lasti in _places(frame.f_code):
            if self._in_python is not frame:
                self._pass(frame)
            self._in_python = None
        return self._goes_on

    def _pass(self, frame: FrameType) -> None:
        self.passed += 1
        if self.passed == self.place:
            self.where = f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_qualname}"
            raise KeyboardInterrupt


TESTS = Path(__file__).parents[1]
BACKENDS = ["numpy", "native"]


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timers that interrupt")
@pytest.mark.parametrize("count", [30, pytest.param(300, marks=pytest.mark.oracle)])
@pytest.mark.parametrize("backend", BACKENDS)
def test_interrupts_by_a_timer(backend: str, count: int) -> None:
    run = [sys.executable, str(TESTS / "harness" / "interrupting.py"), backend, str(count)]
    paths = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
    done = subprocess.run(run, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": paths})
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert found["wrong"] == 0
    assert found["counts"] == found["expected"]
    assert found["threads"] <= found["before"]


class Calls:
    """A compiled model and all ways of running it."""

    def __init__(self, backend: str) -> None:
        self.scene = Scene.of(backend)
        self.request = self.scene.compiled.create_infer_request()
        self.queue = ir.AsyncInferQueue(self.scene.compiled, 2)

    def call(self) -> None:
        self.scene.compiled(self.scene.x)

    def call_with_new_threads(self) -> None:
        self.call()

    def infer(self) -> None:
        self.request.infer(self.scene.x)

    def watch(self) -> None:
        self.scene.compiled(self.scene.x, observers=[Profile()])

    def start(self) -> None:
        self.request.start_async(self.scene.x)
        self.request.wait()

    def queued(self) -> None:
        for number in range(3):
            self.queue.start_async(self.scene.x, number)
        self.queue.wait_all()

    def compile(self) -> None:
        ir.compile_model(self.scene.model, backend=self.scene.compiled.backend)

    def settle(self) -> None:
        """Wait for background work."""
        self.queue.wait_all()
        self.request.wait()

    def state(self) -> dict[str, Any]:
        """Return the state that a run changes temporarily."""
        return {
            "BLAS": parallel._blas._get() if parallel._blas._get else 0,
            "runs": [*parallel._blas._runs, *self.scene.compiled._running],
            "forks": [forks.SAFEPOINT.computing, forks.SAFEPOINT.halted],
            "limits": [limits._CURRENT.get(), deadline._DEADLINE.get(), threads._MOST.get()],
            "run": [context.RUN.get(None), compiled_threads._RUN.get()],
            "errors": np.geterr(),
            "idle": [sorted(self.queue._idle), self.request._runs()],
        }


WAYS: list[tuple[Callable[[Calls], None], int]] = [
    (Calls.call, 3),
    (Calls.call_with_new_threads, 5),
    (Calls.infer, 5),
    (Calls.watch, 7),
    (Calls.start, 1),
    (Calls.queued, 3),
    (Calls.compile, 101),
]


@pytest.mark.parametrize("fewer", [13, pytest.param(1, marks=pytest.mark.oracle)])
@pytest.mark.parametrize(("way", "every"), WAYS, ids=[way.__name__ for way, _ in WAYS])
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_interrupt_anywhere(
    backend: str, way: Callable[[Calls], None], every: int, fewer: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupt a run at each of a sample of the points where Python checks for signals."""
    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
    parallel._pool.close()
    calls = Calls(backend)
    way(calls)
    state, threads = calls.state(), os_threads()
    counting = Interrupter()
    counting.during(lambda: way(calls))
    assert counting.passed > 50
    for place in range(1, counting.passed + 1, every * fewer):
        if way is Calls.call_with_new_threads:
            _pools._IDLE.clear()
            parallel._pool.close()
        interrupter = Interrupter(place)
        try:
            interrupter.during(lambda: way(calls))
        except KeyboardInterrupt:
            pass
        else:
            assert interrupter.passed < place, f"an interrupt was lost: {interrupter.where}"
        calls.settle()
        assert calls.state() == state, interrupter.where
        assert calls.scene.agrees(calls.scene.compiled(calls.scene.x)[0]), interrupter.where
    settled(threads)
    assert os_threads() <= threads


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_scopes_end_in_reverse_whatever_happens(error: type[BaseException] | None) -> None:
    """They do when an interrupt arrives while they end, too; an error is not mistaken for an interrupt."""
    events: list[tuple[str, bool]] = []
    keys: set[object] = set()

    def scope(name: str, ends: Iterator[type[BaseException] | None]) -> Scope:
        def begin(work: object) -> None:
            keys.add(work)

        def end(work: object, interrupted: bool) -> None:
            events.append((name, interrupted))
            keys.add(work)
            if (reason := next(ends, None)) is not None:
                raise reason

        return Scope(begin, end)

    def work() -> int:
        if error is not None:
            raise error
        return 3

    def run() -> int:
        return inside((scope("outer", iter([])), scope("inner", iter([KeyboardInterrupt]))), work)

    with pytest.raises(KeyboardInterrupt):
        run()
    interrupted = error is KeyboardInterrupt
    assert events == [(name, interrupted) for name in ("inner", "inner", "outer")]
    assert len(keys) == 1


@pytest.mark.parametrize(("error", "kept"), [(ValueError, True), (KeyboardInterrupt, False)])
def test_whose_threads_are_used_again(
    error: type[BaseException], kept: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failed run keeps its threads; an interrupted one ends them, even if its traceback is kept."""
    monkeypatch.setattr(_pools, "_IDLE", [])
    monkeypatch.setattr(compiled_threads, "most", lambda cores: 2)

    def run() -> None:
        compiled_threads._pool(compiled_threads._RUN.get())
        raise error

    with pytest.raises(error):
        inside((compiled_threads.running,), run)
    assert bool(_pools._IDLE) is kept
