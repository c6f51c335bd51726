"""Well-known networks with random weights, converted by OpenVINO, against OpenVINO."""

from __future__ import annotations

import numpy as np
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from models.zoo import MODELS, example_inputs, ir_path

pytestmark = pytest.mark.oracle

# Boxes are in pixels: how far an edge is off goes with the size of the picture, however near zero it is.
PIXELS = {"faster_rcnn": 128, "ssdlite": 320, "yolo": 128}


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_openvino(name: str) -> None:
    path = ir_path(name)
    inputs = example_inputs(name)
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    for backend in available():
        ours = ir_runtime.compile_model(model, backend=backend)(inputs)
        assert [array.shape for array in ours.to_tuple()] == [array.shape for array in theirs.to_tuple()]
        for i, wanted in enumerate(theirs.to_tuple()):
            assert wanted.size
            np.testing.assert_allclose(ours[i], wanted, rtol=1e-3, atol=1e-4 * PIXELS.get(name, 1))
