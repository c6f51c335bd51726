"""Extreme f32 activations: no backend overflows where the reference does not."""

from __future__ import annotations

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

LARGEST = np.finfo(np.float32).max
EXTREMES = np.array([1e38, -1e38, LARGEST, -LARGEST, np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0], np.float32)
COUNT = 4100
"""Enough elements for kernels that leave small tensors to NumPy."""
OPSETS = {"HSwish": "opset4", "HSigmoid": "opset5", "Swish": "opset4"}


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("type", ["HSwish", "HSigmoid", "ReLU", "Sigmoid", "Tanh", "Swish"])
def test_activations_of_extreme_values(type: str, backend: str) -> None:
    net = Net()
    x = net.parameter("x", str(COUNT), out=f"FP32 {COUNT}")
    net.result(net.op(type, x, version=OPSETS.get(type, "opset1"), out=f"FP32 {COUNT}"))
    model, fed = ir.read_model(net.xml()), np.resize(EXTREMES, COUNT)
    wanted = ir.compile_model(model, backend="reference")(fed)[0]
    found = ir.compile_model(model, backend=backend)(fed)[0]
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("count", [4, COUNT])
def test_exponentials_that_are_subnormal(count: int, backend: str) -> None:
    net = Net()
    x = net.parameter("x", str(count), out=f"FP32 {count}")
    net.result(net.op("Exp", x, out=f"FP32 {count}"))
    fed = np.linspace(-105, -86, count, dtype=np.float32)
    wanted = np.exp(fed, dtype=np.float64)
    found = ir.compile_model(ir.read_model(net.xml()), backend=backend)(fed)[0]
    smallest = float(np.finfo(np.float32).smallest_subnormal)
    np.testing.assert_allclose(found.astype(np.float64), wanted, rtol=1e-6, atol=smallest)
    assert np.count_nonzero(found) >= np.count_nonzero(wanted > smallest)


def huge(kind: str, *shape: int) -> Array:
    """Return values whose sums, or sums of squares, overflow f32."""
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    flat, middle = x.reshape(-1), x.size // 2
    if kind == "one":
        flat[middle] = 3e38
    elif kind == "opposite":
        flat[middle : middle + 2] = 3e38, -3e38
    elif kind == "large":
        x *= np.float32(1e30)
    else:
        x = np.where(x > 0, np.float32(2e38), np.float32(1e38))
    return x


NORMALIZATIONS = {
    "rows": ("MVN", [-1], (2, 3, 40)),
    "maps": ("MVN", [2, 3], (2, 40, 5, 6)),
    "all but the batch": ("MVN", [1, 2, 3], (2, 8, 5, 6)),
    "groups": ("GroupNormalization", [], (2, 40, 5, 6)),
}
FORMULAS = [
    (name, formula)
    for name, (type, _, _) in NORMALIZATIONS.items()
    for formula in (["inside_sqrt", "outside_sqrt", "mean only"] if type == "MVN" else ["inside_sqrt"])
]


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("kind", ["one", "opposite", "large", "all"])
@pytest.mark.parametrize(("name", "formula"), FORMULAS)
def test_normalization_of_numbers_whose_sums_f32_does_not_hold(
    name: str, formula: str, kind: str, backend: str
) -> None:
    type, axes, shape = NORMALIZATIONS[name]
    divides = formula != "mean only"
    net = Net()
    x = net.parameter("x", ",".join(map(str, shape)))
    if type == "MVN":
        mode = formula if divides else "inside_sqrt"
        how = {"eps_mode": mode, "normalize_variance": divides, "eps": 1e-5}
        net.result(net.op(type, x, net.constant(axes), version="opset6", **how))
        grouped, over = huge(kind, *shape), tuple(axes)
    else:
        ones, zeros = (net.constant(np.full(shape[1], number), "f32") for number in (1, 0))
        net.result(net.op(type, x, ones, zeros, version="opset12", num_groups=4, epsilon=1e-5))
        grouped, over = huge(kind, *shape).reshape(2, 4, -1), (2,)
    wide = grouped.astype(np.float64)
    wanted = wide - wide.mean(over, keepdims=True)
    if divides:
        wanted /= np.sqrt(np.square(wanted).mean(over, keepdims=True) + 1e-5)
    with np.errstate(over="ignore"):
        wanted = wanted.astype(np.float32).reshape(shape)
    found = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)(huge(kind, *shape))[0]
    rounding = 1e-6 * np.abs(wanted[np.isfinite(wanted)]).max()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=rounding)


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("count", [185, COUNT])
def test_products_are_rounded_once(count: int, backend: str) -> None:
    net = Net()
    x = net.parameter("x", f"{count},6")
    net.result(net.op("ReduceProd", x, net.constant([1]), keep_dims=False))
    fed = np.random.default_rng(0).standard_normal((count, 6)).astype(np.float32)
    fed[0], fed[1] = [1e30, 1e30, 1e30, 1e-30, 1e-30, 1e-30], [1e30, 1e30, 1, 1, 1, 1]
    with np.errstate(over="ignore"):
        wanted = np.prod(fed.astype(np.float64), axis=1).astype(np.float32)
    found = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)(fed)[0]
    np.testing.assert_allclose(found, wanted, rtol=1.2e-7)
    assert np.isfinite(found[0])
    assert np.isposinf(found[1])


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("element", ["f32", "f16", "f64"])
@pytest.mark.parametrize("fixed", [None, 0, 1])
@pytest.mark.parametrize("type", ["Maximum", "Minimum"])
def test_the_first_operand_of_extremes_counts_where_one_is_nan(
    type: str, fixed: int | None, element: str, backend: str
) -> None:
    """The specification does not define NaN; OpenVINO's reference returns the first operand if the comparison is false."""
    a, b = [0.0, np.nan, np.nan, 1.0], [np.nan, 0.0, np.nan, 2.0]
    extreme = 2.0 if type == "Maximum" else 1.0
    net, arrays = Net(), [np.resize(numbers, COUNT) for numbers in (a, b)]
    reads, fed = [], []
    for place, numbers in enumerate(arrays):
        typed = numbers.astype(element.replace("f", "float"))
        if place == fixed:
            reads.append(net.constant(typed, element))
        else:
            reads.append(net.parameter(f"x{place}", str(COUNT), element=element))
            fed.append(typed)
    sums = net.op(type, *reads)
    net.result(net.op("Add", sums, net.constant(np.ones(1), element)))  # which a kernel may compute with it
    found = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)(fed)[0]
    np.testing.assert_array_equal(found, np.resize([1.0, np.nan, np.nan, extreme + 1], COUNT))
