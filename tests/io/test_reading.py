"""Reading whole models: layers, ports, edges, names and runtime information."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest
from harness.nets import End, Net, port
from harness.oracle import core

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ir.element import ElementType

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def summing(**how: object) -> Net:
    """x[2,3] summed over axis 1."""
    net = Net(**how)  # type: ignore[arg-type]
    x = net.parameter("x", "2,3", out="FP32 2 3")
    axes = net.constant([1], name="axes")
    net.result(net.op("ReduceSum", x, axes, out="FP32 2", name="sum", names="total"))
    return net


def read(net: Net, **how: object) -> ir.Model:
    return ir.read_model(net.xml(), net.weights, **how)  # type: ignore[arg-type]


def run(net: Net, *inputs: np.ndarray) -> list[np.ndarray]:
    return list(ir.compile_model(read(net))(list(inputs)).to_tuple())


def test_a_net_becomes_a_model() -> None:
    model = read(summing(name="little"))
    assert model.name == model.friendly_name == "little"
    assert [type.type for type in model.get_ordered_ops()] == ["Parameter", "Constant", "ReduceSum", "Result"]
    assert [o.names for o in (*model.inputs, *model.outputs)] == [{"x"}, {"total"}]
    assert list(model.report) == []
    np.testing.assert_array_equal(run(summing(), X)[0], [3, 12])


@pytest.mark.parametrize(
    ("legacy", "name"),
    [("Const", "Constant"), ("ReLU", "ReLU"), ("RELU", "ReLU"), ("relu", "ReLU"), ("SoftMax", "SoftMax"),
     ("Softmax", "SoftMax"), ("PReLU", "PReLU"), ("PRelu", "PReLU"), ("result", "Result")],
)  # fmt: skip
def test_spellings_of_types(legacy: str, name: str) -> None:
    from ir_runtime.ops import registry

    found = registry.resolve(legacy, 1)
    assert found is not None
    assert found.name == name


@pytest.mark.parametrize("spelling", ["ReLU", "Relu", "relu", "RELU"])
def test_types_are_read_in_any_case(spelling: str) -> None:
    net = Net()
    net.result(net.op(spelling, net.parameter("x", "3"), out="FP32 3"))
    np.testing.assert_array_equal(run(net, np.array([-1, 0, 2], np.float32))[0], [0, 0, 2])


@pytest.mark.parametrize("first", [0, 1, 40])
def test_ports_may_be_numbered_in_any_way(first: int) -> None:
    net = summing(first_port=first)
    layer = read(net)._graph.layers[2]
    assert [p.id for p in (*layer.inputs, *layer.outputs)] == [first, first + 1, first + 2]
    np.testing.assert_array_equal(run(net, X)[0], [3, 12])


def test_ports_may_be_numbered_out_of_order() -> None:
    """Inputs are assigned in file order, whatever the port ids."""
    net = Net()
    x, y = net.parameter("x", "2"), net.parameter("y", "2")
    number = len(net.layers)
    net.layers.append(
        f'<layer id="{number}" name="sub" type="Subtract" version="opset1">'
        f"<input>{port(7)}{port(3)}</input><output>{port(5, 'FP32 2')}</output></layer>"
    )
    net.edges += [(*y, number, 3), (*x, number, 7)]
    net.result(End(number, 5))
    np.testing.assert_array_equal(run(net, np.float32([5, 5]), np.float32([1, 2]))[0], [4, 3])


def test_input_and_output_ports_may_share_an_id() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.layers.append(
        f'<layer id="1" name="r" type="ReLU" version="opset1">'
        f"<input>{port(0)}</input><output>{port(0, 'FP32 2')}</output></layer>"
    )
    net.edges.append((*x, 1, 0))
    net.result(End(1, 0))
    np.testing.assert_array_equal(run(net, np.float32([-1, 2]))[0], [0, 2])


@pytest.mark.parametrize(
    ("type", "expected", "attributes"),
    [("Add", [2, 4], {}), ("Subtract", [0, 0], {}), ("Concat", [1, 2, 1, 2], {"axis": 0})],
)
def test_several_edges_between_the_same_layers(
    type: str, expected: list[int], attributes: dict[str, object]
) -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op(type, x, x, out=f"FP32 {len(expected)}", **attributes))
    np.testing.assert_array_equal(run(net, np.float32([1, 2]))[0], expected)


def test_layer_ids_need_no_order() -> None:
    xml = summing().xml().decode()
    renumbered = {"0": "70", "1": "3", "2": "12", "3": "1"}
    for old, new in renumbered.items():
        xml = xml.replace(f'<layer id="{old}"', f'<layer id="_{new}"')
        xml = xml.replace(f'from-layer="{old}"', f'from-layer="_{new}"')
        xml = xml.replace(f'to-layer="{old}"', f'to-layer="_{new}"')
    model = ir.read_model(xml.replace('"_', '"').encode(), summing().weights)
    assert sorted(model.graph.nodes) == [1, 3, 12, 70]
    np.testing.assert_array_equal(ir.compile_model(model)(X)[0], [3, 12])


@pytest.mark.parametrize(
    ("written", "names"),
    [("x", {"x"}), ("x,y", {"x", "y"}), (r"a\,b,c", {"a,b", "c"}), (r"a\,b\,c", {"a,b,c"}), ("", set())],
)
def test_tensor_names(written: str, names: set[str]) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2"), out="FP32 2", names=written))
    assert read(net).output(0).names == names


def test_a_result_names_its_output() -> None:
    net = Net()
    y = net.op("ReLU", net.parameter("x", "2"), out="FP32 2", names="inner")
    net.layer("Result", [y], extra={"output_names": r"first\,one,second"})
    output = read(net).output("second")
    assert output.names == {"first,one", "second", "inner"}


@pytest.mark.parametrize(
    ("precision", "label"),
    [("FP32", "f32"), ("f32", "f32"), ("FP16", "f16"), ("BF16", "bf16"), ("FP64", "f64"), ("I64", "i64"),
     ("I32", "i32"), ("U8", "u8"), ("BOOL", "boolean"), ("boolean", "boolean"), ("BIN", "u1")],
)  # fmt: skip
def test_precisions(precision: str, label: str) -> None:
    net = Net()
    net.result(net.parameter("x", "2", label, out=f"{precision} 2"))
    model = read(net)
    assert model.input().element_type is ElementType.parse(label)


def test_element_types_are_not_precisions_in_upper_case() -> None:
    with pytest.raises(ValueError, match="'F32' is not an element type"):
        ElementType.parse("F32")


@pytest.mark.parametrize(
    ("shape", "dims", "found"),
    [("?,3", "-1 3", "[?,3]"), ("-1,3", "-1 3", "[?,3]"), ("1..8,3", "-1 3", "[1..8,3]"),
     ("..450", "-1", "[..450]"), ("2..", "-1", "[2..]"), ("...", "", "[...]"), ("", "", "[]"),
     ("[?,3]", "-1 3", "[?,3]"), ("1, 2", "1 2", "[1,2]"), ("0", "0", "[0]")],
)  # fmt: skip
def test_shapes(shape: str, dims: str, found: str) -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", shape, out=f"FP32 {dims}"), out=f"FP32 {dims}"))
    model = read(net)
    assert str(model.input().partial_shape) == str(model.output().partial_shape) == found
    assert model.is_dynamic() is (model.input().partial_shape.is_dynamic)


def test_a_port_without_dims_may_have_any_rank() -> None:
    """OpenVINO writes no dims if it does not know the rank; we may infer more."""
    net = Net()
    x = net.parameter("x", "...", out="FP32")
    y = net.op("Reshape", x, net.constant([2, 3]), out="FP32", special_zero=False)
    net.result(y)
    assert str(read(net).output().partial_shape) == "[2,3]"


def test_rt_info_is_kept() -> None:
    net = Net(
        rt_info='<Runtime_version value="2026.4"/><conversion_parameters><framework value="onnx"/>'
        '<nested><deep value="1"/></nested></conversion_parameters>'
    )
    note = '<rt_info><attribute name="fused_names" version="0" value="a,b"/></rt_info>'
    x = net.parameter("x", "2")
    layer = net.op("ReLU", x, out="FP32 2", inside=note)
    net.layers[-1] = net.layers[-1].replace(
        "</port></output>",
        '<rt_info><attribute name="layout" version="0" layout="[N]"/></rt_info></port></output>',
    )
    net.result(layer)
    model = read(net)
    assert model.get_rt_info(["conversion_parameters", "framework"]) == "onnx"
    assert model.get_rt_info(["conversion_parameters", "nested", "deep"]) == "1"
    assert model.has_rt_info("Runtime_version")
    assert not model.has_rt_info(["conversion_parameters", "nope"])
    found = model._graph.layers[1]
    assert found.rt_info == {"fused_names": {"version": "0", "value": "a,b"}}
    assert found.outputs[0].rt_info == {"layout": {"version": "0", "layout": "[N]"}}
    with pytest.raises(TypeError):
        found.rt_info["fused_names"]["value"] = "c"
    model.rt_info["conversion_parameters"]["framework"] = "tf"
    assert model.get_rt_info(["conversion_parameters", "framework"]) == "onnx"


@pytest.mark.parametrize(
    ("type", "opset", "since"),
    [("ReduceSum", 1, 1), ("ReduceSum", 8, 1), ("ReduceSum", 40, 1), ("Gather", 1, 1), ("Gather", 6, 1),
     ("Gather", 7, 7), ("Gather", 8, 8), ("Gather", 15, 8), ("ReduceL2", 4, 4), ("Softmax", 7, 1),
     ("Softmax", 8, 8)],
)  # fmt: skip
def test_an_opset_means_its_newest_version(type: str, opset: int, since: int) -> None:
    from ir_runtime.ops import registry

    found = registry.resolve(type, opset)
    assert found is not None
    assert found.since == since


def test_an_operation_newer_than_the_opset_is_unknown() -> None:
    net = Net()
    net.result(net.op("ReduceL2", net.parameter("x", "2"), net.constant([0]), version="opset3"))
    with pytest.raises(ir.UnsupportedError, match="opset3 has no ReduceL2; it starts with opset4"):
        read(net)


def test_sources(tmp_path: Path) -> None:
    """A path, a string, bytes, and binary or text files give the same model."""
    net = summing()
    xml, weights = tmp_path / "m.xml", tmp_path / "m.bin"
    xml.write_bytes(net.xml())
    weights.write_bytes(net.weights)
    with xml.open("rb") as binary, xml.open() as text:
        models = [
            ir.read_model(xml),
            ir.read_model(str(xml)),
            ir.read_model(binary),
            ir.read_model(text),
            ir.read_model(net.xml(), net.weights),
            ir.read_model(bytearray(net.xml()), weights),
            ir.read_model(memoryview(net.xml()), str(weights)),
            ir.read_model(io.BytesIO(net.xml()), io.BytesIO(net.weights)),
            ir.read_model(io.StringIO(net.xml().decode()), bytearray(net.weights)),
            ir.read_model(net.xml(), ir.Tensor(np.frombuffer(net.weights, np.uint8))),
            ir.read_model(net.xml(), np.frombuffer(net.weights, np.int64)),
        ]
    for model in models:
        np.testing.assert_array_equal(ir.compile_model(model)(X)[0], [3, 12])


def test_weights_of_an_openvino_tensor() -> None:
    ov = pytest.importorskip("openvino")
    net = summing()
    model = ir.read_model(net.xml(), ov.Tensor(np.frombuffer(net.weights, np.uint8)))
    np.testing.assert_array_equal(model.constant("axes"), [1])


def test_other_sources_are_no_models() -> None:
    with pytest.raises(TypeError, match="a model must be a path, bytes or an open file, got int"):
        ir.read_model(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="weights must be a path, bytes, an array or a binary file, got int"):
        ir.read_model(summing().xml(), 5)  # type: ignore[arg-type]


@pytest.mark.parametrize("codec", ["utf-8-sig", "utf-16"])
def test_encodings(codec: str) -> None:
    xml = summing().xml().decode().replace('<?xml version="1.0"?>', "").replace('name="net"', 'name="népal"')
    assert ir.read_model(xml.encode(codec), summing().weights).name == "népal"


def test_version_10_of_2020(tmp_path: Path) -> None:
    """The first OpenVINO with version 10 declared the type and shape of constants only in ports."""
    net = summing(version="10")
    net.layers[1] = net.layers[1].replace('element_type="i64" shape="1" ', "")
    assert 'data offset="0" size="8"' in net.layers[1]
    np.testing.assert_array_equal(run(net, X)[0], [3, 12])
    assert read(net)._graph.layers[1].attributes == {"offset": "0", "size": "8"}


def test_comments_and_declarations_do_not_matter() -> None:
    xml = summing().xml().replace(b"<net", b"<!-- <layer> a -->\n<!-- b --><net", 1)
    xml = xml.replace(b"<layers>", b"<layers><!-- c --><?target x?>")
    assert ir.read_model(xml, summing().weights).name == "net"


def test_unknown_attributes_are_reported_and_ignored() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2"), out="FP32 2", slope="0.1", axis="1"))
    model = read(net)
    assert [(d.code, d.line, d.layer) for d in model.report] == [(Code.UNKNOWN_ATTRIBUTE, 5, "relu")] * 2
    assert ["'slope'" in d.message for d in model.report] == [True, False], "in the order of the file"
    assert model.report.ok


def test_what_a_file_says_in_one_place_counts() -> None:
    """Attributes of <layer> are not attributes of the operation."""
    net = Net()
    sums = net.op("ReduceSum", net.parameter("x", "2,3"), net.constant([1]), extra={"keep_dims": "true"})
    net.result(sums)
    assert str(read(net).output().partial_shape) == "[2]"


@pytest.mark.parametrize("version", ["extension", "ie_internal_opset", "util"])
def test_operations_outside_the_opsets_are_read_and_named(version: str) -> None:
    """Operations such as those of openvino_tokenizers are shown, and refused by name when they should run."""
    net = Net()
    split = net.op("RegexSplit", net.parameter("text", "3"), out="f32 3", version=version, name="split")
    net.result(split)
    model = ir.read_model(net.xml(), strict=False)
    assert [node.type for node in model.get_ordered_ops()] == ["Parameter", "RegexSplit", "Result"]
    assert model.output().partial_shape == [3]
    with pytest.raises(
        ir.UnsupportedError, match=rf"'RegexSplit' is an operation of '{version}'.*\n.*ops.op"
    ):
        ir.read_model(net.xml())
    with pytest.raises(ir.UnsupportedError, match=rf"RegexSplit \({version}\)\n.*ops.op"):
        ir.compile_model(model)


def test_an_assign_has_an_output_that_the_file_leaves_out(tmp_path: Path) -> None:
    """Model Optimizer omits it; an edge from it still has no source."""
    net = Net()
    state = net.op("ReadValue", net.parameter("x", "2"), version="opset3", variable_id="v", out="FP32 2")
    net.op("Assign", state, version="opset3", variable_id="v", out="FP32 2", name="next")
    net.result(state)
    net.layers[2] = re.sub("<output>.*</output>", "", net.layers[2])
    assert "output" not in net.layers[2]
    assert list(ir.validate(net.xml())) == []
    model = ir.read_model(net.xml())
    assert [len(node.outputs()) for node in model.get_ops() if node.type == "Assign"] == [1]
    np.testing.assert_array_equal(ir.compile_model(model)(np.ones(2, np.float32))[0], np.ones(2))
    ir.save_model(model, tmp_path / "saved.xml")
    assert list(ir.validate(tmp_path / "saved.xml")) == []
    net.edges[-1] = (2, 1, net.edges[-1][2], 0)
    assert [str(e.code) for e in ir.validate(net.xml()).errors] == ["IR102"]


def test_texts_of_an_extension_are_those_of_opset_15(tmp_path: Path) -> None:
    """Files of openvino_tokenizers use string operations from before OpenVINO had them."""
    net = Net()
    x = net.parameter("x", "2", "string", out="STRING 2")
    ends = net.layer("StringTensorUnpack", [x], ["I32 2", "I32 2", "U8 -1"], version="extension")
    net.result(net.op("StringTensorPack", *ends, version="extension", out="STRING 2"))
    assert list(ir.validate(net.xml())) == []
    model = ir.read_model(net.xml())
    assert ir.compile_model(model)(np.array(["a", "bc"]))[0].tolist() == ["a", "bc"]
    ir.save_model(model, tmp_path / "saved.xml")
    assert len(core().read_model(tmp_path / "saved.xml").get_ops()) == 4


def test_operations_of_tokenizers_are_named_with_the_way_out() -> None:
    net = Net()
    x = net.parameter("x", "2", "string", out="STRING 2")
    net.result(net.op("VocabEncoder", x, version="extension", out="I32 2"))
    with pytest.raises(ir.UnsupportedError) as caught:
        ir.read_model(net.xml())
    assert "openvino_tokenizers" in caught.value.hint
    assert "did you mean" not in caught.value.hint
