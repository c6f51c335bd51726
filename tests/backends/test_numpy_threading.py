"""Threads of the NumPy backend share the chunks of a layer."""

from __future__ import annotations

import time

import numpy as np
import pytest

from ir_runtime.backends.numpy import backend, parallel


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


def test_blas_has_one_thread_while_a_model_is_compiled() -> None:
    with backend.compiling():
        assert parallel._blas._get is None or parallel._blas._get() == 1
