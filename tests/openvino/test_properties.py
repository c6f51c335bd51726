"""OpenVINO's properties can be read and set here, with values of the same types."""

from __future__ import annotations

import types
import warnings
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import openvino
import openvino.properties
import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.openvino.devices import COMPILED, READABLE
from ir_runtime.properties import Property

NET = Net()
NET.result(NET.op("ReLU", NET.parameter("x", "1,3,8,8", out="FP32 1 3 8 8"), out="FP32 1 3 8 8", name="y"))
DEVICES = ("CPU", "AUTO", "MULTI", "HETERO", "BATCH")
PACKAGES: dict[str, Any] = {"openvino": openvino, "ir_runtime": ir}

# OpenVINO cannot return these from Python, or has a value there that its enumeration does not.
BROKEN = {("CPU", "COMPATIBILITY_CHECK"), ("BATCH", "MULTI_DEVICE_PRIORITIES")}


def core(package: str = "ir_runtime") -> Any:
    return PACKAGES[package].Core()


def compiled(package: str = "ir_runtime", device: str = "CPU", **config: Any) -> Any:
    its = core(package)
    return its.compile_model(its.read_model(NET.xml(), NET.weights), device, config)


def kind(value: Any) -> str:
    """Return the name of a type that both packages share."""
    name = type(value).__name__
    return "Type" if name == "ElementType" else name


@pytest.mark.parametrize("device", DEVICES)
def test_a_core_has_the_properties_that_openvino_has(device: str) -> None:
    ours, theirs = (core(p).get_property(device, "SUPPORTED_PROPERTIES") for p in ("ir_runtime", "openvino"))
    readable = {name: "RW" if access == "WO" else access for name, access in theirs.items()}
    assert ours == readable


@pytest.mark.parametrize("device", DEVICES)
def test_a_compiled_model_has_the_properties_that_openvino_has(device: str) -> None:
    name = device if device == "CPU" else f"{device}:CPU"
    ours, theirs = (
        compiled(p, name).get_property("SUPPORTED_PROPERTIES") for p in ("ir_runtime", "openvino")
    )
    assert ours.keys() == theirs.keys()


@pytest.mark.parametrize(("device", "name"), [(d, n) for d, names in READABLE.items() for n in names.split()])
def test_every_property_can_be_read(device: str, name: str) -> None:
    found = core().get_property(device, name)
    if (device, name) not in BROKEN:
        assert kind(found) == kind(core("openvino").get_property(device, name))


@pytest.mark.parametrize(("device", "name"), [(d, n) for d, names in COMPILED.items() for n in names.split()])
def test_every_property_of_a_compiled_model_can_be_read(device: str, name: str) -> None:
    device = device if device == "CPU" else f"{device}:CPU"
    found, expected = (compiled(p, device).get_property(name) for p in ("ir_runtime", "openvino"))
    assert kind(found) == kind(expected)
    if name in ("EXECUTION_DEVICES", "MULTI_DEVICE_PRIORITIES", "LOADED_FROM_CACHE"):
        assert found == expected


VALUES = {
    "NUM_STREAMS": [1, "1", "", None, 3],
    "INFERENCE_NUM_THREADS": [1, 0, "2", "", None],
    "PERF_COUNT": ["YES", "NO", "true", "false", "1", "0", "", True, False],
    "INFERENCE_PRECISION_HINT": ["f32", "FP32", "undefined", "dynamic", ""],
    "PERFORMANCE_HINT": ["LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT"],
    "EXECUTION_MODE_HINT": ["ACCURACY", "PERFORMANCE"],
    "PERFORMANCE_HINT_NUM_REQUESTS": [0, 4, "4", ""],
    "ENABLE_CPU_PINNING": [True, "NO"],
    "SCHEDULING_CORE_TYPE": ["PCORE_ONLY", "ANY_CORE"],
    "MODEL_DISTRIBUTION_POLICY": ["TENSOR_PARALLEL", ""],
    "LOG_LEVEL": ["LOG_NONE", "LOG_ERROR", "LOG_WARNING", "LOG_TRACE"],
    "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": [1, 0.5, "1"],
    "TBB_PARTITIONER": ["AUTO", "STATIC"],
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": [0, 64, "32"],
    "KV_CACHE_PRECISION": ["u8", "f16", "FP16", "bf16"],
    "KEY_CACHE_PRECISION": ["u8", "i8"],
    "KEY_CACHE_GROUP_SIZE": [0, 16],
    "DEVICE_ID": [""],
    "CACHE_DIR": ["/tmp/somewhere"],
}


@pytest.mark.parametrize(("name", "value"), [(n, v) for n, values in VALUES.items() for v in values])
def test_values_are_returned_as_openvino_returns_them(name: str, value: Any) -> None:
    found = []
    for package in ("ir_runtime", "openvino"):
        its = core(package)
        its.set_property("CPU", {name: value})
        found.append(its.get_property("CPU", name))
    assert kind(found[0]) == kind(found[1])
    if name != "NUM_STREAMS":  # there, OpenVINO counts the cores of the machine
        assert repr(found[0]) == repr(found[1])


