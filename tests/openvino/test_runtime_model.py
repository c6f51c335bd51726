"""The runtime model: a node for each kernel, showing the fused layers."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import pytest

import ir_runtime as ir
from ir_runtime.openvino.compiling import fusions_of

DIGITS = Path(__file__).parents[2] / "examples/digits"
IMAGES = np.load(DIGITS / "images.npy")[:3]
PACKAGES: dict[str, Any] = {"openvino": openvino, "ir_runtime": ir}


def compiled(package: str = "ir_runtime", **config: Any) -> Any:
    return PACKAGES[package].Core().compile_model(DIGITS / "digits.xml", "CPU", config)


def infos(model: Any) -> list[dict[str, Any]]:
    """Return the runtime information of every node as text."""
    found = []
    for node in model.get_ordered_ops():
        info = node.get_rt_info()
        found.append({key: getattr(info[key], "value", info[key]) for key in info.keys()})  # noqa: SIM118
    return found


def test_nodes_say_what_those_of_openvino_say() -> None:
    ours, theirs = (infos(compiled(p).get_runtime_model()) for p in ("ir_runtime", "openvino"))
    for info in (*ours, *theirs):
        assert set(info) == set(theirs[0])
        assert {type(value) for value in info.values()} == {str}
        assert info["execTimeMcs"] == "not_executed"
    assert [info["execOrder"] for info in ours] == [str(n) for n in range(len(ours))]
    assert (ours[0]["layerType"], ours[-1]["layerType"]) == ("Input", "Output")


def test_what_openvino_fuses_into_convolutions_is_fused_here() -> None:
    def fused(package: str) -> list[str]:
        found = infos(compiled(package).get_runtime_model())
        return [info["originalLayersNames"] for info in found if info["layerType"] == "Convolution"]

    assert fused("ir_runtime") == fused("openvino")
    assert len(fused("ir_runtime")) == 3


@pytest.mark.parametrize("package", PACKAGES)
def test_kinds_of_nodes_are_spelled_as_in_profiles(package: str) -> None:
    api, ops = PACKAGES[package], import_module(f"{package}.opset13")
    x = ops.parameter([2, 3], np.float32)
    model = api.compile_model(api.Model([ops.softmax(ops.relu(x), 1)], [x]), "CPU", {"PERF_COUNT": True})
    request = model.create_infer_request()
    request.infer([np.ones((2, 3), np.float32)])
    kinds = {info["layerType"] for info in infos(model.get_runtime_model())}
    profiled = {info.node_type for info in request.profiling_info}
    assert "Softmax" in kinds & profiled
    assert package == "openvino" or kinds == {"Input", "Relu", "Softmax", "Output"}


@pytest.mark.parametrize("package", PACKAGES)
def test_it_is_a_model(package: str) -> None:
    model = compiled(package).get_runtime_model()
    assert [str(port.get_partial_shape()) for port in model.inputs] == ["[?,1,8,8]"]
    assert [str(port.get_partial_shape()) for port in model.outputs] == ["[?,10]"]
    kinds = {node.get_type_name() for node in model.get_ops()}
    assert kinds == {"Parameter", "ExecutionNode", "Result"}
    last = model.get_results()[0].input(0).get_source_output().get_node()
    assert "__module.vote/aten::linear/Add" in str(last.get_rt_info()["originalLayersNames"].value)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_it_has_the_fusions_of_the_plan(backend: str) -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    nodes = infos(ir.compile_model(model, backend=backend).get_runtime_model())
    several = {info["originalLayersNames"] for info in nodes if "," in info["originalLayersNames"]}
    report = fusions_of(model, backend).fused if backend != "reference" else ()
    assert several == {",".join(layer.name for layer in found.layers) for found in report}
    assert {info["primitiveType"] for info in nodes} == {f"{backend}_f32"}


@pytest.mark.parametrize("package", PACKAGES)
def test_with_profiling_it_has_times(package: str) -> None:
    its = compiled(package, PERF_COUNT=True)
    its.create_infer_request().infer([IMAGES])
    times = [
        info["execTimeMcs"] for info in infos(its.get_runtime_model()) if info["layerType"] == "Convolution"
    ]
    assert times
    assert all(time.isdecimal() for time in times)


def test_times_are_those_of_all_requests() -> None:
    its = compiled(PERF_COUNT=True)
    its(IMAGES)
    its.create_infer_request().infer([IMAGES])
    assert {len(seconds) for seconds in its._performance.seconds.values()} == {2}


def test_layouts_are_those_that_runs_have_shown() -> None:
    model = ir.read_model(DIGITS / "digits.xml")
    its = ir.compile_model(model, config={"PERF_COUNT": True}, backend="numpy")
    its(IMAGES)
    nodes = infos(its.get_runtime_model())
    assert [n["outputLayouts"] for n in nodes if n["layerType"] in ("Convolution", "MatMul")] == [
        "acdb"
    ] * 3 + ["ab"]


def test_a_constant_output_has_a_node() -> None:
    from harness.nets import Net

    net = Net()
    net.parameter("x", "2", out="FP32 2")
    net.result(net.constant(np.float32([1, 2])), "y")
    nodes = infos(ir.compile_model(ir.read_model(net.xml(), net.weights)).get_runtime_model())
    assert [node["layerType"] for node in nodes] == ["Input", "Const", "Output"]
