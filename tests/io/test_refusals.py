"""Files that OpenVINO refuses are refused as invalid."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from harness.nets import Net, body_of, looping
from harness.oracle import core, read

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.io.reader.layers import NEWEST, resolve
from ir_runtime.ops import registry

BAD: dict[str, tuple[Callable[[], Net], Code]] = {}


def bad(code: Code) -> Callable[[Callable[[], Net]], Callable[[], Net]]:
    """Register a refused file, and the code of its first finding."""

    def register(make: Callable[[], Net]) -> Callable[[], Net]:
        BAD[make.__name__] = make, code
        return make

    return register


def summing(layer: int = 0, old: str = "", new: str = "") -> Net:
    """x[2,3] summed over axis 1, with one layer changed: 0 x, 1 axes, 2 sum, 3 result."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.op("ReduceSum", x, net.constant([1], name="axes"), out="FP32 2", name="sum"))
    assert old in net.layers[layer]
    net.layers[layer] = net.layers[layer].replace(old, new, 1)
    return net


@bad(Code.UNKNOWN_OPERATION)
def newer_opset() -> Net:
    return summing(2, "opset1", f"opset{NEWEST + 1}")


@bad(Code.UNKNOWN_OPERATION)
def opset_99() -> Net:
    return summing(2, "opset1", "opset99")


@bad(Code.UNKNOWN_OPERATION)
def opset_01() -> Net:
    return summing(2, "opset1", "opset01")


@bad(Code.UNKNOWN_OPERATION)
def opset_in_capitals() -> Net:
    return summing(2, "opset1", "OPSET1")


@bad(Code.UNKNOWN_OPERATION)
def opset_and_a_blank() -> Net:
    return summing(2, "opset1", "opset1 ")


@bad(Code.UNKNOWN_OPERATION)
def opset_of_another_place() -> Net:
    return summing(2, "opset1", "../../etc")


@bad(Code.UNKNOWN_OPERATION)
def opset_of_extensions() -> Net:
    return summing(2, "opset1", "extension")


@bad(Code.UNKNOWN_OPERATION)
def opset_of_a_parameter() -> Net:
    return summing(0, "opset1", "opset99")


@bad(Code.UNKNOWN_OPERATION)
def operation_that_is_no_longer_there() -> Net:
    net = Net()
    x = net.parameter("x", "2", "boolean", out="BOOL 2")
    net.result(net.op("Xor", x, x, version="opset2", out="BOOL 2"))
    return net


@bad(Code.UNKNOWN_OPERATION)
def constant_by_its_full_name() -> Net:
    """OpenVINO creates a layer without data from it."""
    return summing(1, '"Const"', '"Constant"')


@bad(Code.UNKNOWN_OPERATION)
def constant_in_capitals() -> Net:
    return summing(1, '"Const"', '"CONST"')


@bad(Code.UNKNOWN_OPERATION)
def result_of_a_body_in_small_letters() -> Net:
    return in_body('"Result"', '"result"')


@bad(Code.BAD_ELEMENT)
def layer_without_a_name() -> Net:
    return summing(2, ' name="sum"', "")


@bad(Code.BAD_ELEMENT)
def id_and_a_blank() -> Net:
    return summing(2, 'id="2"', 'id="2 "')


@bad(Code.BAD_ELEMENT)
def precision_and_a_blank() -> Net:
    return summing(2, 'precision="FP32"', 'precision="FP32 "')


@bad(Code.BAD_ELEMENT)
def precision_as_attributes_have_it() -> Net:
    return summing(2, 'precision="FP32"', 'precision="F32"')


@bad(Code.BAD_ATTRIBUTE)
def constant_without_a_type() -> Net:
    return summing(1, ' element_type="i64"', "")


@bad(Code.BAD_ATTRIBUTE)
def constant_without_a_shape() -> Net:
    return summing(1, ' shape="1"', "")


@bad(Code.BAD_ATTRIBUTE)
def constant_without_a_place() -> Net:
    return summing(1, ' offset="0"', "")


@bad(Code.BAD_ATTRIBUTE)
def constant_without_a_size() -> Net:
    return summing(1, ' size="8"', "")


@bad(Code.BAD_ATTRIBUTE)
def type_and_a_blank() -> Net:
    return summing(0, '"f32"', '"f32 "')


@bad(Code.BAD_ATTRIBUTE)
def type_as_ports_have_it() -> Net:
    return summing(0, '"f32"', '"FP32"')


@bad(Code.BAD_ATTRIBUTE)
def choice_and_a_blank() -> Net:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("Add", x, x, out="FP32 2", auto_broadcast="numpy "))
    return net


@bad(Code.VARIABLE)
def variable_that_nobody_reads() -> Net:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.op("Assign", x, version="opset3", variable_id="v", out="FP32 2")
    net.result(net.op("ReLU", x, out="FP32 2"))
    return net


@bad(Code.CONTRADICTION)
def variable_of_another_element_type() -> Net:
    net = Net()
    held = {"version": "opset6", "variable_id": "v"}
    net.result(net.op("ReadValue", **held, variable_shape="2", variable_type="f32", out="FP32 2"))
    net.op("Assign", net.parameter("x", "2", "i64", out="I64 2"), **held, out="I64 2")
    return net


