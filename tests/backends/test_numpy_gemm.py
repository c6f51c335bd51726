"""Products with packed matrices on the NumPy backend, of one thread and of several."""

from __future__ import annotations

import numpy as np
import pytest
from harness.numpy_kernels import numbers

from ir_runtime.backends.numpy.math import gemm as gemm_module
from ir_runtime.backends.numpy.math.gemm import gemm
from ir_runtime.backends.numpy.math.panels import Panels
from ir_runtime.backends.numpy.threading import parallel
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


def plus_one(block: Array, first: int) -> None:
    np.add(block, 1, out=block)


@pytest.mark.parametrize("tiled", [True, False])
@pytest.mark.parametrize(("rows", "depth", "columns"), [(3, 40, 200), (1, 7, 65), (50, 9, 401), (70, 5, 33)])
def test_every_column_is_computed(tiled: bool, rows: int, depth: int, columns: int) -> None:
    x, matrix = numbers(rows, depth), numbers(depth, columns)
    out = np.full((rows, columns), np.nan, np.float32)
    with parallel.single_blas():
        gemm(x, Panels.of(matrix, matrix, tiled), out, plus_one)
    np.testing.assert_allclose(out, x @ matrix + 1, rtol=1e-4, atol=1e-4)


def test_threads_share_the_columns_of_a_panel(monkeypatch: pytest.MonkeyPatch) -> None:
    shared: list[int] = []

    def spy(work: object, chunks: list[object], size: int) -> None:
        shared.append(len(chunks))
        parallel.parallel_for(work, chunks, size)  # type: ignore[arg-type]

    monkeypatch.setattr(gemm_module, "parallel_for", spy)
    monkeypatch.setattr(parallel, "max_threads", 3)
    x, matrix = numbers(2, 9), numbers(9, 200)
    gemm(x, Panels.of(matrix, matrix, tiled=False), np.empty((2, 200), np.float32), lambda block, first: None)
    assert shared[0] == 2  # 128 and 72 columns
