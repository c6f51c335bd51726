"""Activations of extreme f32 values: no backend overflows where the reference does not."""

from __future__ import annotations

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.backends import available

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
