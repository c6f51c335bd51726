"""Sums and means keep the precision of the type."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ir_runtime.ops.kernels.statistics import accumulator, compute_dtype, count, mean, sum_along


@pytest.mark.parametrize(
    ("given", "added", "computed"),
    [
        (np.float64, np.float64, np.float64),
        (np.float32, np.float64, np.float32),
        (np.float16, np.float64, np.float32),
        (ml_dtypes.bfloat16, np.float64, np.float32),
        (np.int8, np.int64, np.int8),
        (np.uint32, np.uint64, np.uint32),
        (object, object, object),
        (bool, bool, bool),
    ],
)
def test_types(given: type, added: type, computed: type) -> None:
    assert accumulator(np.dtype(given)) == np.dtype(added)
    assert compute_dtype(np.dtype(given)) == np.dtype(computed)


def test_a_long_sum_is_exact() -> None:
    x = np.full((100_000, 2), 0.1, np.float32)
    np.testing.assert_allclose(sum_along(x, (0,)), 100_000 * float(np.float32(0.1)), rtol=1e-12)


def test_integer_means_drop_what_follows_the_point() -> None:
    x = np.array([[7, -8, -9], [1, 1, 0], [-1, -1, 0]], np.int8)
    np.testing.assert_array_equal(mean(x, (1,)), [-3, 0, 0])
    assert mean(x, (1,)).dtype == np.int64
    largest = np.full((1, 2), 2**64 - 1, np.uint64) // 2
    np.testing.assert_array_equal(mean(largest, (1,)), [2**63 - 1])


def test_the_mean_of_nothing_is_zero() -> None:
    for dtype in (np.float32, np.int32):
        np.testing.assert_array_equal(mean(np.ones((2, 0), dtype), (1,), keepdims=True), [[0], [0]])


def test_count() -> None:
    assert [count((2, 3, 4), axes) for axes in ((), (1,), (0, 2), (-1,))] == [1, 3, 8, 4]
