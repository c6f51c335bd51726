"""The precision of a compilation, from properties to kernels, and as reported by the compiled model."""

from __future__ import annotations

import dataclasses
import warnings
from typing import Any

import numpy as np
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime import opset1
from ir_runtime._util.scoped import NOTHING
from ir_runtime.backends import Backend, Kernel, Precision, load
from ir_runtime.backends.core.backend import CacheKernels
from ir_runtime.backends.core.precision import EXACT, current, within
from ir_runtime.backends.native.codegen.bf16 import IS_FASTER
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.quantized_cache import pack_rows
from ir_runtime.openvino.config import check_config, effective_properties, precision_of
from ir_runtime.ops import registry

PACKING = CacheKernels(pack_rows, lambda context, layer: None)
ABLE = Backend(
    "able",
    products=("f32", "bf16"),
    dynamic_groups=(0, 32, 64),
    fastest=lambda: Precision("bf16", 32),
    quantized_cache=lambda: PACKING,
)
RELU: Any = registry.resolve("Relu", 1)


def network() -> ir.Model:
    net = Net()
    x = net.parameter("x", "1,4", out="FP32 1 4")
    net.result(net.op("ReLU", x, out="FP32 1 4", name="y"))
    return ir.read_model(net.xml(), net.weights)


ASKED: list[tuple[dict[str, Any], Precision]] = [
    ({}, EXACT),
    ({"EXECUTION_MODE_HINT": "ACCURACY"}, EXACT),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE"}, Precision("bf16", 32)),
    ({"INFERENCE_PRECISION_HINT": "bf16"}, Precision("bf16")),
    ({"INFERENCE_PRECISION_HINT": "f16"}, Precision(f16="f16")),
    ({"INFERENCE_PRECISION_HINT": "dynamic"}, EXACT),
    ({"DYNAMIC_QUANTIZATION_GROUP_SIZE": 64}, Precision("f32", 64)),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE", "INFERENCE_PRECISION_HINT": "f32"}, Precision("f32", 32)),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE", "INFERENCE_PRECISION_HINT": "dynamic"}, Precision("bf16", 32)),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0}, Precision("bf16")),
    ({"EXECUTION_MODE_HINT": "ACCURACY", "INFERENCE_PRECISION_HINT": "bf16"}, Precision("bf16")),
    ({"KV_CACHE_PRECISION": "u8"}, Precision("f32", 0, "u8")),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE", "KV_CACHE_PRECISION": "u8"}, Precision("bf16", 32, "u8")),
    ({"EXECUTION_MODE_HINT": "PERFORMANCE", "KV_CACHE_PRECISION": "f32"}, Precision("bf16", 32)),
]


@pytest.mark.parametrize(("properties", "expected"), ASKED)
def test_a_property_overrules_the_mode(properties: dict[str, Any], expected: Precision) -> None:
    assert precision_of(check_config(properties), [ABLE]) == expected


def test_a_group_size_that_a_backend_does_not_take_is_said() -> None:
    with pytest.warns(match="DYNAMIC_QUANTIZATION_GROUP_SIZE=5 is ignored: the backend able takes 0, 32, 64"):
        assert precision_of(check_config({"DYNAMIC_QUANTIZATION_GROUP_SIZE": 5}), [ABLE]) == EXACT


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, False),
        ({"CPU_DENORMALS_OPTIMIZATION": True}, True),
        ({"EXECUTION_MODE_HINT": "PERFORMANCE"}, True),
        ({"EXECUTION_MODE_HINT": "PERFORMANCE", "CPU_DENORMALS_OPTIMIZATION": False}, False),
    ],
)
def test_denormals_are_flushed_where_that_is_fast_or_asked_for(
    properties: dict[str, Any], expected: bool
) -> None:
    fast = Precision("bf16", flush_denormals=True)
    able = dataclasses.replace(ABLE, fastest=lambda: fast, flushing=NOTHING)
    assert precision_of(check_config(properties), [able]).flush_denormals is expected


def test_denormals_that_a_backend_keeps_are_said() -> None:
    config = check_config({"CPU_DENORMALS_OPTIMIZATION": True})
    with pytest.warns(match="CPU_DENORMALS_OPTIMIZATION is ignored: the backend able computes with denormal"):
        assert precision_of(config, [ABLE]) == EXACT


