"""Executions explained by rounding, and faults that are not: located in the layer where they begin."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lxml import etree
from models.networks import NETWORKS, save

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.debug.openvino_side import _Probing
from ir_runtime.debug.precision import emulate_rounding
from ir_runtime.debug.reference import Reference
from ir_runtime.errors import InputError
from ir_runtime.ir.graph import Layer, Port
from ir_runtime.ir.tensor import Array


def network(name: str, folder: Path) -> tuple[Path, ir.Model, list[Array]]:
    path = save(name, folder)
    return path, ir.read_model(path), NETWORKS[name][1]()


@pytest.mark.parametrize("side", ["reference", "numpy", "native", "openvino"])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_honest_execution_is_accused(name: str, side: str, tmp_path: Path) -> None:
    _, model, inputs = network(name, tmp_path)
    report = debug.compare(model, inputs, side)
    assert report.explained, str(report)
    assert report.units
    assert not report.unobserved


@pytest.mark.parametrize("name", ["encoder", "plain_cnn"])
def test_outputs_of_the_model_are_not_observed_again(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second output at a tensor may change how OpenVINO computes it; the tensor is known already."""
    asked: list[Port] = []
    look = _Probing.observe
    monkeypatch.setattr(_Probing, "observe", lambda self, ports: asked.extend(ports) or look(self, ports))
    _, model, inputs = network(name, tmp_path)
    report = debug.compare(model, inputs, "openvino")
    outputs = {port._port for port in Reference(model).outputs}
    assert asked
    assert not outputs & set(asked)
    assert report.boundaries > len(asked)
    assert not report.unobserved


