"""Products with constant matrices on the NumPy backend, single- and multithreaded."""

from __future__ import annotations

import numpy as np
import pytest
from harness.kernels import numbers

from ir_runtime.backends.numpy import parallel
from ir_runtime.backends.numpy.kernels import _gemm as gemm_module
from ir_runtime.backends.numpy.kernels._gemm import gemm, own_matrix
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


def plus_one(block: Array, first: int) -> None:
    np.add(block, 1, out=block)


@pytest.mark.parametrize("transposed", [True, False])
@pytest.mark.parametrize(
    ("rows", "depth", "columns"), [(3, 40, 200), (1, 7, 65), (50, 9, 401), (70, 5, 33), (0, 4, 40)]
)
def test_every_element_is_computed(transposed: bool, rows: int, depth: int, columns: int) -> None:
    x, source = numbers(rows, depth), numbers(columns, depth) if transposed else numbers(depth, columns)
    matrix = source.T if transposed else source
    out, own = np.full((rows, columns), np.nan, np.float32), own_matrix(matrix, source)
    with parallel.single_blas():
        gemm(x, own, out, plus_one)
    np.testing.assert_allclose(out, x @ matrix + 1, rtol=1e-4, atol=1e-4)
    assert own.flags.c_contiguous
    np.testing.assert_array_equal(own, matrix)


@pytest.mark.parametrize(("rows", "expected"), [(2, (9, 128)), (300, (9, 200))])
def test_each_thread_lets_blas_pack_as_little_as_possible(
    rows: int, expected: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed_by_blas: list[tuple[int, ...]] = []
    multiply = np.matmul

    def spy(a: Array, b: Array, out: Array) -> None:
        packed_by_blas.append(b.shape[-2:])
        multiply(a, b, out)

    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
    monkeypatch.setattr(parallel, "max_threads", 2)
    monkeypatch.setattr(gemm_module.np, "matmul", spy)
    x, matrix, out = numbers(rows, 9), numbers(9, 200), np.empty((rows, 200), np.float32)
    gemm(x, matrix, out, plus_one)
    assert packed_by_blas[0] == expected
    np.testing.assert_allclose(out, multiply(x, matrix) + 1, rtol=1e-4, atol=1e-4)


def test_threads_share_columns_where_rows_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    def spy(work: object, chunks: list[object], size: int) -> None:
        shared.append(len(chunks))
        parallel.parallel_for(work, chunks, size)  # type: ignore[arg-type]

    monkeypatch.setattr(gemm_module, "parallel_for", spy)
    monkeypatch.setattr(parallel, "max_threads", 3)
    x, matrix = numbers(2, 9), numbers(9, 200)
    gemm(x, matrix, np.empty((2, 200), np.float32), lambda block, first: None)
    assert shared[0] == 2  # 128 and 72 columns