@pytest.mark.parametrize(("properties", "expected"), ASKED)
def test_what_runs_can_be_read(properties: dict[str, Any], expected: Precision) -> None:
    found = effective_properties(check_config(properties), expected)
    is_f16 = properties.get("INFERENCE_PRECISION_HINT") == "f16"
    hint = found.get("INFERENCE_PRECISION_HINT", ElementType.f16)
    assert hint is ElementType[("f16" if is_f16 else expected.products)]
    assert found["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == expected.dynamic_group
    assert found["KV_CACHE_PRECISION"] is found["KEY_CACHE_PRECISION"] is ElementType[expected.kv_cache]


def test_a_type_of_caches_that_a_backend_does_not_take_is_said() -> None:
    config = check_config({"KV_CACHE_PRECISION": "f16"})
    with pytest.warns(match="KV_CACHE_PRECISION=f16 is ignored: the backend able takes f32, u8"):
        assert precision_of(config, [ABLE]) == EXACT
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert precision_of(config, [ABLE], stateful=False) == EXACT


@pytest.mark.parametrize("backend", ["reference", "numpy", "native"])
def test_capabilities_are_those_of_the_processor_and_the_backend(backend: str) -> None:
    core = ir.Core()
    core.set_property("CPU", {"BACKEND": backend})
    found = core.get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    assert ("BF16" in found) is (backend == "native" and IS_FASTER)
    assert ("WINOGRAD" in found) is (backend != "reference")
    assert found[-4:] == ["FP32", "INT8", "BIN", "EXPORT_IMPORT"]


@pytest.mark.parametrize("backend", ["reference", "numpy"])
@pytest.mark.parametrize("mode", ["ACCURACY", "PERFORMANCE"])
def test_backends_that_multiply_in_f32_say_so(backend: str, mode: str) -> None:
    config = {"INFERENCE_PRECISION_HINT": "bf16", "EXECUTION_MODE_HINT": mode}
    with pytest.warns(match=f"the backend {backend} multiplies in f32"):
        compiled = ir.compile_model(network(), "CPU", config, backend=backend)
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.f32
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 0
    assert compiled.get_property("EXECUTION_MODE_HINT").name == mode


@pytest.mark.parametrize("backend", ["reference", "numpy"])
def test_the_mode_alone_is_no_reason_to_warn(backend: str) -> None:
    config = {"EXECUTION_MODE_HINT": "PERFORMANCE"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled = ir.compile_model(network(), "CPU", config, backend=backend)
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.f32


def recording(seen: list[Precision]) -> Backend:
    """A backend that records the precision for which kernels are requested."""
    mine = dataclasses.replace(ABLE, offers={}, packed={}, patterns={})

    @mine.accelerates(RELU)
    def offer(op: object, x: object) -> Any:
        seen.append(current())
        return Kernel(lambda array: np.maximum(array, 0), name="relu_bf16")

    return mine


def test_kernels_read_it_while_they_are_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Precision] = []
    chain = (recording(seen),)
    monkeypatch.setattr("ir_runtime.openvino.compiled.load", lambda *_: ("able", chain))
    config = {"EXECUTION_MODE_HINT": "PERFORMANCE", "PERF_COUNT": True}
    compiled = ir.compile_model(network(), "CPU", config)
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.bf16
    assert compiled.get_property("DYNAMIC_QUANTIZATION_GROUP_SIZE") == 32
    request = compiled.create_infer_request()
    request.infer(np.zeros((1, 4), np.float32))
    assert [info.exec_type for info in request.get_profiling_info()] == ["relu_bf16"]
    (node,) = (n for n in compiled.get_runtime_model().get_ops() if n.get_type_name() == "ExecutionNode")
    assert str(node.get_rt_info()["runtimePrecision"].astype(str)) == "bf16"
    ir.compile_model(network(), "CPU")
    assert seen == [Precision("bf16", 32), EXACT]
    assert current() == EXACT


def test_bodies_have_that_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Precision] = []
    chain = (recording(seen),)
    monkeypatch.setattr("ir_runtime.openvino.compiled.load", lambda *_: ("able", chain))
    x, row = opset1.parameter([3, 2], "f32", name="x"), opset1.parameter([1, 2], "f32")
    result = opset1.result(opset1.relu(row))
    rows: Any = opset1.tensor_iterator()
    rows.set_body(ir.Model([result], [row]))
    rows.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    out = rows.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0)
    ir.compile_model(ir.Model([out], [x]), "CPU", {"INFERENCE_PRECISION_HINT": "bf16"})
    assert seen
    assert set(seen) == {Precision("bf16")}


def test_a_compilation_inside_another_has_its_precision() -> None:
    with within(Precision("bf16")):
        with within(EXACT):
            assert current() == EXACT
        assert current() == Precision("bf16")
    assert load("numpy")[1][0].followed(Precision("bf16", 32)) == Precision("f32", 32)