WRONG = [
    ("NUM_STREAMS", "many"), ("INFERENCE_NUM_THREADS", -1), ("INFERENCE_NUM_THREADS", True), ("PERF_COUNT", 1),
    ("PERF_COUNT", "maybe"), ("INFERENCE_PRECISION_HINT", "u8"), ("INFERENCE_PRECISION_HINT", "fast"),
    ("PERFORMANCE_HINT", "latency"), ("PERFORMANCE_HINT", "UNDEFINED"), ("EXECUTION_MODE_HINT", "LATENCY"),
    ("LOG_LEVEL", "LOUD"), ("KV_CACHE_PRECISION", "i64"), ("NOPE", 1), ("FULL_DEVICE_NAME", "x"),
]  # fmt: skip


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(("name", "value"), WRONG)
def test_what_openvino_refuses_is_refused(package: str, name: str, value: Any) -> None:
    with pytest.raises(RuntimeError):
        compiled(package, **{name: value})


@pytest.mark.parametrize("package", PACKAGES)
def test_a_compiled_model_keeps_its_properties(package: str) -> None:
    with pytest.raises(RuntimeError):
        compiled(package).set_property({"PERF_COUNT": True})


def declared(module: types.ModuleType) -> Iterator[tuple[str, str, str]]:
    """Yield OpenVINO's properties and enumerations: module, name, and text or members."""
    native = import_module("openvino._pyopenvino").properties
    for step in module.__name__.split(".")[2:]:
        native = getattr(native, step)
    for name in dir(native):
        thing = getattr(native, name)
        if name == "cache_encryption_callbacks":  # which OpenVINO itself cannot name
            continue
        if isinstance(thing, types.BuiltinFunctionType) and hasattr(module, name):
            yield module.__name__, name, str(getattr(module, name))
        elif isinstance(thing, type) and hasattr(module, name) and hasattr(thing, "__members__"):
            yield module.__name__, name, str(sorted((k, int(v)) for k, v in thing.__members__.items()))


MODULES = ("", ".hint", ".streams", ".log", ".device", ".intel_cpu", ".intel_auto", ".intel_gpu", ".intel_gpu.hint",
           ".intel_npu")  # fmt: skip
NAMES = [each for path in MODULES for each in declared(import_module(f"openvino.properties{path}"))]


@pytest.mark.parametrize(("module", "name", "text"), NAMES)
def test_every_name_of_openvinos_properties_is_there(module: str, name: str, text: str) -> None:
    found = getattr(import_module(module.replace("openvino", "ir_runtime", 1)), name)
    if isinstance(found, str):
        assert found == found() == text
    else:
        assert str(sorted((k, int(v)) for k, v in found.__members__.items())) == text


def test_openvino_has_many_properties() -> None:
    assert len(NAMES) > 90


def test_values_have_the_types_of_their_properties() -> None:
    from ir_runtime.properties import hint, streams

    assert hint.performance_mode("THROUGHPUT") == ("PERFORMANCE_HINT", hint.PerformanceMode.THROUGHPUT)
    assert hint.inference_precision(ir.Type.f16) == ("INFERENCE_PRECISION_HINT", ir.Type.f16)
    assert streams.num(streams.Num.AUTO) == ("NUM_STREAMS", -1)
    assert hint.PerformanceMode.LATENCY < hint.PerformanceMode.THROUGHPUT
    assert Property.known["CACHE_DIR"] is ir.properties.cache_dir


def test_hints_are_accepted_without_a_warning() -> None:
    hints = {
        "CACHE_DIR": "cache",
        "KV_CACHE_PRECISION": "u8",
        "ENABLE_MMAP": False,
        "EXECUTION_MODE_HINT": "PERFORMANCE",
    }
    compiled(**hints, AFFINITY="NONE", ENABLE_HYPER_THREADING=False)


def test_a_warning_points_at_the_callers_line() -> None:
    core, model = ir.Core(), ir.read_model(NET.xml(), NET.weights)
    core.set_property({"INFERENCE_PRECISION_HINT": "bf16"})
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        compiled = core.compile_model(model, "CPU", backend="numpy")
        ir.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "bf16"}, backend="reference")
    assert [warning.filename for warning in caught] == [__file__] * 2
    assert core.get_property("CPU", "INFERENCE_PRECISION_HINT") == ir.Type.bf16
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.f32


def test_properties_of_one_device_are_set_for_it() -> None:
    core, model = ir.Core(), ir.read_model(NET.xml(), NET.weights)
    core.set_property({"INFERENCE_NUM_THREADS": 4})
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 3})
    core.set_property("AUTO", ("INFERENCE_NUM_THREADS", 2))
    found = [
        core.compile_model(model, d).get_property("INFERENCE_NUM_THREADS")
        for d in ("CPU", "AUTO", "HETERO:CPU")
    ]
    assert found == [3, 2, 3]
    given = core.compile_model(model, "AUTO", {"DEVICE_PROPERTIES": {"CPU": {"INFERENCE_NUM_THREADS": 1}}})
    assert given.get_property("DEVICE_PROPERTIES")["CPU"]["INFERENCE_NUM_THREADS"] == 1
    core.unload_plugin("CPU")
    assert core.get_property("CPU", "INFERENCE_NUM_THREADS") == 4


def test_numbers_do_not_depend_on_hints() -> None:
    x = np.linspace(-1, 1, 192, dtype=np.float32).reshape(1, 3, 8, 8)
    expected = compiled()(x)["y"]
    for hint in ("LATENCY", "THROUGHPUT"):
        np.testing.assert_array_equal(compiled(PERFORMANCE_HINT=hint)(x)["y"], expected)
