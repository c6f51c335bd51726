"""Well-known networks with random weights, converted by OpenVINO, against OpenVINO; fast backends against the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import openvino
import pytest
from harness.oracle import PLUGIN, assert_agree, assert_same_detections, core

import ir_runtime
from ir_runtime import debug
from ir_runtime.backends import available
from ir_runtime.backends.native.machine_code import library
from ir_runtime.ir.tensor import Array
from models.zoo import ZOO, example_inputs, ir_path

pytestmark = pytest.mark.oracle

# Boxes are in pixels: how far an edge is off goes with the size of the picture, however near zero it is.
PIXELS = {"faster_rcnn": 128, "ssdlite": 320, "yolo": 128, "yolo_640": 640}


# Rounding moves a number to the next level where it is near the middle between two, and the rest follows.
QUANTIZED = [name for name in ZOO if name.endswith("_int8")]
# Without kernels for integers, which round differently from what the model says.
AS_WRITTEN = {**PLUGIN, "LP_TRANSFORMS_MODE": "NO"}
HAS_VNNI = bool({"avx512vnni", "avxvnni"} & library().processor.features)


@pytest.mark.parametrize("name", QUANTIZED)
def test_levels_are_nearer_than_those_of_openvino_in_integers(name: str) -> None:
    path, inputs = ir_path(name), example_inputs(name)
    wanted, theirs = (core().compile_model(path, "CPU", how)(inputs)[0] for how in (AS_WRITTEN, PLUGIN))
    allowed = np.linalg.norm(theirs - wanted)
    if not HAS_VNNI:  # then OpenVINO's sums of products saturate, too
        allowed /= 2
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    for backend in available():
        found = ir_runtime.compile_model(model, backend=backend)(inputs)[0]
        assert np.linalg.norm(found - wanted) < allowed, backend


@pytest.mark.parametrize("name", [name for name in ZOO if name not in QUANTIZED])
def test_agrees_with_openvino(name: str) -> None:
    path = ir_path(name)
    inputs = example_inputs(name)
    theirs = core().compile_model(path, "CPU", PLUGIN)(inputs)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    ours = {b: ir_runtime.compile_model(model, backend=b)(inputs).to_tuple() for b in available()}
    for backend, found in ours.items():
        agree(name, found, theirs.to_tuple())
        agree_with_reference(name, found, ours["reference"], backend)


# Of each kind: bottlenecks, depthwise filters, an encoder, a decoder.
ROUNDED = ["resnet50", "mobilenet_v2", "bert_base", "gpt2"]


@pytest.mark.parametrize("name", ROUNDED)
def test_rounding_explains_products_of_bf16(name: str) -> None:
    report = debug.compare(ir_runtime.read_model(ir_path(name)), example_inputs(name), "native:bf16")
    assert report.ran == ("bf16",)
    assert report.explained, report


@pytest.mark.parametrize("name", ROUNDED)
def test_bf16_is_no_further_off_than_openvino(name: str) -> None:
    """Errors are measured against f64; OpenVINO also rounds the tensors between its nodes."""
    path, inputs = ir_path(name), example_inputs(name)
    plugin = core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    if plugin.get_property("INFERENCE_PRECISION_HINT") != openvino.Type.bf16:
        pytest.skip("OpenVINO has no kernels of bf16 for this processor")
    model = ir_runtime.read_model(path)
    ours = ir_runtime.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"}, backend="native")
    results = zip(
        debug.oracle(model, inputs).outputs, ours(inputs).values(), plugin(inputs).values(), strict=True
    )
    for exact, found, theirs in results:
        assert np.linalg.norm(found - exact) <= 1.2 * np.linalg.norm(theirs - exact)


def agree_with_reference(name: str, found: Sequence[Array], wanted: Sequence[Array], backend: str) -> None:
    if name in PIXELS:
        assert_same_detections(found, wanted, rtol=1e-4, atol=5e-5 * PIXELS[name])
        return
    for a, b in zip(found, wanted, strict=True):
        assert_agree(a, b, backend)


def agree(name: str, ours: Sequence[Array], theirs: Sequence[Array]) -> None:
    if name in PIXELS:
        assert_same_detections(ours, theirs, rtol=1e-3, atol=1e-4 * PIXELS[name])
        return
    assert [array.shape for array in ours] == [array.shape for array in theirs]
    for found, wanted in zip(ours, theirs, strict=True):
        assert wanted.size
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
