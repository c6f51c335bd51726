"""Constants are packed by the end of the compilation, on any free thread."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.numpy.math import panels as panels_module
from ir_runtime.backends.numpy.math.panels import Panels
from ir_runtime.backends.numpy.threading.parallel import compiling, defer
from ir_runtime.ir.tensor import Array


def numbers(*shape: int) -> Array:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_deferred_tasks_are_complete_when_compilation_ends(threads: int) -> None:
    done: list[int] = []
    completed: list[int] = []
    with at_most(threads):
        with compiling(), compiling():  # of a body
            for number in range(5):
                defer(done.append, range(number * 10, number * 10 + 10), lambda: completed.append(len(done)))
        assert sorted(done) == list(range(50))
        assert len(completed) == 5
        assert all(found >= 10 for found in completed)


def test_outside_of_a_compilation_tasks_run_at_once() -> None:
    threads: list[threading.Thread | None] = []
    defer(lambda chunk: threads.append(threading.current_thread()), [0, 1], lambda: threads.append(None))
    assert threads == [threading.current_thread()] * 2 + [None]


def test_a_failure_ends_the_compilation() -> None:
    def fail(chunk: int) -> None:
        raise MemoryError(chunk)

    completed: list[int] = []
    with pytest.raises(MemoryError), compiling():
        defer(fail, [1], lambda: completed.append(1))
    assert not completed


@pytest.mark.parametrize("tiled", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize(("depth", "columns"), [(7, 5), (96, 384), (96, 401), (6000, 200)])
def test_matrices_are_packed_chunk_by_chunk(
    depth: int, columns: int, transposed: bool, tiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(panels_module, "PACK_SIZE", 1 << 13)
    matrix = numbers(columns, depth).T if transposed else numbers(depth, columns)
    rows, out = (
        np.eye(depth, dtype=np.float32)[: min(depth, 50)],
        np.empty((min(depth, 50), columns), np.float32),
    )
    with compiling():
        panels = Panels.of(matrix, matrix, tiled)
    panels.multiply(rows, out)
    np.testing.assert_array_equal(out, matrix[: len(rows)])
