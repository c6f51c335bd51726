"""Checks that every input is fed, that the graph is acyclic, and that it has outputs."""

from __future__ import annotations

import pytest
from harness.nets import End, Net

import ir_runtime as ir
from ir_runtime.analysis.validate import validate
from ir_runtime.codes import Code
from ir_runtime.diagnostics import Diagnostics
from ir_runtime.io.reader.model import load


def found(net: Net) -> list[tuple[Code, int | None, str | None, str]]:
    report = ir.validate(net.xml(), net.weights)
    return [(Code(d.code), d.line, d.layer, d.message) for d in report]


def test_a_graph_that_is_fine() -> None:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "2")))
    assert found(net) == []


def test_inputs_without_an_edge() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("Add", x, x, name="sum"))
    net.edges = [net.edges[1], net.edges[2]]
    assert found(net) == [(Code.UNCONNECTED, 5, "sum", "input port 0 (a) has no edge")]


def test_inputs_of_unknown_operations_have_no_names() -> None:
    net = Net()
    net.layer("Mystery", inputs=["FP32 2"], outputs=["FP32 2"], name="odd")
    assert (Code.UNCONNECTED, 4, "odd", "input port 0 has no edge") in found(net)


def test_variadic_inputs_are_named() -> None:
    net = Net()
    x = net.parameter("x", "2")
    net.result(net.op("Concat", x, x, x, name="row", axis=0))
    del net.edges[1]
    ((code, _, layer, message),) = found(net)
    assert (code, layer) == (Code.UNCONNECTED, "row")
    assert message.startswith("input port 1 (")


def test_rings_are_described_once() -> None:
    net = Net()
    x = net.parameter("x", "2")
    a = net.op("Add", x, End(3, 1), name="a")
    b = net.op("ReLU", a, name="b")
    c = net.op("ReLU", b, name="c")
    net.result(net.op("ReLU", c, name="behind"))
    ((code, line, layer, message),) = found(net)
    assert code == Code.CYCLE
    assert message == "the graph has a cycle: 'a' → 'b' → 'c' → 'a'"
    assert (line, layer) == (5, "a")


def test_a_long_ring_is_cut_short() -> None:
    net = Net()
    x = net.parameter("x", "2")
    end = net.op("Add", x, End(50, 1), name="n1")
    for number in range(2, 51):
        end = net.op("ReLU", end, name=f"n{number}")
    ((code, _, _, message),) = found(net)
    assert code == Code.CYCLE
    assert message.count("→") == 6


def test_what_is_behind_a_ring_is_still_read() -> None:
    net = Net()
    loop = net.op("ReLU", End(0, 1), name="loop", out="FP32 3")
    net.result(net.op("ReLU", loop, name="behind", out="FP32 3"))
    model = ir.read_model(net.xml(), strict=False)
    assert [n.friendly_name for n in model.get_ordered_ops()] == ["loop", "behind", "result"]
    assert [str(output.partial_shape) for output in model.outputs] == ["[3]"]
    assert repr(model)


def test_outputs() -> None:
    net = Net()
    x = net.parameter("x", "4")
    net.layer("ReLU", [x], [], name="none")
    net.layer("ReLU", [x], ["FP32 4", "FP32 4"], name="two")
    net.layer("Split", [x, net.constant(0)], ["FP32 2", "FP32 2"], name="split", num_splits=2)
    assert [(code, layer) for code, _, layer, _ in found(net)] == [
        (Code.UNREAD, "none"),
        (Code.PORT_COUNT, "two"),
        (Code.UNREAD, "split"),
    ]


def test_a_result_may_declare_an_output() -> None:
    net = Net()
    net.layer("Result", [net.parameter("x", "2")], ["FP32 2"], name="end")
    assert found(net) == []


def assigning(element: str, shape: str = "2") -> Net:
    """A variable of two f32 elements, to which a tensor of another type is assigned."""
    net = Net()
    x = net.parameter("x", "2")
    held = net.op("ReadValue", x, variable_id="v", variable_type="f32", variable_shape="2", version="opset6")
    value = net.parameter("value", shape, element)
    assigned = net.op("Assign", value, variable_id="v", version="opset6")
    net.result(held)
    net.result(assigned)
    return net


@pytest.mark.parametrize(
    ("element", "shape", "message"),
    [
        ("f32", "2", ""),
        ("f16", "2", "assigns f16[2] to variable 'v', which is read as f32[2]"),
        ("i32", "2", "assigns i32[2] to variable 'v', which is read as f32[2]"),
        ("f32", "3", "assigns f32[3] to variable 'v', which is read as f32[2]"),
    ],
)
def test_variables_hold_what_is_assigned(element: str, shape: str, message: str) -> None:
    net = assigning(element, shape)
    report = Diagnostics()
    (document,) = load(net.xml(), net.weights, report)
    validate(document.graph, report)
    messages = [finding.message for finding in report if finding.code == Code.CONTRADICTION]
    assert messages == [message] * bool(message)
    assert [finding.message for finding in ir.validate(net.xml(), net.weights)] == [f.message for f in report]
