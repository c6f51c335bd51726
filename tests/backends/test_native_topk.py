"""TopK on the fast backends: the elements and the order of the reference, along any axis, for any ``k``."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ir
from ir_runtime import opset11 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

CASES = [
    ((3, 40, 50), 1, 5), ((3, 40, 50), 2, 5), ((3, 40, 50), 0, 3), ((40, 3), 0, 32), ((3, 200), 1, 7), ((1, 64, 7, 9), 1, 1),
    ((5, 300), 1, 100), ((30, 70, 9), 1, 50), ((2, 9000), 1, 900), ((1, 9000), 1, 20), ((2, 33, 17), 1, 33), ((9, 33), 1, 33),
    ((4, 6, 5), 1, 4),
]  # fmt: skip


def data(shape: tuple[int, ...]) -> list[Array]:
    """Return data with many ties and zeros of either sign; distinct values; infinities; NaN."""
    random = np.random.default_rng(0)
    equal = np.round(random.standard_normal(shape, np.float32) * 3) / 2
    equal.flat[::5] *= -1
    infinite = equal.copy()
    infinite.flat[::11], infinite.flat[3] = -np.inf, np.inf
    nan = infinite.copy()
    nan.flat[::37] = np.nan
    return [equal, random.standard_normal(shape, np.float32), infinite, nan]


@pytest.mark.parametrize(("shape", "axis", "count"), CASES)
@pytest.mark.parametrize("transposed", [False, True])
def test_values_and_order_match_the_reference(
    shape: tuple[int, ...], axis: int, count: int, transposed: bool
) -> None:
    order = list(reversed(range(len(shape))))
    for mode, sort, index in product(("max", "min"), ("value", "index"), ("i32", "i64")):
        parameter = op.parameter(shape, np.float32)
        x: ir.Node = parameter
        if transposed:
            x = op.transpose(op.negative(op.negative(op.transpose(x, order))), order)
        best = op.topk(x, np.int32(count), axis, mode, sort, index)
        model = ir.Model([best.output(0), best.output(1)], [parameter])
        reference, *fast = (
            ir.compile_model(model, backend=name) for name in ("reference", "native", "numpy")
        )
        for fed in data(shape):
            wanted = [*reference(fed).values()]
            for compiled in (*fast, *fast, *fast):
                found = [*compiled(fed).values()]
                np.testing.assert_array_equal(found[1], wanted[1])
                assert found[1].dtype == wanted[1].dtype
                np.testing.assert_array_equal(found[0], wanted[0])
                np.testing.assert_array_equal(np.signbit(found[0]), np.signbit(wanted[0]))


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
