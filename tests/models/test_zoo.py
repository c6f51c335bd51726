"""Well-known networks with random weights, converted by OpenVINO, against OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from models.zoo import MODELS, example_inputs, ir_path

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_openvino(name: str) -> None:
    path = ir_path(name)
    inputs = example_inputs(name)
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    for backend in available():
        ours = ir_runtime.compile_model(model, backend=backend)(inputs)
        for i in range(len(theirs)):
            np.testing.assert_allclose(ours[i], theirs[i], rtol=1e-3, atol=1e-4)
