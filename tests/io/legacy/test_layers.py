"""Each type of legacy layer: values computed by hand, and the declared dims."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from harness.legacy import CASES, Case, Dims, LegacyNet, loop, ramp
from harness.oracle import plugin, read

import ir_runtime as ir
from ir_runtime.backends import available
from ir_runtime.io.reader.legacy.declaration import declared
from ir_runtime.io.reader.legacy.net import read_legacy

assert read_legacy  # whose module registers the declarations


APART = {"activation", "input", "const", "memory", "tensoriterator"}
"""Types that tests of their own have."""


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.data}"[:80])
def test_a_layer_gives_the_numbers_of_its_page(case: Case, backend: str) -> None:
    net = case.net()
    model = ir.read_model(net.xml(), net.weights)
    assert [str(found.code) for found in model.report] == ["IR010"]
    found = ir.compile_model(model, backend=backend)(case.fed).to_tuple()
    for array, wanted in zip(found, case.results, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=2e-6, atol=2e-7)
        assert np.shape(array) == np.shape(wanted)


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.type} {case.data}"[:80])
def test_openvino_computes_the_same_from_the_upgraded_file(case: Case, tmp_path: Path) -> None:
    net = case.net()
    ir.save_model(ir.read_model(net.xml(), net.weights), tmp_path / "new.xml")
    upgraded = read((tmp_path / "new.xml").read_bytes(), (tmp_path / "new.bin").read_bytes())
    for array, wanted in zip(plugin(upgraded, case.fed), case.results, strict=True):
        np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6)


def test_every_type_of_layer_is_tested() -> None:
    tested = {case.type.lower() for case in CASES} | APART
    assert {type for type, cls in declared().items() if cls.is_certain} <= tested


def test_a_constant_of_half_precision_is_computed_in_single() -> None:
    net = LegacyNet(precision="FP16")
    x = net.input("x", 2)
    net.layer("Eltwise", [x, net.const([0.1, 3], "FP16")], (2,), operation="sum", name="y")
    model = ir.read_model(net.xml(), net.weights)
    assert model.input().element_type.label == model.output().element_type.label == "f32"
    found = ir.compile_model(model)(np.float32([1e-4, 2]))["y"]
    np.testing.assert_array_equal(found, np.float32([np.float32(np.float16(0.1)) + np.float32(1e-4), 5]))


@pytest.mark.parametrize(
    ("label", "values"),
    [("I8", [-1, 5]), ("U8", [200, 5]), ("I32", [-70000, 5]), ("I64", [-70000, 5]), ("BOOL", [0, 1])],
)
def test_constants_of_other_types(label: str, values: list[int]) -> None:
    net = LegacyNet(version=7)
    x = net.input("x", 2)
    net.layer("Eltwise", [x, net.const(values, label)], (2,), operation="mul", name="y")
    found = ir.compile_model(ir.read_model(net.xml(), net.weights))(np.float32([2, 2]))["y"]
    np.testing.assert_array_equal(found, 2 * np.float32(values))


def test_a_scalar_constant() -> None:
    net = LegacyNet()
    net.layer("Eltwise", [net.input("x", 2), net.const(3.0)], (2,), operation="mul", name="y")
    found = ir.compile_model(ir.read_model(net.xml(), net.weights))(np.float32([2, 4]))["y"]
    np.testing.assert_array_equal(found, [6, 12])


def test_a_state_is_kept_between_runs() -> None:
    net = LegacyNet()
    x = net.input("x", 1, 2)
    state = net.layer("Memory", (), (1, 2), id="r_1", index=1, size=2, name="before")
    sum = net.layer("Eltwise", [x, state], (1, 2), operation="sum", name="sum")
    net.layer("Memory", [sum], id="r_1", index=0, size=2, name="after")
    net.layer("ReLU", [sum], (1, 2), name="y")
    model = ir.read_model(net.xml(), net.weights)
    assert [str(found.code) for found in model.report] == ["IR010"]
    request = ir.compile_model(model).create_infer_request()
    for times in (1, 2, 3):
        np.testing.assert_array_equal(request.infer([np.float32([[1, 2]])])["y"], [[times, 2 * times]])


def test_a_loop_has_parameters_and_results_where_its_port_map_names_ports() -> None:
    net = loop()
    model = ir.read_model(net.xml(), net.weights)
    assert [str(found) for found in model.report if found.code != "IR010"] == []
    x = ramp(1, 3, 2, start=1)
    every, last = ir.compile_model(model)([x, np.float32([[10, 20]])]).to_tuple()
    sums = np.cumsum(x[:, ::-1], axis=1)[:, ::-1] + np.float32([10, 20])
    np.testing.assert_array_equal(every, sums)
    np.testing.assert_array_equal(last, sums[:, 0])


def test_dims_that_a_layer_declares_are_checked() -> None:
    net = LegacyNet()
    dims: Dims = (1, 2)
    net.layer(
        "FullyConnected",
        [net.input("x", *dims)],
        (1, 4),
        out__size=3,
        blobs={"weights": np.zeros(6)},
        name="fc",
    )
    report = ir.validate(net.xml(), weights=net.weights)
    assert [(str(found.code), found.layer, found.line) for found in report.errors] == [("IR303", "fc", 5)]
    assert "output port 1 declares dims [1,4], but the operation gives [1,3]" in report.errors[0].message
