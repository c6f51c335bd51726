"""Models that show the operations that cannot stand alone: ends of a model, variables, branches and loops."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from lxml import etree

from harness.loops import body_of
from harness.nets import Net
from ir_runtime.ir.tensor import Array

__all__ = ["EXAMPLE_MODELS", "ExampleModel"]


class ExampleModel(NamedTuple):
    """A model and the inputs that it is run on."""

    xml: str
    weights: bytes
    inputs: dict[str, Array]


def _example(net: Net, **inputs: Array) -> ExampleModel:
    parser = etree.XMLParser(remove_blank_text=True)
    root = etree.fromstring(net.xml(), parser)
    etree.indent(root, "  ")
    return ExampleModel(etree.tostring(root, encoding="unicode"), net.weights, inputs)


def _ends() -> ExampleModel:
    net = Net("ends")
    x = net.parameter("x", "2", out="FP32 2")
    one = net.constant([1, 2], "f32", name="numbers")
    net.result(net.op("Add", x, one, name="sum", out="FP32 2"))
    return _example(net, x=np.array([3, 4], np.float32))


def _variables(version: int) -> ExampleModel:
    """A sum over all runs."""
    net = Net("variables")
    x = net.parameter("x", "2", out="FP32 2")
    start = net.op("Subtract", x, x, name="zeros", out="FP32 2")
    known = {"variable_type": "f32", "variable_shape": "2"} if version == 6 else {}
    read = net.op("ReadValue", start, name="before", out="FP32 2", version=f"opset{version}", variable_id="total", **known)  # fmt: skip
    total = net.op("Add", read, x, name="after", out="FP32 2")
    net.op("Assign", total, name="keep", out="FP32 2", version=f"opset{version}", variable_id="total")
    net.result(total)
    return _example(net, x=np.array([1, 2], np.float32))


def _branch(operation: str) -> Net:
    """A body that applies one operation to its input."""
    net = Net()
    net.result(net.op(operation, net.parameter("y", "3", out="FP32 3"), name=operation.lower(), out="FP32 3"))
    return net


def _condition() -> ExampleModel:
    net = Net("condition")
    condition = net.parameter("condition", "", "boolean", out="BOOL")
    x = net.parameter("x", "3", out="FP32 3")
    ports = '<input external_port_id="1" internal_layer_id="0"/><output external_port_id="2" internal_layer_id="2"/>'
    inside = "".join(
        f"<{side}_port_map>{ports}</{side}_port_map>{body_of(_branch(operation)).replace('body>', f'{side}_body>')}"
        for side, operation in (("then", "Exp"), ("else", "Negative"))
    )
    net.result(net.layer("If", [condition, x], ["FP32 3"], version="opset8", inside=inside)[0])
    return _example(net, condition=np.array(False), x=np.array([1, 2, 3], np.float32))


def _loop() -> ExampleModel:
    """``trips`` times ``x = x + x``, while ``go_on`` is true."""
    net, inner = Net("loop"), Net()
    round = inner.parameter("y", "2", out="FP32 2")
    inner.result(inner.op("Add", round, round, name="twice", out="FP32 2"))
    inner.result(inner.parameter("again", "", "boolean", out="BOOL"), name="go_on_again")
    trips = net.parameter("trips", "", "i64", out="I64")
    start = net.parameter("go_on", "", "boolean", out="BOOL")
    x = net.parameter("x", "2", out="FP32 2")
    inside = (
        '<port_map><input external_port_id="2" internal_layer_id="0"/><input external_port_id="1" internal_layer_id="3"/>'
        '<output external_port_id="3" internal_layer_id="2"/>'
        '<output external_port_id="-1" internal_layer_id="4" purpose="execution_condition"/></port_map>'
        '<back_edges><edge from-layer="2" to-layer="0"/></back_edges>'
    )
    net.result(net.layer("Loop", [trips, start, x], ["FP32 2"], version="opset5", inside=inside + body_of(inner))[0])  # fmt: skip
    return _example(net, trips=np.array(3), go_on=np.array(True), x=np.array([1, 2], np.float32))


def _iterator() -> ExampleModel:
    """Sums of the rows so far: each iteration takes a row, and hands its sum to the next."""
    net, inner = Net("iterator"), Net()
    row = inner.parameter("row", "1,2", out="FP32 1 2")
    before = inner.parameter("before", "1,2", out="FP32 1 2")
    inner.result(inner.op("Add", row, before, name="sum", out="FP32 1 2"))
    rows = net.parameter("rows", "3,2", out="FP32 3 2")
    start = net.parameter("start", "1,2", out="FP32 1 2")
    inside = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<input external_port_id="1" internal_layer_id="1"/><output external_port_id="2" internal_layer_id="3" axis="0"/></port_map>'
        '<back_edges><edge from-layer="3" to-layer="1"/></back_edges>'
    )
    net.result(net.layer("TensorIterator", [rows, start], ["FP32 3 2"], inside=inside + body_of(inner))[0])
    fed = np.arange(1, 7, dtype=np.float32).reshape(3, 2)
    return _example(net, rows=fed, start=np.zeros((1, 2), np.float32))


EXAMPLE_MODELS = {
    **dict.fromkeys(("Parameter-1", "Constant-1", "Result-1"), _ends()),
    **{f"{name}-{version}": _variables(version) for name in ("ReadValue", "Assign") for version in (3, 6)},
    "If-8": _condition(),
    "Loop-5": _loop(),
    "TensorIterator-1": _iterator(),
}
"""The model of each operation, by its versioned name."""