@bad(Code.VARIABLE)
def variable_of_another_name() -> Net:
    """Names are compared with surrounding blanks."""
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.op("ReadValue", x, version="opset3", variable_id="v ", out="FP32 2"))
    net.op("Assign", x, version="opset3", variable_id="v", out="FP32 2")
    return net


@bad(Code.VARIABLE)
def variable_that_is_read_for_nothing() -> Net:
    net = Net()
    x = net.parameter("x", "2", out="FP32 2")
    net.op("Assign", x, version="opset3", variable_id="v", out="FP32 2", name="next")
    net.op("ReadValue", x, version="opset3", variable_id="v", out="FP32 2", name="state")
    net.result(net.op("ReLU", x, out="FP32 2"))
    return net


@bad(Code.DECLARED_TYPE)
def parameter_of_a_body_of_another_type() -> Net:
    return in_body('element_type="f32"', 'element_type="i64"')


@bad(Code.CONTRADICTION)
def parameter_of_a_body_of_another_shape() -> Net:
    return in_body('shape="2"', 'shape="5"')


@bad(Code.PORT_COUNT)
def loop_that_is_not_told_to_go_on() -> Net:
    net = looping()
    place = next(i for i, layer in enumerate(net.layers) if 'type="Loop"' in layer)
    purpose = '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/>'
    assert purpose in net.layers[place]
    net.layers[place] = net.layers[place].replace(purpose, "")
    return net


def in_body(old: str = "", new: str = "") -> Net:
    """x[2] + 1 in a TensorIterator with one iteration, with its body changed."""
    net, inner = Net(), Net()
    part = inner.parameter("part", "2", out="FP32 2")
    inner.result(inner.op("Add", part, inner.constant([1.0, 1.0], "f32"), out="FP32 2"))
    net.weights = inner.weights
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0"/>'
        '<output external_port_id="1" internal_layer_id="3"/></port_map>'
    )
    body = body_of(inner)
    assert old in body
    x = net.parameter("x", "2", out="FP32 2")
    net.result(net.layer("TensorIterator", [x], ["FP32 2"], inside=maps + body.replace(old, new, 1))[0])
    return net


def accepts(net: Net) -> bool:
    """Return whether OpenVINO reads and compiles a model."""
    try:
        core().compile_model(read(net.xml(), net.weights), "CPU")
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("name", BAD)
def test_is_refused_as_openvino_does(name: str) -> None:
    make, code = BAD[name]
    net = make()
    assert not accepts(net)
    assert ir.validate(net.xml(), net.weights).errors[0].code == code
    with pytest.raises(ir.IRError) as caught:
        ir.read_model(net.xml(), net.weights)
    assert caught.value.code == code


@pytest.mark.parametrize("make", [summing, in_body, looping])
def test_what_they_are_made_of_is_valid(make: Callable[[], Net]) -> None:
    net = make()
    assert accepts(net)
    assert list(ir.validate(net.xml(), net.weights)) == []


@pytest.mark.parametrize("label", ["f32", "F32", "Bf16", "BOOLEAN", "undefined"])
def test_types_in_attributes_are_read_in_any_case(label: str) -> None:
    net = Net()
    net.result(net.parameter("x", "2", label, out="UNSPECIFIED 2"))
    theirs = read(net.xml())
    found = ir.read_model(net.xml()).input().element_type
    assert found.label == theirs.input().get_element_type().to_string()


@pytest.mark.parametrize("version", ["experimental", "extension"])
def test_operations_that_were_extensions_once(version: str) -> None:
    net = Net()
    boxes, scores = net.parameter("boxes", "2,4", out="FP32 2 4"), net.parameter("scores", "2", out="FP32 2")
    name = "ExperimentalDetectronTopKROIs"
    net.result(net.op(name, boxes, scores, version=version, max_rois=1, out="FP32 1 4"))
    assert accepts(net)
    assert ir.validate(net.xml()).ok


# Where OpenVINO's opsets have gaps that the specification does not.
_GAPS = {("RNNCell", 2), ("ShuffleChannels", 2)}

# Without inputs, these make OpenVINO fall over.
_CANNOT_BE_ASKED = ("Broadcast", "MaxPool")


def test_opsets_have_the_operations_that_openvinos_have() -> None:
    """The newest opset is excluded, of which OpenVINO registers little more than the new operations."""
    # Other tests define operations of their own.
    ours = {cls.name for cls in registry if registry.is_own(cls)}
    for name in sorted(ours - set(_CANNOT_BE_ASKED)):
        first = registry.versions(name)[0].since
        for opset in {1, 2, max(first - 1, 1), NEWEST - 1}:
            found = resolve("Const" if name == "Constant" else name, f"opset{opset}")
            if (name, opset) not in _GAPS:
                assert (found is not None) == _has(name, opset), f"{name} in opset{opset}"
    assert max(cls.since for cls in registry) == NEWEST
    assert not _has("Parameter", NEWEST + 1)


def _has(name: str, opset: int) -> bool:
    """Return whether OpenVINO finds an operation in an opset, even if it refuses the layer without inputs."""
    net = Net()
    net.result(
        net.op(
            "Const" if name == "Constant" else name, version=f"opset{opset}", out="FP32 2", variable_id="v"
        )
    )
    try:
        read(net.xml())
    except RuntimeError as reason:
        return "doesn't contain the operation" not in str(reason) and "unsupported opset" not in str(reason)
    return True
