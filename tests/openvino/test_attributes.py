"""Attributes as OpenVINO's API returns them, with inferred values and OpenVINO's names."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import pytest
from harness.files import model_of
from harness.oracle import read
from harness.sample import Sample, named_samples

import ir_runtime as ir
from ir_runtime import opset13, opset16
from ir_runtime.ops import Op

LEFT_OUT = {
    ("SoftMax-1", "axis"): "OpenVINO reads the same file otherwise beside others",
    ("Interpolate-1", "axes"): "sorted",
    ("Broadcast-1", "mode"): "explicit is none",
    ("MVN-1", "reduction_axes"): "those that across_channels means",
    ("MVN-1", "across_channels"): "whether reduction_axes have the channels",
    ("LSTMCell-1", "weights_format"): "always ifco",
    ("Interpolate-1", "pads_begin"): "none are []",
    ("Interpolate-1", "pads_end"): "none are []",
}


def samples() -> dict[str, list[Sample]]:
    """Return samples of each operation: every fourth if attributes depend on shapes, else one."""
    found: dict[str, list[Sample]] = {}
    for sample in named_samples().values():
        found.setdefault(sample.op, []).append(sample)
    return {op: some[::4] if some[0].cls.shown is not Op.shown else some[:1] for op, some in found.items()}


SAMPLES = samples()


def plain(value: Any) -> Any:
    """Round floats to f32, in which OpenVINO holds most of them."""
    if isinstance(value, list):
        return list(map(plain, value))
    return float(np.float32(value)) if isinstance(value, float) else value


@pytest.mark.parametrize("op", SAMPLES)
def test_attributes_of_samples(op: str) -> None:
    for sample in SAMPLES[op]:
        xml, weights = model_of(sample, sample.constant)
        try:
            theirs = {node.get_friendly_name(): node for node in read(xml, weights).get_ops()}
        except RuntimeError:  # an operation that OpenVINO does not have
            continue
        for node in ir.read_model(xml, weights).get_ops():
            if node.get_type_name() in ("Constant", "Parameter", "Result"):
                continue
            expected = theirs[node.get_friendly_name()].get_attributes()
            for name, value in node.get_attributes().items():
                if name in expected and (sample.op, name) not in LEFT_OUT:
                    assert plain(value) == plain(expected[name]), (sample, name)


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("shape", [[1, 3, 8, 9], [-1, -1, 8, -1], [1, 3, (2, 9), 8], [-1, -1, -1, -1], None])
def test_pads_of_open_lengths(shape: list[Any] | None, auto_pad: str) -> None:
    def pads(ov: Any, ops: Any) -> list[dict[str, Any]]:
        x = ops.parameter(ov.PartialShape.dynamic() if shape is None else ov.PartialShape(shape), np.float32)
        forward, backward = (
            ops.constant(np.ones(lengths, np.float32)) for lengths in ((4, 3, 3, 3), (3, 4, 3, 3))
        )
        around = [1, 1], [2, 1], [1, 1], auto_pad
        return [
            node.get_attributes()
            for node in (
                ops.convolution(x, forward, [2, 2], *around),
                ops.max_pool(x, [2, 2], [1, 1], [1, 0], [1, 1], [3, 3], auto_pad=auto_pad, axis=-1),
                ops.convolution_backprop_data(x, backward, [2, 2], None, *around),
                ops.convolution_backprop_data(x, backward, [2, 2], np.array([15, 16]), *around),
            )
        ]

    assert pads(ir, opset13) == pads(openvino, openvino.opset13)


def test_what_is_shown_may_be_given() -> None:
    x = opset13.parameter([1, 4, 4, 4], np.float32)
    for node in (
        opset13.gelu(x, "TANH"),
        opset13.mvn(x, np.array([1]), True, 1e-5, "OUTSIDE_SQRT"),
        opset13.reorg_yolo(x, [2]),
        opset16.segment_max(opset16.parameter([2], np.float32), np.array([0, 1]), None, "lowest"),
    ):
        before = node.get_attributes()
        for name, value in before.items():
            node.set_attribute(name, value)
        assert node.get_attributes() == before


def test_attributes_of_a_layer_in_an_invalid_model() -> None:
    """Passes may inspect layers between two changes."""
    x = opset13.parameter([1, 3, 8, 8], np.float32)
    w = opset13.constant(np.ones((4, 3, 3, 3), np.float32))
    conv = opset13.convolution(x, w, [2, 2], [0, 0], [0, 0], [1, 1], "same_upper")
    model = ir.Model([conv], [x])
    x.set_partial_shape(ir.PartialShape([1, 5, 8, 8]))
    assert conv.get_attributes()["strides"] == [2, 2]
    assert model.inputs
