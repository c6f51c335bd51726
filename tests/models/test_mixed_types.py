"""Files compressed to f16 by Model Optimizer, which left slopes and boxes in f32."""

from __future__ import annotations

import numpy as np
import pytest
from harness.nets import End, Net
from harness.oracle import assert_agree, plugin, read
from harness.sample import numbers

import ir_runtime as ir
from ir_runtime.ir.tensor import Array

CLASSES, SIDE = 3, 4
IMAGE = numbers(1, 3, 2 * SIDE, 2 * SIDE, dtype="f16", low=-1, high=1)


def convolution(net: Net, x: End, channels: int, out: str, name: str) -> End:
    weights = numbers(*channels_of(net, out, channels), dtype="f16", low=-0.5, high=0.5, seed=len(net.layers))
    strides = {"strides": "2,2" if channels == 3 else "1,1", "dilations": "1,1"}
    return net.op("Convolution", x, net.constant(weights, "f16"), out=out, name=name, pads_begin="1,1",
                  pads_end="1,1", auto_pad="explicit", **strides)  # fmt: skip


def channels_of(net: Net, out: str, channels: int) -> tuple[int, int, int, int]:
    return int(out.split()[2]), channels, 3, 3


def detector() -> Net:
    """SSD: features with f32 slopes, boxes and scores in f16, priors in f32."""
    net = Net(version="10")
    x = net.parameter("image", "1,3,8,8", "f16", out="FP16 1 3 8 8")
    features = convolution(net, x, 3, "FP16 1 8 4 4", "conv")
    slopes = net.constant(numbers(8, low=0.1, high=0.3), "f32", name="slopes")
    features = net.op("PReLU", features, slopes, out="FP16 1 8 4 4", name="prelu")
    sizes = {"min_size": "2", "max_size": "4", "aspect_ratio": "", "flip": False, "clip": False, "step": 2,
             "offset": 0.5, "variance": "0.1,0.1,0.2,0.2", "scale_all_sizes": True}  # fmt: skip
    shapes = [net.constant(np.array(side), "i64") for side in ((SIDE, SIDE), (2 * SIDE, 2 * SIDE))]
    boxes = net.op("PriorBox", *shapes, out=f"FP32 2 {SIDE * SIDE * 8}", name="priors", **sizes)
    priors = net.op("Unsqueeze", boxes, net.constant([0]), out=f"FP32 1 2 {SIDE * SIDE * 8}", name="boxes")
    flat = []
    for name, channels in (("deltas", 8), ("scores", 2 * CLASSES)):
        maps = convolution(net, features, 8, f"FP16 1 {channels} {SIDE} {SIDE}", name)
        last = net.op("Transpose", maps, net.constant([0, 2, 3, 1]), out=f"FP16 1 {SIDE} {SIDE} {channels}")
        shape = net.constant([1, -1])
        out = f"FP16 1 {SIDE * SIDE * channels}"
        flat.append(net.op("Reshape", last, shape, out=out, name=f"flat_{name}", special_zero=True))
    said = {"num_classes": CLASSES, "keep_top_k": "10", "top_k": 20, "nms_threshold": 0.5, "normalized": True,
            "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "confidence_threshold": 0.1}  # fmt: skip
    found = net.op("DetectionOutput", *flat, priors, out="FP16 1 1 10 7", name="detections", **said)
    net.result(found)
    return net


def test_a_detector_is_valid() -> None:
    """The findings name the layers, and are errors only with --strict."""
    net = detector()
    report = ir.validate(net.xml(), net.weights)
    mixed = [found for found in report.warnings if found.code == "IR304"]
    assert [found.layer for found in mixed] == ["prelu", "detections"]
    assert report.ok
    report.escalate()
    assert not report.ok


@pytest.mark.parametrize("backend", ["reference", "numpy", "native"])
def test_a_detector_finds_what_openvino_finds(backend: str) -> None:
    net = detector()
    (wanted,) = plugin(read(net.xml(), net.weights), [IMAGE.astype(np.float32)])
    found: Array = ir.compile_model(ir.read_model(net.xml(), net.weights), backend=backend)([IMAGE])[0]
    assert (wanted[0, 0, :, 0] >= 0).sum() > 3
    assert_agree(found.astype(wanted.dtype), wanted, backend, atol=0.01)


@pytest.mark.parametrize("backend", ["reference", "numpy", "native"])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_data_whose_type_only_a_run_knows(backend: str, dtype: type) -> None:
    """The result has the type of the data, whatever that of the slopes."""
    net = Net()
    x = net.parameter("x", "1,4", "dynamic", out="dynamic 1 4")
    slopes = net.constant([0.5, 0.25, 0.5, 0.25], "f32")
    net.result(net.op("PReLU", x, slopes, out="dynamic 1 4", name="prelu"))
    model = ir.read_model(net.xml(), net.weights)
    assert model.outputs[0].element_type.label == "dynamic"
    found = ir.compile_model(model, backend=backend)([np.array([[-1, 2, -3, 4]], dtype)])[0]
    assert found.dtype == dtype
    assert found.tolist() == [[-0.5, 2, -1.5, 4]]
