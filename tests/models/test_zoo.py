"""Well-known networks with random weights, converted by OpenVINO, against OpenVINO."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from harness.detections import assert_same_detections
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array
from models.zoo import MODELS, example_inputs, ir_path

pytestmark = pytest.mark.oracle

# Boxes are in pixels: how far an edge is off goes with the size of the picture, however near zero it is.
PIXELS = {"faster_rcnn": 128, "ssdlite": 320, "yolo": 128, "yolo_640": 640}


@pytest.mark.parametrize("name", MODELS)
def test_agrees_with_openvino(name: str) -> None:
    path = ir_path(name)
    inputs = example_inputs(name)
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    for backend in available():
        ours = ir_runtime.compile_model(model, backend=backend)(inputs)
        agree(name, ours.to_tuple(), theirs.to_tuple())


def agree(name: str, ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    if name in PIXELS:
        assert_same_detections(ours, theirs, rtol=1e-3, atol=1e-4 * PIXELS[name])
        return
    assert [array.shape for array in ours] == [array.shape for array in theirs]
    for found, wanted in zip(ours, theirs, strict=True):
        assert wanted.size
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
