"""Products of two computed matrices in the native backend against NumPy in f64: shapes, batches, layouts, fused layers.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime
from ir_runtime import opset13 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

if "native" not in available():
    pytest.skip("the extra 'fast' is not installed", allow_module_level=True)

from ir_runtime.backends.native.threading import parallel

SIZES = [
    (1, 5, 7), (3, 33, 70), (7, 1, 3), (5, 17, 1), (1, 40, 1), (2, 3, 300), (40, 64, 128), (300, 70, 45), (50, 200, 129),
    (600, 3, 200), (64, 2100, 64), (9, 0, 4), (0, 4, 5), (5, 4, 0),
]  # fmt: skip
"""Rows, depth and columns."""
BATCHES = [((3,), ()), ((2, 1), (3,)), ((2, 3), (1, 3)), ((0,), (1,))]
LAYOUTS = list(product([False, True], repeat=2))


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True)
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Run every test with one thread, and with two threads even for the smallest products."""
    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
    threads: int = request.param
    return threads


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def run(model: ir_runtime.Model, threads: int, *data: Array) -> Array:
    """Run twice, the second time as a replay; return the result."""
    compiled = ir_runtime.compile_model(model, backend="native", config={"INFERENCE_NUM_THREADS": threads})
    first = compiled(list(data))[0].copy()
    np.testing.assert_array_equal(first, compiled(list(data))[0])
    return first


def close(found: Array, wanted: Array, scale: Array) -> None:
    """Require results to differ by rounding only; ``scale`` is the product of the absolute values."""
    assert found.shape == wanted.shape
    np.testing.assert_array_less(np.abs(found - wanted), 1e-6 * (scale + 1))


@pytest.mark.parametrize("transposed", LAYOUTS, ids=str)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_sizes_and_batches(size: tuple[int, int, int], transposed: tuple[bool, bool], threads: int) -> None:
    """Each size is tested without a batch, and with one that changes between layouts."""
    rows, depth, columns = size
    batch = (SIZES.index(size) + LAYOUTS.index(transposed)) % len(BATCHES)
    for of_a, of_b in (((), ()), BATCHES[batch]):
        a, b = numbers(*of_a, rows, depth), numbers(*of_b, depth, columns, seed=1)
        given = [
            np.ascontiguousarray(x.swapaxes(-1, -2)) if t else x
            for x, t in zip((a, b), transposed, strict=True)
        ]
        places = [op.parameter(x.shape, np.float32) for x in given]
        model = ir_runtime.Model([op.matmul(*places, *transposed)], places)
        wide = a.astype(np.float64), b.astype(np.float64)
        close(run(model, threads, *given), np.matmul(*wide), np.matmul(*map(np.abs, wide)))


def test_layers_after_it(threads: int) -> None:
    """Fuse a bias of columns, a residual and an activation, for many rows, few rows, and one column."""
    for rows, columns in ((50, 70), (3, 70), (50, 1)):
        a, b, other = numbers(2, rows, 31), numbers(2, 31, columns), numbers(2, rows, columns, seed=2)
        factors, shift = numbers(columns, seed=3), numbers(1, seed=4)
        places = [op.parameter(list(x.shape), np.float32) for x in (a, b, other)]
        scaled = op.multiply(op.matmul(places[0], places[1], False, False), op.constant(factors))
        model = ir_runtime.Model([op.relu(op.add(op.add(scaled, places[2]), op.constant(shift)))], places)
        wide = np.matmul(a.astype(np.float64), b) * factors + other + shift
        found = run(model, threads, a, b, other)
        np.testing.assert_allclose(found, np.maximum(wide, 0), rtol=1e-5, atol=1e-5)


def test_views(threads: int) -> None:
    """Multiply heads with contiguous tokens, as attention does, and every other row and column."""
    x, y = numbers(2, 37, 4, 16), numbers(2, 37, 4, 16, seed=1)
    places = [op.parameter(list(x.shape), np.float32) for _ in range(2)]
    heads = [op.transpose(place, op.constant([0, 2, 1, 3])) for place in places]
    ends = op.constant([0, 0]), op.constant([37, 16]), op.constant([2, 2]), op.constant([2, 3])
    thinned = [op.slice(head, *ends) for head in heads]
    for (left, right), step in ((heads, 1), (thinned, 2)):
        model = ir_runtime.Model([op.matmul(left, right, False, True)], places)
        a, b = (z.astype(np.float64).transpose(0, 2, 1, 3)[:, :, ::step, ::step] for z in (x, y))
        close(run(model, threads, x, y), a @ b.swapaxes(2, 3), np.abs(a) @ np.abs(b).swapaxes(2, 3))


def test_not_a_number_stays_in_its_row(threads: int) -> None:
    a, b = numbers(50, 20), numbers(20, 70)
    a[7, 3] = np.nan
    places = [op.parameter(list(x.shape), np.float32) for x in (a, b)]
    found = run(ir_runtime.Model([op.matmul(*places, False, False)], places), threads, a, b)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(a @ b))


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
