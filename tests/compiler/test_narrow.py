"""f32 models computed in f16 on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net
from harness.oracle import PLUGIN, core
from models.networks import NETWORKS, save
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.backends import available

backends = pytest.mark.parametrize("backend", available())


def in_f16(model: Any, backend: str = "reference") -> ir.CompiledModel:
    return ir.compile_model(model, backend=backend, config={"INFERENCE_PRECISION_HINT": "f16"})


def types(compiled: ir.CompiledModel) -> dict[str, str]:
    """Return the element type of each layer's output by name."""
    nodes = compiled._model.get_ordered_ops()
    return {n.friendly_name: n.output().element_type.label for n in nodes if n.outputs()}


@backends
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks(name: str, compressed: bool, backend: str, tmp_path: Path) -> None:
    """Results are as close to OpenVINO's f32 as f16 allows; inputs and outputs keep their types."""
    path = save(name, tmp_path)
    if compressed:
        ov.save_model(core().read_model(path), path := tmp_path / "small.xml", compress_to_fp16=True)
    inputs = NETWORKS[name][1]()
    wide, half = ir.compile_model(path), in_f16(path, backend)
    for ours, theirs in (half.inputs, wide.inputs), (half.outputs, wide.outputs):
        assert [(p.element_type, str(p.partial_shape), p.names) for p in ours] == [
            (p.element_type, str(p.partial_shape), p.names) for p in theirs
        ]
    assert "f16" in types(half).values()
    wanted, found = core().compile_model(path, "CPU", PLUGIN)(inputs), half(inputs)
    for i in range(len(found)):
        assert found[i].dtype == np.float32
        error = np.sqrt(np.mean((found[i] - wanted[i]) ** 2) / np.mean(wanted[i] ** 2))
        assert 1e-6 < error < 2e-3


def test_a_reshaped_model_keeps_its_shapes() -> None:
    net = Net()
    x = net.parameter("x", "?,3")
    net.result(net.op("Exp", x, out="f32 -1 3", name="y", names="y"))
    model = ir.read_model(net.xml())
    model.reshape("2,3")
    compiled = in_f16(model)
    assert compiled.output("y").partial_shape == [2, 3]
    assert compiled(np.ones((2, 3), np.float32))["y"].dtype == np.float32
    assert (
        ir.compile_model(model).get_runtime_model().get_ordered_ops()[1].output().element_type.label == "f32"
    )


def test_each_tensor_name_stays_on_one_tensor_in_its_type() -> None:
    """Outputs stay f32, so their names move to the Converts; names of inner tensors stay on f16 tensors."""
    net = Net()
    x = net.parameter("x", "3")
    inner = net.op("Exp", x, out="f32 3", name="inner", names="inner")
    net.result(net.op("Abs", inner, out="f32 3", name="y", names="y"))
    nodes = in_f16(ir.read_model(net.xml()))._model.get_ops()
    outputs = [
        out for node in nodes for out in node.outputs() if node.get_type_name() in ("Exp", "Abs", "Convert")
    ]
    named = [(name, out.element_type.label) for out in outputs for name in out.names]
    assert sorted(named) == [("inner", "f16"), ("y", "f32")]


def test_arithmetic_on_shapes_stays_exact(tmp_path: Path) -> None:
    """2049 is not representable in f16."""
    x = op.parameter([-1], np.float32, name="x")
    length = op.convert(op.shape_of(x), "f32")
    half = op.convert(op.floor(op.multiply(length, op.constant(np.float32([1])))), "i64")
    y = op.reshape(op.exp(x), op.concat([half, op.constant(np.int64([1]))], 0), False)
    ov.save_model(ov.Model([op.result(y)], [x]), path := tmp_path / "m.xml", compress_to_fp16=False)
    compiled = in_f16(path)
    assert compiled(np.zeros(2049, np.float32))[0].shape == (2049, 1)
    kinds = {n.type: n.output().element_type.label for n in compiled._model.get_ops()}
    assert (kinds["Multiply"], kinds["Floor"], kinds["Exp"]) == ("f32", "f32", "f16")


def test_what_is_random_stays_f32(tmp_path: Path) -> None:
    shape = op.parameter([1], np.int64, name="shape")
    limits = op.constant(np.float32(0)), op.constant(np.float32(1))
    drawn = op.random_uniform(shape, *limits, "f32", 7, 7)
    ov.save_model(
        ov.Model([op.result(op.exp(drawn))], [shape]), path := tmp_path / "m.xml", compress_to_fp16=False
    )
    assert ir.validate(path).ok
    given = np.int64([5])
    np.testing.assert_allclose(in_f16(path)(given)[0], ir.compile_model(path)(given)[0], rtol=2e-3)


def test_constants_have_no_new_infinities() -> None:
    net = Net()
    mask = net.constant([-3.4e38, 3.4e38, 1], "f32", name="mask")
    net.result(net.op("Maximum", net.parameter("x", "3"), mask, out="f32 3", name="y"))
    found = in_f16(ir.read_model(net.xml(), net.weights))(np.full(3, -7e4, np.float32))[0]
    assert found.tolist() == [-65504, 65504, 1]


@pytest.mark.parametrize("value", ["f16", "F16", ir.Type.f16, ov.Type.f16])
def test_ways_to_ask(value: Any) -> None:
    net = Net()
    net.result(net.op("Exp", net.parameter("x", "3"), out="f32 3", name="y"))
    compiled = ir.compile_model(ir.read_model(net.xml()), config={"INFERENCE_PRECISION_HINT": value})
    assert types(compiled)["y"] == "f16"
