"""IR version 10: tensors named after layers, and the element types that its programs expect."""

from __future__ import annotations

import numpy as np
import pytest
from harness.nets import Net
from harness.oracle import plugin
from harness.oracle import read as theirs

import ir_runtime as ir

TYPES = ("f32", "f16", "f64", "bf16", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "boolean")
PRECISIONS = {"f32": "FP32", "f16": "FP16", "f64": "FP64", "boolean": "BOOL"}


def flattening(element: str) -> Net:
    """x[2,3], reshaped, without tensor names, as in files of version 10."""
    said = PRECISIONS.get(element, element.upper())
    net = Net(version="10")
    x = net.parameter("x", "2,3", element, out=f"{said} 2 3", names="")
    flat = net.op("Reshape", x, net.constant([6]), out=f"{said} 6", name="flat", special_zero=False)
    net.layer("Result", [flat], name="result", inputs=[f"{said} 6"])
    return net


@pytest.mark.parametrize("element", TYPES)
def test_types_and_names_are_those_of_openvino(element: str) -> None:
    net = flattening(element)
    ours, other = ir.read_model(net.xml(), net.weights), theirs(net.xml(), net.weights)
    assert list(ours.report) == []
    for mine, its in ((ours.input(0), other.input(0)), (ours.output(0), other.output(0))):
        assert mine.element_type.label == its.element_type.to_string()
        assert mine.names == its.names
        assert mine.any_name == its.any_name


@pytest.mark.parametrize("element", ["f16", "i64", "u8", "boolean"])
def test_results_are_those_of_openvino(element: str) -> None:
    net = flattening(element)
    model = ir.read_model(net.xml(), net.weights)
    x = np.arange(6).reshape(2, 3).astype(model.input().element_type.dtype)
    found = ir.compile_model(model)(x)["flat"]
    wanted = plugin(theirs(net.xml(), net.weights), [x])[0]
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_version_11_is_taken_at_its_word() -> None:
    net = flattening("f16")
    net.version = "11"
    model = ir.read_model(net.xml(), net.weights)
    assert model.input().element_type.label == model.output().element_type.label == "f16"
    assert model.input().names == set()


def test_an_input_that_is_an_output() -> None:
    net = Net(version="10")
    net.result(net.parameter("x", "2", "f16", out="FP16 2", names=""))
    model = ir.read_model(net.xml())
    x = np.float32([1.5, 65504])
    np.testing.assert_array_equal(ir.compile_model(model)(x)[0], x)


def test_outputs_of_one_layer_are_numbered() -> None:
    net = Net(version="10")
    x = net.parameter("x", "4", out="FP32 4", names="")
    for part in net.layer("Split", [x, net.constant(0)], ["FP32 2", "FP32 2"], name="halves", num_splits=2):
        net.result(part)
    model = ir.read_model(net.xml(), net.weights)
    other = theirs(net.xml(), net.weights)
    assert [o.names for o in model.outputs] == [o.names for o in other.outputs]
    assert [o.names for o in model.outputs] == [{"halves.0"}, {"halves.1"}]


def test_two_results_of_one_tensor() -> None:
    net = Net(version="10")
    y = net.op("ReLU", net.parameter("x", "2", "i64", out="I64 2", names=""), out="I64 2", name="y")
    net.result(y, "one")
    net.result(y, "two")
    compiled = ir.compile_model(ir.read_model(net.xml()))
    one, two = compiled(np.int64([-1, 2])).to_tuple()
    assert one.dtype == two.dtype == np.int32
    np.testing.assert_array_equal(one, [0, 2])
    np.testing.assert_array_equal(two, [0, 2])


def test_an_input_with_two_ports_is_a_finding() -> None:
    net = Net(version="10")
    first, second = net.layer("Parameter", (), ["FP32 2", "FP32 2"], name="x", element_type="f32", shape="2")
    net.result(first)
    net.result(second, "other")
    assert not ir.validate(net.xml()).ok


