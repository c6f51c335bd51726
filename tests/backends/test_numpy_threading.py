"""Threads of the NumPy backend: events, tasks, and scratch memory."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from ir_runtime.backends.numpy import backend
from ir_runtime.backends.numpy.threading import event as event
from ir_runtime.backends.numpy.threading import parallel
from ir_runtime.backends.numpy.threading import pool as pool
from ir_runtime.backends.numpy.threading.event import Event

WAYS = ["awake", "soon asleep", "asleep at once"]


@pytest.fixture(params=WAYS, autouse=True)
def waiting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """However threads wait."""
    if request.param == "soon asleep":
        monkeypatch.setattr(event, "SPIN_LIMIT", 1)
    if request.param == "asleep at once":
        monkeypatch.setattr(event, "_library", lambda: None)
    monkeypatch.setattr(pool, "_events", [])
    monkeypatch.setattr(parallel, "_pool", pool.ThreadPool())


def test_an_event_that_was_set_before_counts_once() -> None:
    ready, heard = Event(), threading.Event()
    ready.set()
    ready.set()
    ready.wait()
    threading.Thread(target=lambda: (ready.wait(), heard.set()), daemon=True).start()
    assert not heard.wait(0.05)
    ready.set()
    assert heard.wait(5)


def test_no_event_is_lost() -> None:
    there, back, rounds = Event(), Event(), 300

    def answer() -> None:
        for _ in range(rounds):
            there.wait()
            back.set()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    for number in range(rounds):
        if number % 50 == 0:
            time.sleep(0.005)  # the other has fallen asleep by now
        there.set()
        back.wait()
    thread.join(5)
    assert not thread.is_alive()


def test_a_waiting_thread_sleeps_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event, "SPIN_LIMIT", 1000)
    ready = Event()
    thread = threading.Thread(target=ready.wait, daemon=True)
    thread.start()
    while ready._spin_lock is not None and not ready._asleep:
        time.sleep(0.01)
    ready.set()
    thread.join(5)
    assert not thread.is_alive()


def test_every_chunk_is_run_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "max_threads", 3)
    numbers = np.arange(4000, dtype=np.float32)
    with parallel.single_blas():
        for count in (2, 3, 7, 50) * 50:
            done: list[int] = []

            def work(chunk: int, done: list[int] = done) -> None:
                np.sqrt(numbers)
                done.append(chunk)

            parallel.parallel_for(work, range(count), 1 << 40)
            assert sorted(done) == list(range(count))


def test_a_failure_on_any_thread_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parallel, "max_threads", 3)

    def work(chunk: int) -> None:
        time.sleep(0.001)
        if chunk == 5:
            raise ValueError(chunk)

    with parallel.single_blas():
        for _ in range(20):
            with pytest.raises(ValueError, match="5"):
                parallel.parallel_for(work, range(8), 1 << 40)


def test_threads_share_what_saves_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    saved = parallel.MIN_PARALLEL_WORK
    for threads in (1, 2, 8):
        monkeypatch.setattr(parallel, "most", lambda _, threads=threads: threads)
        least = saved * threads // max(threads - 1, 1)
        assert parallel.thread_count(least - 8) == 1
        assert parallel.thread_count(least + 8) == threads


def test_blas_has_its_threads_again_after_a_run() -> None:
    before = parallel._blas._get() if parallel._blas._get else None
    with backend.around(), backend.around():
        assert before is None or parallel._blas._get() == 1
    assert before is None or parallel._blas._get() == before


def test_a_failure_on_another_thread_is_raised() -> None:
    def work(chunk: int) -> None:
        if chunk == 3:
            raise ValueError("chunk 3")

    with backend.around(), pytest.raises(ValueError, match="chunk 3"):
        parallel.parallel_for(work, range(9), 0)
