"""Devices: those that run on the CPU, and those that are unavailable."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino
import pytest
from harness.nets import Net

import ir_runtime as ir

NET = Net()
NET.result(NET.op("ReLU", NET.parameter("x", "2", out="FP32 2"), out="FP32 2", name="y"))
PACKAGES: dict[str, Any] = {"openvino": openvino, "ir_runtime": ir}


def run(package: str, device: str | None, **config: Any) -> list[float]:
    core = PACKAGES[package].Core()
    model = core.read_model(NET.xml(), NET.weights)
    compiled = core.compile_model(model, device, config) if device else core.compile_model(model)
    assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    found: list[float] = compiled(np.float32([-1, 2]))[0].tolist()
    return found


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "device",
    ["CPU", "AUTO", "AUTO:CPU", "MULTI:CPU", "HETERO:CPU", "BATCH:CPU", "BATCH:CPU(4)", "AUTO:-GPU", None],
)
def test_devices_that_run_on_the_cpu(package: str, device: str | None) -> None:
    assert run(package, device) == [0, 2]


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    "device",
    ["GPU", "NPU", "GPU.0", "AUTO:GPU", "MULTI", "HETERO", "BATCH", "HETERO:GPU,CPU", "BATCH:GPU", "CPU.1", "cpu",
     "NOPE", "CPU,GPU"],
)  # fmt: skip
def test_devices_that_are_not_there(package: str, device: str) -> None:
    with pytest.raises(RuntimeError):
        run(package, device)


@pytest.mark.parametrize("package", PACKAGES)
def test_programs_fall_back_on_the_cpu(package: str) -> None:
    try:
        found = run(package, "GPU")
    except RuntimeError:
        found = run(package, "CPU")
    assert found == [0, 2]


@pytest.mark.parametrize("package", PACKAGES)
def test_the_devices_there_are(package: str) -> None:
    core = PACKAGES[package].Core()
    assert core.available_devices == core.get_available_devices() == ["CPU"]
    with pytest.raises(RuntimeError):
        core.get_property("GPU", "FULL_DEVICE_NAME")
    with pytest.raises(RuntimeError):
        core.get_property("AUTO:CPU", "FULL_DEVICE_NAME")


def test_auto_takes_the_first_device_that_is_there() -> None:
    """OpenVINO does so where its GPU plugin loads and finds no GPU."""
    assert run("ir_runtime", "AUTO:GPU,CPU") == [0, 2]
    assert run("ir_runtime", "MULTI", MULTI_DEVICE_PRIORITIES="CPU") == [0, 2]


@pytest.mark.parametrize("package", PACKAGES)
def test_versions_have_fields(package: str) -> None:
    core = PACKAGES[package].Core()
    assert list(core.get_versions("AUTO:CPU")) == ["AUTO", "CPU"]
    version = core.get_versions("CPU")["CPU"]
    assert all(isinstance(n, int) for n in (version.major, version.minor, version.patch))
    assert version.build_number.startswith(f"{version.major}.{version.minor}.{version.patch}")
    assert repr(version) == f"<Version: {version.build_number} {version.description}>"


@pytest.mark.parametrize("package", PACKAGES)
def test_plugins_are_unloaded(package: str) -> None:
    core = PACKAGES[package].Core()
    core.get_property("CPU", "FULL_DEVICE_NAME")  # loads it
    core.unload_plugin("CPU")
    for device in ("GPU", "NOPE"):
        with pytest.raises(RuntimeError):
            core.unload_plugin(device)
