"""Loops in kernels count as Python's do; loops that may raise are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from harness.routines import call_of, forgetting

from ir_runtime.backends.native.build.source import CompileError
from ir_runtime.backends.native.codegen import language
from ir_runtime.backends.native.codegen.language import routine, types
from ir_runtime.backends.native.codegen.memory import load_i64, store_i64

SEVEN, BACK = 7, -3
ENDS = [(0, 0), (0, 5), (5, 0), (-4, 9), (9, -4), (2, 3), (3, 2)]


def _up_to(stop: int, out: int) -> None:
    for i in range(stop):
        store_i64(out, load_i64(out, 0) + 1, i)
        store_i64(out, 0, load_i64(out, 0) + 1)


def _between(start: int, stop: int, out: int) -> None:
    for i in range(start, stop):
        store_i64(out, load_i64(out, 0) + 1, i)
        store_i64(out, 0, load_i64(out, 0) + 1)


def _sevens(start: int, stop: int, out: int) -> None:
    for i in range(start, stop, SEVEN):
        store_i64(out, load_i64(out, 0) + 1, i)
        store_i64(out, 0, load_i64(out, 0) + 1)


def _back(start: int, stop: int, out: int) -> None:
    for i in range(start, stop, BACK):
        store_i64(out, load_i64(out, 0) + 1, i)
        store_i64(out, 0, load_i64(out, 0) + 1)


def _steps(start: int, stop: int, step: int, out: int) -> None:
    for i in range(start, stop, step):
        store_i64(out, load_i64(out, 0) + 1, i)
        store_i64(out, 0, load_i64(out, 0) + 1)


@pytest.fixture(scope="module")
def compiled() -> Iterator[Callable[..., list[int]]]:
    """Run a function of integers as a kernel, and return the values that it stores."""
    made: dict[Any, Any] = {}

    def run(function: Any, *arguments: int) -> list[int]:
        if function not in made:
            kinds = [types.int64] * (len(arguments) + 1)
            made[function] = call_of(routine(*kinds)(function))
        out = np.zeros(64, np.int64)
        made[function](*arguments, out.ctypes.data)
        return out[1 : 1 + out[0]].tolist()

    with forgetting():
        yield run


@pytest.mark.parametrize(("start", "stop"), ENDS)
def test_ranges_with_a_known_step(compiled: Callable[..., list[int]], start: int, stop: int) -> None:
    assert compiled(_up_to, stop) == list(range(stop))
    assert compiled(_between, start, stop) == list(range(start, stop))
    assert compiled(_sevens, start, stop) == list(range(start, stop, SEVEN))
    assert compiled(_back, start, stop) == list(range(start, stop, BACK))


@pytest.mark.parametrize("step", [1, 2, 5, -1, -2, -5])
@pytest.mark.parametrize(("start", "stop"), ENDS)
def test_ranges_with_any_step(compiled: Callable[..., list[int]], start: int, stop: int, step: int) -> None:
    assert compiled(_steps, start, stop, step) == list(range(start, stop, step))


def test_a_step_of_zero_goes_nowhere(compiled: Callable[..., list[int]]) -> None:
    """Python raises an error here, which kernels cannot."""
    assert compiled(_steps, 0, 5, 0) == compiled(_steps, 5, 0, 0) == []


def _raises(at: int) -> None:
    if load_i64(at, 0) < 0:
        raise ValueError("negative")


def _asks_for_any(at: int) -> None:
    store_i64(at, 0, (at, at, 1)[load_i64(at, 0)])


@pytest.mark.parametrize(("function", "what"), [(_raises, "Raise"), (_asks_for_any, "Subscript")])
def test_what_may_raise_is_refused(function: Any, what: str) -> None:
    with pytest.raises(CompileError, match=f"{what} is not supported in kernels"):
        call_of(routine(types.int64)(function))
    del language.ROUTINES[f"ir_runtime_{__name__.rpartition('.')[2]}_{function.__name__}"]


def test_ranges_take_integers() -> None:
    def curious(at: int) -> None:
        for i in range(1.5):  # type: ignore[arg-type]
            store_i64(at, 0, i)

    curious.__qualname__ = "curious"
    with pytest.raises(CompileError, match="range expected one to three integers"):
        call_of(routine(types.int64)(curious))
    del language.ROUTINES[f"ir_runtime_{__name__.rpartition('.')[2]}_curious"]
