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
