"""Integer arithmetic in kernels equals Python's, and gives 0 where Python raises an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from harness.routines import call_of, forgetting

from ir_runtime.backends.native.build.source import CompileError
from ir_runtime.backends.native.codegen.language import routine, types
from ir_runtime.backends.native.codegen.memory import load_f32, store_f32, store_i64

LEAST = -(2**63)
NUMBERS = [0, 1, -1, 7, -7, 8, -8, 9, 1000, -1000, LEAST, LEAST + 1, 2**63 - 1]


def _integers(a: int, b: int, out: int) -> None:
    store_i64(out, 0, a // b)
    store_i64(out, 1, a % b)
    store_i64(out, 2, a // 8)
    store_i64(out, 3, a % 8)
    store_i64(out, 4, a // 7)
    store_i64(out, 5, a % 7)
    store_i64(out, 6, a // -3)
    store_i64(out, 7, a % -3)
    store_i64(out, 8, a // -1)
    store_i64(out, 9, min(a, b))
    store_i64(out, 10, max(a, b))
    store_i64(out, 11, min(a, 5))


def _reals(pair: int, out: int) -> None:
    store_f32(out, 0, min(load_f32(pair, 0), load_f32(pair, 1)))
    store_f32(out, 1, max(load_f32(pair, 0), load_f32(pair, 1)))


@pytest.fixture(autouse=True)
def own_routines() -> Iterator[None]:
    with forgetting():
        yield


def compiled(function: Callable[..., None], *kinds: str) -> Callable[..., None]:
    return call_of(routine(*kinds)(function))


def _or_zero(compute: Callable[[int, int], int], a: int, b: int) -> int:
    """Return 0 where Python raises an error, and where the quotient overflows i64."""
    return 0 if b == 0 or (a, b) == (LEAST, -1) else compute(a, b)


def test_integers() -> None:
    call, out = compiled(_integers, *[types.int64] * 3), np.zeros(12, np.int64)
    for a in NUMBERS:
        for b in NUMBERS:
            call(a, b, out.ctypes.data)
            floor, rest = _or_zero(int.__floordiv__, a, b), _or_zero(int.__mod__, a, b)
            known = [a // 8, a % 8, a // 7, a % 7, a // -3, a % -3, _or_zero(int.__floordiv__, a, -1)]
            assert out.tolist() == [floor, rest, *known, min(a, b), max(a, b), min(a, 5)]


def test_of_numbers_that_do_not_compare_the_first_is_returned() -> None:
    call = compiled(_reals, *[types.int64] * 2)
    for pair in ([1.5, 2.5], [2.5, 1.5], [np.nan, 1], [1, np.nan], [0.0, -0.0], [-0.0, 0.0]):
        given, out = np.array(pair, np.float32), np.zeros(2, np.float32)
        call(given.ctypes.data, out.ctypes.data)
        expected = [min(*given), max(*given)]
        assert out.tobytes() == np.array(expected, np.float32).tobytes()


def test_extremes_are_of_two_numbers() -> None:
    def three(a: int, b: int, out: int) -> None:
        store_i64(out, 0, min(a, b, 0))

    three.__qualname__ = "three"
    with pytest.raises(CompileError, match="min expected two numbers"):
        call_of(routine(*[types.int64] * 3)(three))
