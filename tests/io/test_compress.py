"""Compression of weights to f16, compared with OpenVINO."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.nets import Net
from harness.oracle import PLUGIN, assert_identical, core
from models.collection import COLLECTION, saved
from models.controlled import CASES
from models.networks import NETWORKS

import ir_runtime as ir


def both(path: Path, folder: Path) -> tuple[Path, Path]:
    """Return a model saved with f16 weights, by us and by OpenVINO."""
    ours, theirs = folder / "ours.xml", folder / "theirs.xml"
    ir.save_model(ir.read_model(path), ours, compress_to_fp16=True)
    ov.save_model(core().read_model(path), theirs, compress_to_fp16=True)
    return ours, theirs


# In one of them OpenVINO would have the constants in another order than the file.
@pytest.mark.parametrize("name", [name for name in COLLECTION if name != "previous"])
def test_the_same_bytes_as_openvino(name: str, tmp_path: Path) -> None:
    ours, theirs = both(saved(name), tmp_path)
    assert list(ir.read_model(ours).report) == []
    assert ours.with_suffix(".bin").read_bytes() == theirs.with_suffix(".bin").read_bytes()


@pytest.mark.parametrize("name", ["plain_cnn", "encoder", "loop_that_grows"])
def test_the_same_results_as_openvino(name: str, tmp_path: Path) -> None:
    inputs = NETWORKS[name][1]() if name in NETWORKS else CASES[name][1][0]
    ours, theirs = both(saved(name), tmp_path)
    found, wanted = (core().compile_model(path, "CPU", PLUGIN)(inputs) for path in (ours, theirs))
    here = [ir.compile_model(path)(inputs) for path in (ours, theirs)]
    for i in range(len(here[0])):
        assert_identical(found[i], wanted[i])
        assert_identical(here[0][i], here[1][i])


def test_nothing_is_stored_as_f16_unless_asked(tmp_path: Path) -> None:
    ir.save_model(ir.read_model(saved("plain_cnn")), tmp_path / "m.xml")
    assert "f16" not in (tmp_path / "m.xml").read_text()


def stored(values: object, tmp_path: Path, dtype: str = "f32", type: str = "Add") -> tuple[str, np.ndarray]:
    """Return the element type and the values of a constant in a saved file."""
    net = Net()
    count = np.size(values)
    says = "FP32" if dtype == "f32" else "FP64"
    x = net.parameter("x", str(count), dtype, out=f"{says} {count}")
    net.result(net.op(type, x, net.constant(values, dtype, name="c"), out=f"{says} {count}"))
    path = tmp_path / "m.xml"
    ir.save_model(ir.read_model(net.xml(), net.weights), path, compress_to_fp16=True)
    (constant,) = ir.read_model(path)._graph.of_type("Constant")
    return constant.op.element_type.label, constant.op.evaluate()


def test_numbers_beyond_f16_are_clipped(tmp_path: Path) -> None:
    element, numbers = stored([1, 2, 3, 4, 1e6, -np.inf, np.nan, 1e-9], tmp_path)
    assert element == "f16"
    np.testing.assert_array_equal(numbers, np.float16([1, 2, 3, 4, 65504, -65504, np.nan, 0]))


@pytest.mark.parametrize("most", [[1e6, 1e6, 1e6, 1], [1e-9, 1e-9, -1e-9, 1]])
def test_constants_that_f16_can_hardly_hold_stay(most: list[float], tmp_path: Path) -> None:
    assert stored(most, tmp_path)[0] == "f32"


def test_f64_is_stored_as_f16(tmp_path: Path) -> None:
    assert stored([1.5, 2.5], tmp_path, "f64")[0] == "f16"


def test_what_decides_a_shape_stays(tmp_path: Path) -> None:
    """1.1 rounds down in f16, and ten times that is no longer eleven."""
    net = Net()
    x = net.parameter("x", "1,1,10,10", out="FP32 1 1 10 10")
    scales, axes = net.constant([1.1, 1.1], "f32", name="scales"), net.constant([2, 3])
    how = {"mode": "nearest", "shape_calculation_mode": "scales", "version": "opset11"}
    net.result(net.op("Interpolate", x, scales, axes, out="FP32 1 1 11 11", name="y", **how))
    model = ir.read_model(net.xml(), net.weights)
    ir.save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
    again = ir.read_model(tmp_path / "m.xml")
    assert again.output().shape == [1, 1, 11, 11]
    assert again.constant("scales").dtype == np.float32
