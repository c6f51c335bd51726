"""Element-wise layers of the NumPy backend against the reference: slopes of any shape, and Maximum and Minimum of two tensors."""

from __future__ import annotations

import numpy as np
import pytest
from harness.kernels import layouts, numbers, same, unknown
from harness.layers import layer

from ir_runtime.backends.numpy import backend
from ir_runtime.ir.tensor import Value

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


@pytest.mark.parametrize("slopes", [[0.0], [-0.5], [2.0, -1.0, 0.5, 0.0, 1.0], [0.25, 1.0, 0.5, 0.1, 0.2]])
@pytest.mark.parametrize("shape", [(2, 5, 7, 3), (0, 5), (1, 5, 70000), (5,)])
def test_slopes_of_any_sign(slopes: list[float], shape: tuple[int, ...]) -> None:
    op, slope = layer("PReLU-1"), np.array(slopes, np.float32)
    x = numbers(*shape, special=True)
    kernel = backend.kernel(op, [unknown(x), Value.constant(slope)])
    assert kernel is not None
    for data in layouts(x):
        with np.errstate(all="ignore"), backend.around():
            same(np.asarray(kernel(data, slope)), op.evaluate(data, slope), 0)


@pytest.mark.parametrize("name", ["Maximum-1", "Minimum-1"])
@pytest.mark.parametrize(
    ("a", "b"), [((2, 5, 7, 3), (2, 5, 7, 3)), ((4, 1, 3), (5, 1)), ((0, 3), (1, 3)), ((7,), (7,))]
)
@pytest.mark.parametrize("special", [False, True])
def test_extrema_of_two_tensors(name: str, a: tuple[int, ...], b: tuple[int, ...], special: bool) -> None:
    """If an element is NaN, the first operand is the result, as in the reference."""
    op, left, right = layer(name), numbers(*a, special=special), numbers(*b, seed=1, special=special)
    kernel = backend.kernel(op, [unknown(left), unknown(right)])
    assert kernel is not None
    for x in layouts(left):
        for y in layouts(right):
            with np.errstate(all="ignore"), backend.around():
                same(np.asarray(kernel(x, y)), op.evaluate(x, y), 0)
