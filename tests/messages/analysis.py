"""Messages for models as a whole, beyond tests/io/test_messages.py."""

from __future__ import annotations

import numpy as np
from harness.nets import Net
from harness.refusals import Call

import ir_runtime as ir
from messages.files import body

FOLDER = "messages"


def dead_branch() -> Net:
    """An If with a constant condition."""
    net = Net()
    x = net.parameter("x", "1,3", out="FP32 1 3")
    maps = "".join(
        f"<{name}_port_map>\n"
        '<input external_port_id="1" internal_layer_id="0"/>\n'
        '<output external_port_id="2" internal_layer_id="1"/>\n'
        f"</{name}_port_map>\n<{name}_body>{body()}</{name}_body>\n"
        for name in ("then", "else")
    )
    condition = net.constant(np.array(True), "boolean", name="condition")
    chosen = net.layer("If", [condition, x], ["FP32 1 3"], version="opset8", inside=maps, name="chosen")
    net.result(chosen[0])
    return net


def variable(assigned: str, version: str = "opset6", shape: str = "2") -> Net:
    """A model with a variable, to which a tensor of a given shape is assigned."""
    net = Net()
    x, y = net.parameter("x", "2", out="FP32 2"), net.parameter("y", assigned, out=f"FP32 {assigned}")
    said = {"variable_id": "seen", "variable_type": "f32", "variable_shape": shape}
    kept = said if version == "opset6" else {"variable_id": "seen"}
    seen = net.op("ReadValue", x, out="FP32 2", version=version, name="read", **kept)
    net.op("Assign", y, out=f"FP32 {assigned}", version=version, name="assign", variable_id="seen")
    net.result(seen)
    return net


def variable_of_another_shape() -> Net:
    return variable("3")


def reshaped() -> None:
    net = variable("2", "opset3")
    ir.read_model(net.xml()).reshape({}, {"seen": [3]})


def lengths_from_attributes() -> Net:
    """Regions pooled to 2x2, but declared as 3x3."""
    net = Net()
    data = net.parameter("data", "1,4,8,8", out="FP32 1 4 8 8")
    rois = net.parameter("rois", "5,5", out="FP32 5 5")
    said = {"pooled_h": 2, "pooled_w": 2, "spatial_scale": 1, "method": "max"}
    net.result(net.op("ROIPooling", data, rois, out="FP32 5 4 3 3", version="opset2", name="pooled", **said))
    return net


def long_way() -> Net:
    """A shape determined by several elements of a constant."""
    net = Net()
    x = net.parameter("x", "2,12", out="FP32 2 12")
    wanted = net.constant([2, 3, 5], name="wanted")
    net.result(net.op("Reshape", x, wanted, name="reshaped", special_zero=False))
    return net


def limits_of_another_type() -> Net:
    """An f16 FakeQuantize whose limits Model Optimizer left in f32, except for one."""
    net = Net()
    x = net.parameter("x", "2", "f16", out="FP16 2")
    low, high = (net.constant(limit, "f32", name=name) for limit, name in ((0, "low"), (255, "high")))
    last = net.constant(255, "f16", name="last")
    net.result(net.op("FakeQuantize", x, low, high, low, last, out="FP16 2", name="quantized", levels=256))
    return net


REFUSALS = [
    dead_branch,
    limits_of_another_type,
    variable_of_another_shape,
    Call("variable_of_the_shape_of_its_start", reshaped),
    lengths_from_attributes,
    long_way,
]
