"""Layers that no output depends on: OpenVINO does not create them, so their errors do not keep a model from running."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from harness.nets import Net, body_of
from harness.oracle import core, read

import ir_runtime as ir
from ir_runtime.codes import Code

X = np.float32([[-1, 2, -3], [4, -5, 6]])


def relu_and_more() -> Net:
    """Layers: 0 x, 1 used, 2 result; 3 c, 4 dead = x + c, 5 end = relu(dead), on which no output depends."""
    net = Net()
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.op("ReLU", x, out="FP32 2 3", name="used"))
    dead = net.op("Add", x, net.constant(X, "f32", name="c"), out="FP32 2 3", name="dead")
    net.op("ReLU", dead, out="FP32 2 3", name="end")
    return net


DEAD = '<layer id="4" name="dead" type="Add" version="opset1">'
IN, OUT = '<port id="0"></port><port id="1">', '<port id="2" precision="FP32">'
EDGE = '<edge from-layer="0" from-port="0" to-layer="4" to-port="0"/>'

# A text of the file, and what is there instead.
FAULTS = {
    "unknown operation": ('name="dead" type="Add"', 'name="dead" type="Foo"'),
    "unknown operation set": (DEAD, DEAD.replace("opset1", "opset99")),
    "last layer unknown": ('name="end" type="ReLU"', 'name="end" type="Foo"'),
    "bad attribute": (DEAD, DEAD + '<data auto_broadcast="foo"/>'),
    "constant outside the weights": ('offset="0"', 'offset="999"'),
    "constant of another size": ('size="24"', 'size="4"'),
    "constant of no element type": (
        'element_type="f32" shape="2,3" off',
        'element_type="zz" shape="2,3" off',
    ),
    "contradiction": ('shape="2,3" offset', 'shape="3,2" offset'),
    "contradicted declaration": (
        f"{IN}</port></input><output>{OUT}<dim>2",
        f"{IN}</port></input><output>{OUT}<dim>7",
    ),
    "no edge": (EDGE, ""),
    "edge from no layer": (EDGE, EDGE.replace('from-layer="0"', 'from-layer="77"')),
    "edge from no port": (EDGE, EDGE.replace('from-port="0"', 'from-port="9"')),
    "edge to no port": (EDGE, EDGE.replace('to-port="0"', 'to-port="9"')),
    "two edges": (EDGE, EDGE + EDGE),
    "cycle": (EDGE, EDGE.replace('from-layer="0" from-port="0"', 'from-layer="5" from-port="1"')),
    "port id twice": (f"{DEAD}<input>{IN}", f"{DEAD}<input>{IN.replace('1', '0')}"),
    "output too many": (
        "</output></layer>\n</layers>",
        '<port id="9" precision="FP32"/></output></layer>\n</layers>',
    ),
    # Read of every layer:
    "no id": ('<layer id="4"', "<layer"),
    "no name": ('name="dead"', ""),
    "no type": ('name="dead" type="Add"', 'name="dead"'),
    "no version": (DEAD, DEAD.replace(' version="opset1"', "")),
    "id of a port": (f"{DEAD}<input>{IN}", f"{DEAD}<input>{IN.replace('1', 'x')}"),
    "dim": (f"{IN}</port></input><output>{OUT}<dim>2", f"{IN}</port></input><output>{OUT}<dim>x"),
    "precision": (
        f"{IN}</port></input><output>{OUT}",
        f"{IN}</port></input><output>{OUT.replace('FP32', 'FOO')}",
    ),
    "number in an edge": (EDGE, EDGE.replace('to-port="0"', 'to-port="x"')),
    "operation of a Parameter": (
        "</layers>",
        '<layer id="9" name="p" type="Parameter" version="opset99"><data element_type="f32" shape="1"/>'
        '<output><port id="0" precision="FP32"/></output></layer>\n</layers>',
    ),
}

# What OpenVINO reads as well, though it may have been meant as an output.
DOUBTFUL = {
    "edge to no layer": ('to-layer="5"', 'to-layer="99"'),
    "misspelled Result": ('name="result" type="Result"', 'name="result" type="Reslut"'),
    "layer id twice": ('<layer id="5"', '<layer id="4"'),
}


def with_fault(old: str, new: str) -> bytes:
    text = relu_and_more().xml().decode()
    assert text.count(old) == 1
    return text.replace(old, new).encode()


def reads(action: Callable[[], object]) -> bool:
    try:
        action()
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("name", FAULTS)
def test_valid_where_openvino_reads(name: str) -> None:
    xml, weights = with_fault(*FAULTS[name]), relu_and_more().weights
    theirs = reads(lambda: core().compile_model(read(xml, weights), "CPU"))
    report = ir.validate(xml, weights)
    assert report.ok == theirs, str(report)
    assert reads(lambda: ir.read_model(xml, weights)) == theirs
    if theirs:
        assert any("; no output needs this layer, so it is left out" in w.message for w in report.warnings)
        for backend in ("reference", "numpy"):
            found = ir.compile_model(ir.read_model(xml, weights), backend=backend)(X)[0]
            np.testing.assert_array_equal(found, np.maximum(X, 0))


@pytest.mark.parametrize("name", DOUBTFUL)
def test_what_may_be_an_output_stays_an_error(name: str) -> None:
    net = relu_and_more()
    net.result(net.op("Abs", net.parameter("y", "2", out="FP32 2"), out="FP32 2"), "other")
    xml = net.xml().decode().replace(*DOUBTFUL[name]).encode()
    assert reads(lambda: read(xml, net.weights))
    assert not ir.validate(xml, net.weights).ok


def test_without_outputs_every_layer_counts() -> None:
    xml = with_fault(*FAULTS["unknown operation"]).replace(b'type="Result"', b'type="ReLU"')
    assert [error.code for error in ir.validate(xml, relu_and_more().weights).errors] == [
        Code.UNKNOWN_OPERATION
    ]


def test_errors_elsewhere_are_reported_with_those_of_unneeded_layers() -> None:
    xml = with_fault(*FAULTS["unknown operation"]).replace(
        b'name="used" type="ReLU"', b'name="used" type="Bar"'
    )
    report = ir.validate(xml, relu_and_more().weights)
    assert [error.layer for error in report.errors] == ["used", "dead"]


def test_layers_in_bodies_count_as_well() -> None:
    net, inner = Net(), Net()
    part = inner.parameter("part", "1,3", out="FP32 1 3")
    inner.result(inner.op("ReLU", part, out="FP32 1 3", name="used"))
    inner.op("Foo", part, out="FP32 1 3", name="dead")
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<output external_port_id="1" internal_layer_id="2" axis="0"/></port_map>'
    )
    x = net.parameter("x", "2,3", out="FP32 2 3")
    net.result(net.layer("TensorIterator", [x], ["FP32 2 3"], inside=maps + body_of(inner))[0])
    assert reads(lambda: read(net.xml()))
    assert ir.validate(net.xml()).ok
    np.testing.assert_array_equal(ir.compile_model(net.xml())(X)[0], np.maximum(X, 0))


def test_the_model_is_that_of_openvino(tmp_path: Path) -> None:
    xml, weights = with_fault(*FAULTS["unknown operation"]), relu_and_more().weights
    model = ir.read_model(xml, weights)
    theirs = {op.get_friendly_name() for op in read(xml, weights).get_ops()}
    assert {op.get_friendly_name() for op in model.get_ops()} == theirs == {"x", "used", "result"}
    assert len(model.graph) == 3
    ir.save_model(model, tmp_path / "saved.xml")
    assert ir.validate(tmp_path / "saved.xml").ok


def test_sound_layers_that_no_output_needs_stay() -> None:
    net = relu_and_more()
    assert len(ir.read_model(net.xml(), net.weights).graph) == 6


def test_commands(tmp_path: Path) -> None:
    path = tmp_path / "net.xml"
    path.write_bytes(with_fault(*FAULTS["unknown operation"]))
    path.with_suffix(".bin").write_bytes(relu_and_more().weights)
    np.save(tmp_path / "x.npy", X)
    ends = {("validate",): 0, ("validate", "--strict"): 1, ("run", "-i", f"x={tmp_path / 'x.npy'}"): 0}
    for (command, *options), code in ends.items():
        line = [sys.executable, "-m", "ir_runtime", command, str(path), *options]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr + done.stdout