def test_tensors_are_not_observed_where_openvino_fails_on_them_as_outputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The plugin may fail on a model with an additional output; the other tensors are judged."""
    _, model, inputs = network("plain_cnn", tmp_path)
    run, failing = _Probing._run, []

    def failing_run(self: _Probing, ports: list[Port]) -> Any:
        if hasattr(self, "alone"):
            failing[:] = failing or [ports[0]]
            if failing[0] in ports:
                raise InputError("OpenVINO fails")
        return run(self, ports)

    monkeypatch.setattr(_Probing, "_run", failing_run)
    report = debug.compare(model, inputs, "openvino")
    assert len(report.unobserved) == 1
    assert report.explained


def _scaled(layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return (outputs[0] * np.float32(1 + 1e-5),)


def _in_f16(layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return (outputs[0].astype(np.float16).astype(np.float32),)


def _clamped(layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return (np.minimum(outputs[0], np.float32(0.9) * outputs[0].max()),)


def _shifted(layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return (np.roll(outputs[0], 1, -1),)


def _other_sum(layer: Layer, inputs: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
    return (outputs[0] + np.float32(1e-4) * np.abs(outputs[0]).max(),)


@pytest.mark.parametrize("fault", [_scaled, _in_f16, _clamped, _shifted, _other_sum])
@pytest.mark.parametrize(
    ("name", "type"), [("plain_cnn", "Convolution"), ("encoder", "MatMul"), ("residual", "Add")]
)
def test_a_fault_is_found_where_it_begins(
    name: str, type: str, fault: Callable[..., tuple[Array, ...]], tmp_path: Path
) -> None:
    _, model, inputs = network(name, tmp_path)
    wrong = _middle(model, type)
    report = debug.compare(model, inputs, _side(model, wrong, fault))
    assert not report.explained
    assert report.first is not None
    assert report.first.layers == (wrong,)
    assert [unit.name for unit in report.units if not unit.explained] == [wrong]
    assert report.consistent == "ir_runtime"


def _middle(model: ir.Model, type: str) -> str:
    """Return a middle layer of a type that computes on activations."""
    found = [node.friendly_name for node in model.get_ordered_ops() if node.type == type]
    return found[len(found) // 2]


def _side(
    model: ir.Model, wrong: str, fault: Callable[..., tuple[Array, ...]]
) -> Callable[..., Mapping[Any, Array]]:
    """An execution with one faulty layer."""
    reference = Reference(model)

    def side(inputs: list[Array], names: list[str]) -> Mapping[Any, Array]:
        found: dict[Any, Array] = {}

        def change(layer: Layer, given: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.name == wrong:
                outputs = fault(layer, given, outputs)
            if layer.name in names:
                found[layer.name] = np.array(outputs[0])
            return outputs

        results = reference.run(inputs, change)
        return found | dict(enumerate(results))

    return side


def _attribute(layer: Any, name: str, value: str) -> None:
    layer.find("data").set(name, value)


FAULTS: dict[str, tuple[str, str, Callable[[Any], None]]] = {
    "pads": ("plain_cnn", "Convolution", lambda la: (_attribute(la, "pads_begin", "4,2"), _attribute(la, "pads_end", "2,4"))),
    "epsilon": ("encoder", "MVN", lambda la: _attribute(la, "eps", "0.001")),
    "Gelu mode": ("encoder", "Gelu", lambda la: _attribute(la, "approximation_mode", "TANH")),
    "operator": ("residual", "Add", lambda la: la.set("type", "Maximum")),
}  # fmt: skip


@pytest.mark.parametrize("kind", FAULTS)
def test_another_model_is_wrong_in_the_layer_that_differs(kind: str, tmp_path: Path) -> None:
    name, type, change = FAULTS[kind]
    path, model, inputs = network(name, tmp_path)
    tree = etree.parse(path)
    layer = next(la for la in tree.iter("layer") if la.get("type") == type)
    change(layer)
    other = tmp_path / "other.xml"
    tree.write(other)
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    report = debug.compare(model, inputs, str(other))
    assert not report.explained
    assert report.first is not None
    assert report.first.layers == (layer.get("name"),)


def test_another_model_is_matched_whatever_its_layers_are_called(tmp_path: Path) -> None:
    path, model, inputs = network("residual", tmp_path)
    tree = etree.parse(path)
    for layer in tree.iter("layer"):
        if layer.get("type") != "Parameter":
            layer.set("name", f"n{layer.get('id')}")
    other = tmp_path / "other.xml"
    tree.write(other)
    other.with_suffix(".bin").write_bytes(path.with_suffix(".bin").read_bytes())
    report = debug.compare(model, inputs, str(other))
    assert report.explained
    assert len(report.units) == len(debug.compare(model, inputs, str(path)).units) > 10


def test_arrays_of_outputs_alone_are_judged_at_the_outputs(tmp_path: Path) -> None:
    _, model, inputs = network("plain_cnn", tmp_path)
    right = ir.compile_model(model)(inputs).to_tuple()
    assert debug.compare(model, inputs, list(right)).explained
    report = debug.compare(model, inputs, [right[0] * np.float32(1.001)])
    assert report.verdict == "unexplained"
    assert report.units == ()


def test_arrays_may_be_of_a_lower_precision(tmp_path: Path) -> None:
    _, model, inputs = network("plain_cnn", tmp_path)
    change = emulate_rounding("f16")
    assert change is not None
    results = Reference(model).run(inputs, change)
    assert debug.compare(model, inputs, results).verdict == "unexplained"
    report = debug.compare(model, inputs, results, precision="f16")
    assert report.explained
    assert report.ran == ("f16",)
    assert debug.compare(model, inputs, [results[0] * 1.05], precision="f16").verdict == "unexplained"


def test_a_precision_that_was_not_asked_for_is_said() -> None:
    x = op.parameter([3], np.float32, name="x")
    numbers = np.float32([0.1, 1, 3])
    rounded = np.exp(numbers).astype(ir.Type.bf16.to_dtype()).astype(np.float32)

    class Device:
        def observe(self, *_: Any) -> debug.Observation:
            return debug.Observation("device", [rounded], asked="f16", ran=("bf16",))

    report = debug.compare(ir.Model([op.exp(x)], [x]), numbers, Device())
    assert "\nnote: f16 was asked for, bf16 ran\n" in str(report)
    assert report.explained


def test_a_saved_archive_is_a_side(tmp_path: Path) -> None:
    _, model, inputs = network("plain_cnn", tmp_path)
    names = [port.any_name if port.names else "0" for port in model.outputs]
    results = ir.compile_model(model)(inputs).to_tuple()
    np.savez(tmp_path / "theirs.npz", **dict(zip(names, results, strict=True)))
    assert debug.compare(model, inputs, str(tmp_path / "theirs.npz")).explained


def test_the_report_is_json_with_a_schema(tmp_path: Path) -> None:
    _, model, inputs = network("plain_cnn", tmp_path)
    record = json.loads(debug.compare(model, inputs, "numpy").to_json())
    assert record["schema"] == 1
    assert record["verdict"] == "explained"
    assert record["side"]["observed"] == record["side"]["boundaries"] >= len(record["layers"]) > 0
    assert {"name", "members", "local", "inherited", "operation", "precision", "reason"} == set(
        record["layers"][0]
    )


@pytest.mark.parametrize(
    ("side", "message"),
    [
        ("openvinho", "did you mean 'openvino'"),
        ("openvino:f8", "expected f32, bf16, f16 or default"),
        (7, "a side must be a name, arrays or a function, got int"),
        ({"nothing": np.zeros(1)}, "arrays has no tensor of the model: it has nothing float64"),
    ],
)
def test_what_is_no_side(side: Any, message: str, tmp_path: Path) -> None:
    _, model, inputs = network("plain_cnn", tmp_path)
    with pytest.raises(ir.InputError) as caught:
        debug.compare(model, inputs, side)
    assert message in str(caught.value)
