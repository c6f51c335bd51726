"""Native kernels along one axis (cumulative sums, norms, windows) have the bits of the reference."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ir
from ir_runtime import opset8 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

Build = Callable[[ir.Node], ir.Node]
SHAPES = [(3, 7, 5, 9), (1, 64, 6, 21), (40, 33), (2, 3, 100), (300, 70)]
PLACES = [(shape, axis) for shape in SHAPES for axis in range(len(shape))]

along_each_axis = pytest.mark.parametrize(("shape", "axis"), PLACES)


def runs(build: Build, x: Array, backend: str, times: int = 4) -> list[Array]:
    """Return results for the data, then for the same data with reversed axes in memory."""
    data, order = op.parameter(x.shape, np.float32), list(reversed(range(x.ndim)))
    stored = op.transpose(op.relu(op.transpose(data, order)), order)
    ends = [build(data), build(op.subtract(stored, op.relu(op.negative(data))))]
    compiled = ir.compile_model(ir.Model(ends, [data]), backend=backend)
    return [np.stack([*compiled(x).values()]) for _ in range(times)]


def agree(build: Build, shape: tuple[int, ...], rtol: float = 0) -> None:
    """Compare ordinary values, then values with signed zeros, infinities and NaN."""
    plain = np.random.default_rng(0).standard_normal(shape, np.float32)
    special = plain.copy()
    special.flat[::7] = special[0] = -0.0
    special[-1, 0], special[-1, 1], special[-1, 2] = np.inf, np.nan, -np.inf
    for x in (plain, special):
        (wanted,) = runs(build, x, "reference", 1)
        for found in runs(build, x, "native"):
            np.testing.assert_allclose(found, wanted, rtol, 0)
            np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@along_each_axis
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumulative_sums(shape: tuple[int, ...], axis: int, exclusive: bool, reverse: bool) -> None:
    agree(lambda x: op.cum_sum(x, np.int32(axis), exclusive, reverse), shape)


@along_each_axis
@pytest.mark.parametrize(("eps", "mode"), [(1e-6, "add"), (20.0, "max")])
def test_division_by_the_norm(shape: tuple[int, ...], axis: int, eps: float, mode: str) -> None:
    agree(lambda x: op.normalize_l2(x, np.array([axis]), eps, mode), shape)


@pytest.mark.parametrize(
    ("shape", "axes"), [((3, 7, 5, 9), [2, 3]), ((3, 7, 5, 9), [1, 3]), ((40, 33), [0, 1])]
)
def test_division_by_the_norm_over_several_axes(shape: tuple[int, ...], axes: list[int]) -> None:
    agree(lambda x: op.normalize_l2(x, np.array(axes), 1e-6, "add"), shape)


@pytest.mark.parametrize("shape", SHAPES)
def test_division_by_the_norm_of_channels(shape: tuple[int, ...]) -> None:
    agree(lambda x: op.grn(x, 1e-3), shape)


@along_each_axis
@pytest.mark.parametrize(
    ("alpha", "beta", "bias", "size"), [(0.1, 0.75, 1.0, 5), (2.0, 1.5, 0.3, 30), (0.0, 8.0, 1e-3, 1)]
)
def test_local_response(
    shape: tuple[int, ...], axis: int, alpha: float, beta: float, bias: float, size: int
) -> None:
    agree(
        lambda x: op.lrn(x, np.array([axis]), alpha, beta, bias, size), shape, rtol=1.2e-7
    )  # rarely one ULP


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
