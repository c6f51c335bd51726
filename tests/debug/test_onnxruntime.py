"""ONNX Runtime as a side: inner tensors are observed by the names that OpenVINO's converter keeps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino
import pytest
from onnx import TensorProto, helper, numpy_helper

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.ir.tensor import Array

RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 12, 12)).astype(np.float32)
WEIGHTS = {
    "w1": RANDOM.standard_normal((8, 3, 3, 3)).astype(np.float32) / 5,
    "b1": RANDOM.standard_normal(8).astype(np.float32),
    "w2": RANDOM.standard_normal((8, 8, 3, 3)).astype(np.float32) / 8,
    "w3": RANDOM.standard_normal((8, 5)).astype(np.float32),
}


def network(**changes: Array) -> onnx.ModelProto:
    """Convolutions with a shortcut and pooling, and a second output; some weights can be replaced."""
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2"], ["c2"], pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["c2", "r1"], ["sum"]),
        helper.make_node("Sigmoid", ["sum"], ["gate"]),
        helper.make_node("GlobalAveragePool", ["gate"], ["pooled"]),
        helper.make_node("Flatten", ["pooled"], ["flat"]),
        helper.make_node("MatMul", ["flat", "w3"], ["scores"]),
    ]
    graph = helper.make_graph(
        nodes,
        "net",
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, [2, 3, 12, 12])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [2, 5]),
            helper.make_tensor_value_info("pooled", TensorProto.FLOAT, [2, 8, 1, 1]),
        ],
        [numpy_helper.from_array(array, name) for name, array in (WEIGHTS | changes).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


@pytest.fixture
def converted(tmp_path: Path) -> ir.Model:
    """The network as IR, next to ``net.onnx``."""
    onnx.save(network(), tmp_path / "net.onnx")
    openvino.save_model(
        openvino.convert_model(tmp_path / "net.onnx"), tmp_path / "net.xml", compress_to_fp16=False
    )
    return ir.read_model(tmp_path / "net.xml")


def test_it_is_observed_by_the_names_of_tensors(converted: ir.Model, tmp_path: Path) -> None:
    report = debug.compare(converted, X, f"onnxruntime:{tmp_path / 'net.onnx'}")
    assert report.explained, str(report)
    assert report.side == "onnxruntime"
    named = {name for node in converted.get_ops() for port in node.outputs() for name in port.get_names()}
    assert {"r1", "sum", "gate", "pooled", "scores"} <= named
    assert len(report.units) + len(report.unobserved) >= 6
    # On processors with AVX-512, ONNX Runtime fuses the addition with the convolution, unless that is an output.
    assert set(report.unobserved) <= {"c2"}


@pytest.mark.parametrize(("weight", "tensor"), [("w1", "c1"), ("w2", "c2"), ("w3", "scores")])
def test_a_wrong_weight_is_found_in_its_layer(
    weight: str, tensor: str, converted: ir.Model, tmp_path: Path
) -> None:
    array = WEIGHTS[weight].copy()
    array.flat[3] += 0.1
    onnx.save(network(**{weight: array}), tmp_path / "wrong.onnx")
    report = debug.compare(converted, {"image": X}, f"onnxruntime:{tmp_path / 'wrong.onnx'}")
    assert report.first is not None
    layers = [node for node in converted.get_ops() if node.friendly_name in report.first.layers]
    assert any(tensor in node.output(0).get_names() for node in layers)
    assert len(layers) <= 2  # an addition may be fused with the convolution


def test_weights_may_be_in_another_file(converted: ir.Model, tmp_path: Path) -> None:
    onnx.save_model(
        network(),
        tmp_path / "apart.onnx",
        save_as_external_data=True,
        location="apart.data",
        size_threshold=0,
    )
    assert (tmp_path / "apart.data").exists()
    assert debug.compare(converted, X, f"onnxruntime:{tmp_path / 'apart.onnx'}").explained


def test_inputs_and_outputs_are_found_by_order_where_names_differ(
    converted: ir.Model, tmp_path: Path
) -> None:
    model = network()
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = [name if name in WEIGHTS else f"other_{name}" for name in names]
    for entry in (*model.graph.input, *model.graph.output):
        entry.name = f"other_{entry.name}"
    onnx.save(model, tmp_path / "renamed.onnx")
    report = debug.compare(converted, X, f"onnxruntime:{tmp_path / 'renamed.onnx'}")
    assert report.explained
    assert report.units == ()


def _one_output(model: Any) -> None:
    del model.graph.output[1]
    model.graph.output[0].name = model.graph.node[-1].output[0] = "result"


def _unknown_operation(model: Any) -> None:
    model.graph.node[1].op_type = "Rellu"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_one_output, "the ONNX model has 1 outputs, the IR 2"),
        (_unknown_operation, "ONNX Runtime does not run the model"),
    ],
)
def test_what_does_not_fit_is_refused(change: Any, message: str, converted: ir.Model, tmp_path: Path) -> None:
    model = network()
    change(model)
    onnx.save(model, tmp_path / "bad.onnx")
    with pytest.raises(ir.InputError, match=message):
        debug.compare(converted, X, f"onnxruntime:{tmp_path / 'bad.onnx'}")
