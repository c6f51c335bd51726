"""Inspecting models by nodes, inputs and ports, beyond programs that run on both packages."""

from __future__ import annotations

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.codes import Code
from ir_runtime.ops import registry


@pytest.fixture
def model() -> ir.Model:
    """An f16 input x[2,3], reduced over axis 1."""
    net = Net()
    x = net.parameter("x", "2,3", "f16", out="FP16 2 3")
    net.layers[0] = net.layers[0].replace(
        "</port>", '<rt_info><attribute name="layout" layout="[N,C]"/></rt_info></port>'
    )
    total = net.op("ReduceSum", x, net.constant([1], name="axes"), out="FP16 2", name="sum", keep_dims=False)
    net.layers[2] = net.layers[2].replace(
        "</layer>", '<rt_info><attribute name="kept" value="yes"/></rt_info></layer>'
    )
    net.result(total)
    return ir.read_model(net.xml(), net.weights)


def node(model: ir.Model, name: str) -> ir.Node:
    return next(n for n in model.get_ops() if n.name == name)


def test_nodes(model: ir.Model) -> None:
    total, axes = node(model, "sum"), node(model, "axes")
    assert (total.name, total.get_name(), total.friendly_name, total.type) == ("sum",) * 3 + ("ReduceSum",)
    assert total.shape == total.get_output_shape(0) == [2]
    assert total.partial_shape == total.get_partial_shape() == [2]
    assert total.element_type is total.get_element_type() is ir.Type.f16
    assert total.get_input_shape(0) == total.get_input_partial_shape(0) == [2, 3]
    assert total.get_input_element_type(1) is ir.Type.i64
    assert total.rt_info == total.get_rt_info() == {"kept": "yes"}
    assert total.get_attributes() == {"keep_dims": False}
    assert axes.data.tolist() == [1]
    assert model.constant("axes").tolist() == [1]
    assert (total == axes, total == node(model, "sum"), total == "sum") == (False, True, False)
    assert repr(total) == "<ReduceSum: 'sum' ([2])>"
    assert repr(model.parameters[0]) == "<Parameter: 'x' ([2,3], float16)>"


def test_inputs_of_nodes(model: ir.Model) -> None:
    first, second = node(model, "sum").inputs()
    assert (first.get_index(), second.get_index()) == (0, 1)
    assert first.get_source_output() == model.input()
    assert first.get_node() == node(model, "sum")
    assert first.get_shape() == first.get_partial_shape() == [2, 3]
    assert second.get_element_type() is ir.Type.i64
    assert first.rt_info == first.get_rt_info() == {}
    assert first == node(model, "sum").input(0) != second
    assert model.input().target_inputs == {first}
    assert model.output().target_inputs == set()
    assert repr(second) == "<Input: shape[1] type: i64>"


def test_ports(model: ir.Model) -> None:
    port = model.input()
    assert port.rt_info == port.get_rt_info() == {"layout": {"layout": "[N,C]"}}
    assert port.get_node() == port.node == model.parameters[0]
    assert model.output().node == model.results[0] == model.result
    assert model.results[0].outputs() == [model.output()]
    assert model.results[0].input_value(0).node == node(model, "sum")
    assert model.output().label == "sum"
    with pytest.raises(ir.InputError, match="has no name") as caught:
        model.output().any_name  # noqa: B018
    assert caught.value.code == Code.NO_SUCH_NAME
    assert "'sum'" in caught.value.hint


def test_what_is_not_there(model: ir.Model) -> None:
    total = node(model, "sum")
    for look in (
        lambda: total.output(1),
        lambda: total.input(2),
        lambda: total.input(-1),
        lambda: total.input_value(2),
    ):
        with pytest.raises(ir.InputError, match="layer 'sum' has no"):
            look()
    with pytest.raises(ir.InputError, match="only a Constant holds data"):
        total.get_data()


def test_models_that_are_not_valid_can_be_looked_at() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("Add", x, x, name="sum"), "first")
    odd = net.op("Mystery", x, name="odd", slope="0.1")
    net.result(odd)
    del net.edges[1]
    model = ir.read_model(net.xml(), strict=False)
    assert repr(node(model, "sum").input(1)) == "<Input: input port 1 of layer 'sum' has no edge>"
    with pytest.raises(ir.InputError, match="input port 1 of layer 'sum' has no edge"):
        node(model, "sum").input_values()
    assert node(model, "odd").get_attributes() == {"slope": "0.1"}
    assert repr(node(model, "odd")) == "<Mystery: 'odd' ([...])>"
    with pytest.raises(ir.ValidationError):
        model.validate_nodes_and_infer_types()


def test_validating_a_model_gives_its_report(model: ir.Model) -> None:
    assert list(ir.validate(model)) == list(model.report) == []


def test_extensions() -> None:
    core = ir.Core()
    core.add_extension(next(iter(registry)))
    with pytest.raises(ir.InputError, match="are compiled against OpenVINO"):
        core.add_extension("libcustom.so")


def test_tensors() -> None:
    tensor = ir.Tensor(np.float32([[1, 2]]))
    assert np.asarray(tensor).tolist() == [[1, 2]]
    assert np.array(tensor, np.float64).dtype == np.float64
    assert np.add(tensor, 1).tolist() == [[2, 3]]
    with pytest.raises(ir.InputError, match="has no element type"):
        ir.Tensor(np.zeros(2, complex))
    with pytest.raises(ir.InputError, match="a tensor of f32 cannot take an array of float64"):
        tensor.copy_from(np.zeros((1, 2)))
    tensor.copy_from(np.float32([3]))
    assert (tensor.shape, tensor.data.tolist()) == ([1], [3])


def test_tensors_of_a_type_that_only_a_run_decides() -> None:
    net = Net()
    net.result(net.parameter("x", "?", "dynamic", out="dynamic -1"))
    request = ir.compile_model(ir.read_model(net.xml())).create_infer_request()
    tensor = request.get_output_tensor()
    assert tensor.element_type is ir.Type.dynamic
    request.infer([np.int8([1, 2])])
    assert (tensor.element_type, tensor.data.tolist()) == (ir.Type.i8, [1, 2])