@pytest.mark.parametrize("declared", ["FP32 6", "FP16 6", "I64 6"])
@pytest.mark.parametrize("element", ["f16", "i64", "f32"])
def test_outputs_have_the_types_that_are_inferred(element: str, declared: str) -> None:
    """Model Optimizer declares the f16 output of DetectionOutput as FP32."""
    net = Net(version="10")
    x = net.parameter("x", "2,3", "f32", out="FP32 2 3", names="")
    cast = net.op(
        "Convert", x, out=f"{PRECISIONS.get(element, 'I64')} 2 3", destination_type=element, name="cast"
    )
    net.result(net.op("Reshape", cast, net.constant([6]), out=declared, name="flat", special_zero=False))
    model, other = ir.read_model(net.xml(), net.weights, strict=False), theirs(net.xml(), net.weights)
    assert model.output().element_type.label == other.output().element_type.to_string()
    assert model.output().names == other.output().names == {"flat"}
    x = np.float32([[1.5, 2.25, -3], [4, 5, 6]])
    for backend in ("reference", "numpy"):
        y = ir.compile_model(model, backend=backend)(x)[0]
        assert y.dtype == model.output().element_type.dtype
        np.testing.assert_array_equal(y, plugin(other, [x])[0])


@pytest.mark.parametrize("declared", ["FP32 6", "FP16 6"])
def test_inputs_have_the_types_of_their_attribute(declared: str) -> None:
    net = Net(version="10")
    x = net.parameter("x", "6", "f16", out=declared, names="")
    net.result(net.op("ReLU", x, out="FP16 6", name="y"))
    model, other = ir.read_model(net.xml(), net.weights, strict=False), theirs(net.xml(), net.weights)
    assert model.input().element_type.label == other.input().element_type.to_string() == "f32"
    assert model.output().element_type.label == other.output().element_type.to_string() == "f32"


def test_detections_as_model_optimizer_wrote_them() -> None:
    """The tail of Intel's FP16 detectors: f32 boxes, leftovers of Caffe, and a result declared as FP32."""
    net = Net(version="10")
    logits = net.parameter("logits", "1,8", "f16", out="FP16 1 8", names="")
    scores = net.parameter("scores", "1,4", "f16", out="FP16 1 4", names="")
    boxes = [[0.0, 0, 0.5, 0.5], [0.25, 0.25, 1, 1]]
    proposals = net.constant([[np.ravel(boxes), [0.5] * 8]], "f32")
    (found,) = net.layer(
        "DetectionOutput", [logits, scores, proposals], ["FP32 1 1 4 7"], name="detection_out",
        background_label_id=0, clip_after_nms=0, clip_before_nms=0, code_type="caffe.PriorBoxParameter.CENTER_SIZE",
        confidence_threshold=0.125, eta=1.0, input_height=1, input_width=1, keep_top_k="4", nms_threshold=0.5,
        normalized=1, num_classes=2, pad_mode="caffe.ResizeParameter.CONSTANT", share_location=1, top_k=4,
        variance_encoded_in_target=0, visualize="False",
    )  # fmt: skip
    net.result(found)
    model, other = ir.read_model(net.xml(), net.weights, strict=False), theirs(net.xml(), net.weights)
    assert model.output().element_type.label == other.output().element_type.to_string() == "f32"
    inputs = [np.zeros((1, 8), np.float32), np.float32([[0.25, 0.75, 0.5, 0.5]])]
    inputs[0][0, 0] = 0.5
    wanted = plugin(other, inputs)[0]
    assert (wanted[0, 0, :2, 1] == 1).all()
    for backend in ("reference", "numpy"):
        compiled = ir.compile_model(model, backend=backend)
        np.testing.assert_array_equal(compiled(inputs)[0], wanted)


def leftovers(version: str, attribute: str, count: int) -> Net:
    """Activations with an unknown attribute, as Model Optimizer wrote them."""
    net = Net(version=version)
    x = net.parameter("x", "2", out="FP32 2")
    for number in range(count):
        x = net.op("Elu", x, out="FP32 2", name=f"elu{number}", alpha="1", **{attribute: "0,0"})
    net.result(x)
    return net


def test_attributes_that_model_optimizer_left_are_noted_once() -> None:
    report = ir.validate(leftovers("10", "output_padding", 5).xml())
    assert [found.severity for found in report] == ["note"] * 5, "data for programs are complete"
    shown = str(report).splitlines()
    assert shown == [
        "<bytes>: note[IR203]: Elu-1 has no attribute 'output_padding'; it is ignored (5 times, the first in lines 5, 6, 7)",
        "0 errors, 0 warnings",
    ]


@pytest.mark.parametrize(("version", "attribute"), [("10", "alpha_"), ("11", "output_padding")])
def test_attributes_that_may_be_mistakes_are_warned_of(version: str, attribute: str) -> None:
    """Warn if the name resembles a missing one, or if OpenVINO wrote the file, as it leaves no such attributes."""
    net = leftovers(version, attribute, 1)
    net.layers[1] = net.layers[1].replace('alpha="1"', "")
    assert [str(found.code) for found in ir.validate(net.xml()).warnings][:1] == ["IR203"]
