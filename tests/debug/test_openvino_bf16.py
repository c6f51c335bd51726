"""OpenVINO's bf16: observed without side effects, emulated, never accused; and faults in it are found."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.debugging import figures, needs_bf16, network, runs_bf16
from models.networks import NETWORKS
from models.zoo import example_inputs, ir_path

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.debug.openvino_side import OpenVINO
from ir_runtime.debug.precision import LIMITS, rounding_to

TRANSFORMERS = [
    "llama",
    "t5_encoder",
    "t5_decoder",
    "whisper_encoder",
    "whisper_decoder",
    "bert_base",
    "gpt2",
]


@pytest.fixture
def bf16() -> None:
    needs_bf16()


@pytest.mark.oracle
@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("name", TRANSFORMERS)
def test_transformers_are_observed_and_reproduced(name: str) -> None:
    found = figures(ir.read_model(ir_path(name)), example_inputs(name))
    assert found.report.explained, str(found.report)
    assert found.report.ran == ("bf16",)
    assert found.faithful >= 0.98
    assert found.compiles <= 3
    assert found.reproduced >= 0.9


@pytest.mark.oracle
@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("hint", ["bf16", "f16"])
@pytest.mark.parametrize("name", ["mobilenet_v2", "small_cnn", "squeezenet1_1", "lstm", "bilstm"])
def test_other_networks_are_explained(name: str, hint: str) -> None:
    report = debug.compare(ir.read_model(ir_path(name)), example_inputs(name), f"openvino:{hint}")
    assert report.explained, str(report)
    assert report.ran[0] == ("bf16" if runs_bf16(hint) else "f16")


@pytest.mark.usefixtures("bf16")
@pytest.mark.parametrize("hint", ["bf16", "f16"])
@pytest.mark.parametrize("name", NETWORKS)
def test_no_honest_rounding_is_accused(name: str, hint: str, tmp_path: Path) -> None:
    """Models run at f16 in bf16, as the report says, except on processors with AVX512-FP16."""
    model, inputs = network(name, tmp_path)
    report = debug.compare(model, inputs, f"openvino:{hint}")
    assert report.explained, str(report)
    if "bf16" in report.ran:
        assert ("note: f16 was asked for, bf16 ran" in str(report)) == (hint == "f16")


@pytest.mark.usefixtures("bf16")
def test_an_encoder_is_reproduced(tmp_path: Path) -> None:
    found = figures(*network("encoder", tmp_path))
    assert found.report.ran == ("bf16",)
    assert (found.faithful, found.compiles) == (1, 2)
    assert found.reproduced >= 0.9
    assert not found.far


@pytest.mark.usefixtures("bf16")
def test_what_goes_on_in_f32_is_not_taken_for_its_rounding() -> None:
    """After the last product OpenVINO keeps f32, which probes show as bf16: a Reshape of it is not faulty."""
    random = np.random.default_rng(0)
    x = op.parameter([2, 8, 16], np.float32, name="x")
    weights = op.constant(random.standard_normal((16, 32)).astype(np.float32))
    mean = op.reduce_mean(op.relu(op.matmul(x, weights, False, False)), op.constant([1]), True)
    model = ir.Model([op.reshape(mean, op.constant([2, 32]), False)], [x])
    report = debug.compare(model, random.standard_normal((2, 8, 16)).astype(np.float32), "openvino:bf16")
    assert report.ran == ("bf16",)
    assert report.explained, str(report)


@pytest.mark.usefixtures("bf16")
def test_a_wrong_weight_is_found_beside_the_rounding(tmp_path: Path) -> None:
    model, inputs = network("encoder", tmp_path)
    edited = model.clone()
    constant = next(node for node in edited.get_ops() if node.type == "Constant" and node.data.ndim == 2)
    readers = constant.output(0).get_target_inputs()
    changed = constant.data.copy()
    changed[3] *= 1.5
    for reader in readers:
        reader.replace_source_output(op.constant(changed).output(0))
    wrong = next(iter(readers)).get_node().friendly_name

    class Faulty:
        def observe(self, _: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
            return OpenVINO("bf16").observe(edited, reference, feeds, ports)

    report = debug.compare(model, inputs, Faulty())
    assert report.verdict == "unexplained"
    assert report.first is not None
    assert wrong in report.first.layers


@pytest.mark.parametrize("precision", ["bf16", "f16"])
def test_what_a_type_cannot_hold_is_its_largest_number_or_infinite(precision: str) -> None:
    """Attention masks have the lowest f32 value; runtimes convert it to either."""
    x = op.parameter([3], np.float32, name="x")
    model = ir.Model([op.multiply(x, np.float32(1), name="mask")], [x])
    numbers = np.float32([np.finfo(np.float32).min, 1, 0.3])
    rounded = rounding_to(precision)(numbers)
    assert np.isinf(rounded[0])
    clipped = np.where(np.isinf(rounded), np.float32(-LIMITS[precision]), rounded)
    for side in (rounded, clipped):
        report = debug.compare(model, numbers, {"mask": side, 0: clipped}, precision=precision)
        assert [unit.explained for unit in report.units] == [True], str(report)
        assert report.verdict == "overflow"
    report = debug.compare(model, numbers, {"mask": -rounded, 0: -clipped}, precision=precision)
    assert report.verdict == "unexplained"
