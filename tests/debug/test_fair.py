"""No correct execution is accused, and each verdict has its reason."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from click.testing import CliRunner
from models import compressed, recurrent
from models.collection import saved

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.backends.common.dynamic_quantization import ActivationGroups, round_activations
from ir_runtime.cli import main
from ir_runtime.debug.openvino_side import OpenVINO
from ir_runtime.ir.tensor import Array

ROWS = np.random.default_rng(0).standard_normal((4, 128)).astype(np.float32)


class Device:
    """A side that computes with a function and reports given settings."""

    def __init__(self, function: Any, **said: Any) -> None:
        self.function, self.said = function, said

    def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        outputs = self.function(*feeds)
        return debug.Observation("device", outputs if isinstance(outputs, list) else [outputs], **self.said)


def exp() -> ir.Model:
    x = op.parameter([2], np.float32, name="x")
    return ir.Model([op.exp(x, name="y")], [x])


# --- what OpenVINO does by default -------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["openvino", "openvino:default"])
@pytest.mark.parametrize("name", ["int8", "uint8", "int4", "uint4", "nf4", "f16"])
def test_compressed_weights_are_no_difference(name: str, side: str) -> None:
    report = debug.compare(ir.read_model(saved(f"mlp_{name}")), ROWS, side)
    assert report.explained, str(report)
    exact = {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "INFERENCE_PRECISION_HINT": "f32"}
    assert (report.settings.items() >= exact.items()) == (side == "openvino")
    if side == "openvino":
        assert report.precision == "f32"


def test_quantized_activations_are_emulated_where_the_settings_say_so() -> None:
    weights = compressed.weights(96, 128)
    model = ir.read_model(saved("mlp_int8"))
    matrices = [node for node in model.get_ordered_ops() if node.type == "MatMul"]
    assert len(matrices) == 3
    x = ir.opset13.parameter([4, 128], np.float32, name="x")
    codes, scale = _int8(weights)
    product = op.matmul(
        x, op.multiply(op.convert(op.constant(codes), "f32"), op.constant(scale)), False, True
    )
    model = ir.Model([product], [x])

    def product_of(rows: Array) -> Array:
        rounded = round_activations(rows, ActivationGroups(1, 128, 32))
        return np.asarray(rounded @ (codes * scale).T, np.float32)

    quantizing = Device(product_of, settings={"DYNAMIC_QUANTIZATION_GROUP_SIZE": "32"})
    exact = Device(product_of, settings={"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"})
    report = debug.compare(model, ROWS, quantizing)
    assert report.explained, str(report)
    assert report.precision == "f32 with activations in 8 bits"
    assert debug.compare(model, ROWS, exact).verdict == "unexplained"
    wrong = Device(lambda rows: product_of(rows) * 1.1, settings={"DYNAMIC_QUANTIZATION_GROUP_SIZE": "32"})
    assert debug.compare(model, ROWS, wrong).verdict == "unexplained"


def _int8(weights: Array) -> tuple[Array, Array]:
    scale = np.abs(weights).max(1, keepdims=True) / 127
    return np.rint(weights / scale).astype(np.int8), scale.astype(np.float32)


def test_reduce_tries_settings_first() -> None:
    names = list(OpenVINO("default").variants())
    assert names[:3] == [
        "with INFERENCE_PRECISION_HINT=f32",
        "with DYNAMIC_QUANTIZATION_GROUP_SIZE=0",
        "with KV_CACHE_PRECISION=f32",
    ]
    assert list(OpenVINO("f32").variants()) == ["with one thread", "without fusion"]


# --- precisions are measured, not read from labels -----------------------------------------------------------------


def _in_bf16(*arrays: Array) -> list[Array]:
    return [array.astype(ml_dtypes.bfloat16).astype(np.float32) for array in arrays]


def test_a_label_that_is_wrong_is_no_fault() -> None:
    """A recurrent layer reported as f32 computes in bf16."""
    x = op.parameter([4, 128], np.float32, name="x")
    weights = compressed.weights(96, 128)
    model = ir.Model([op.matmul(x, op.constant(weights), False, True)], [x])

    def product(rows: Array, factor: float = 1.0) -> Array:
        a, b = _in_bf16(rows, weights)
        return _in_bf16(a @ b.T * np.float32(factor))[0]

    said: Mapping[str, Any] = {
        "asked": "bf16",
        "ran": ("f32",),
        "settings": {"INFERENCE_PRECISION_HINT": "bf16"},
    }
    report = debug.compare(model, ROWS, Device(product, **said))
    assert report.explained, str(report)
    assert report.precision == "bf16"
    assert debug.compare(model, ROWS, Device(lambda x: product(x, 1.1), **said)).verdict == "unexplained"
    # A fault of an execution in f32 is not taken for rounding in bf16, which is larger.
    faulty = Device(lambda x: (x @ weights.T) * np.float32(1 + 1e-4), **said)
    assert debug.compare(model, ROWS, faulty).verdict == "unexplained"


def test_f16_that_is_declared_hides_no_fault_of_a_side_in_f32() -> None:
    """f16 scales cause 3.5e-4 of rounding in the reference; a device that computes in f32 has less."""
    model = ir.read_model(saved("mlp_int8"))
    wide = np.float32(debug.oracle(model, ROWS).outputs[0])
    declared = ir.compile_model(model, backend="reference")(ROWS)[0]
    assert debug.compare(model, ROWS, [wide]).explained
    assert debug.compare(model, ROWS, [declared]).explained
    assert debug.compare(model, ROWS, [wide * np.float32(1 + 3e-5)]).verdict == "unexplained"


# --- overflow ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["reference", "numpy", "openvino"])
def test_what_exceeds_f32_is_an_overflow(side: str) -> None:
    report = debug.compare(exp(), np.float32([0, 100]), side)
    assert report.verdict == "overflow"
    assert report.summary.startswith("overflow: 'y' (Exp-1) overflows in f32: 2.7e+43 in f64")
    assert json.loads(report.to_json())["overflow"]["layer"] == "y"
    assert report.outputs[0].beyond == 1


def test_masks_that_overflow_are_explained() -> None:
    """Two masks of the lowest value add up to -inf in f32, with the same SoftMax."""
    x = op.parameter([2, 4], np.float32, name="x")
    least = np.float32([[0, 0, np.finfo(np.float32).min, 0]])
    model = ir.Model([op.softmax(op.add(op.add(x, op.constant(least)), op.constant(least)), 1)], [x])
    for side in ("reference", "numpy", "openvino"):
        report = debug.compare(model, ROWS[:2, :4], side)
        assert report.explained, str(report)
        assert report.overflow is not None


def test_a_convert_beyond_f16_is_an_overflow() -> None:
    x = op.parameter([3], np.float32, name="x")
    model = ir.Model([op.convert(x, "f16", name="half")], [x])
    for side in ("reference", "numpy", "openvino"):
        report = debug.compare(model, np.float32([1, 70000, 2]), side)
        assert report.verdict == "overflow", str(report)
        assert "'half' (Convert-1) overflows in f16" in report.summary


def test_zeros_of_an_overflow_are_no_rounding() -> None:
    """The sum of squares overflows f16, and its inverse is 0: that does not explain a device that returns zeros."""
    x = op.parameter([1, 8], np.float32, name="x")
    sum = op.reduce_sum(op.multiply(x, x, name="square"), op.constant([1]), True)
    model = ir.Model([op.divide(x, op.add(sum, op.constant(np.float32(1))))], [x])
    large = np.full((1, 8), 300, np.float32)
    zeros = [np.zeros((1, 8), np.float32)]
    report = debug.compare(model, large, zeros, precision="f16")
    assert report.verdict == "overflow", str(report)
    assert "'square' (Multiply-1) overflows in f16: 9e+04 in f64" in report.summary
    assert debug.compare(model, large, zeros).verdict == "unexplained"
    assert debug.compare(model, np.ones((1, 8), np.float32), zeros, precision="f16").verdict == "unexplained"


def test_a_row_that_is_masked_whole_is_an_overflow_in_bf16() -> None:
    x = op.parameter([1, 4], np.float32, name="x")
    mask = op.constant(np.full((1, 4), np.finfo(np.float32).min))
    model = ir.Model([op.softmax(op.add(x, mask, name="masked"), 1)], [x])
    rows = ROWS[:1, :4]
    for made in (np.full((1, 4), np.nan, np.float32), np.full((1, 4), 0.25, np.float32)):
        report = debug.compare(model, rows, [made], precision="bf16")
        assert report.verdict in ("explained", "overflow"), str(report)


# --- reasons -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (np.float32([1, np.nan]), "1 of 2 elements differ, first at [1]: NaN against 2.71828"),
        (np.float32([1]), "its shape is [1], not [2]"),
        (np.float32([1, -np.inf]), "1 of 2 elements differ, first at [1]: -Inf against 2.71828"),
    ],
)
def test_each_infinite_excess_has_a_reason(found: Array, reason: str) -> None:
    report = debug.compare(exp(), np.float32([0, 1]), [found])
    assert report.outputs[0].excess == np.inf
    assert report.outputs[0].reason == reason
    assert reason in str(report)


def test_what_is_moved_wrongly_and_integers_that_differ_have_reasons() -> None:
    x = op.parameter([2, 3], np.float32, name="x")
    model = ir.Model(
        [op.transpose(x, op.constant([1, 0]), name="turned"), op.convert(x, "i32", name="whole")], [x]
    )
    numbers = np.arange(6, dtype=np.float32).reshape(2, 3)
    turned, whole = numbers.T, numbers.astype(np.int32)
    report = debug.compare(model, numbers, {"turned": turned[::-1], 0: turned[::-1], 1: whole + 1})
    assert report.first_decision is not None
    assert report.first_decision.unexplained == 6
    (unit,) = report.units
    assert not unit.explained
    assert unit.reason == "4 of 6 elements differ, first at [0, 0]: 2 against 0"


# --- errors that blame others -----------------------------------------------------------------------------------------


def test_a_tensor_of_another_shape_is_that_of_the_side() -> None:
    """If the model leaves a dim dynamic, following layers are computed from tensors that fit."""
    x = op.parameter([-1, 4], np.float32, name="x")
    hidden = op.exp(op.matmul(x, op.constant(np.eye(4, dtype=np.float32)), False, False), name="hidden")
    model = ir.Model([op.add(hidden, x)], [x])
    rows = ROWS[:3, :4]
    right = np.exp(rows)
    report = debug.compare(model, rows, {"hidden": right[:2], 0: right + rows})
    assert report.verdict == "unexplained"
    assert report.first is not None
    assert report.first.reason == "its shape is [2, 4], not [3, 4]"


@pytest.mark.parametrize("side", ["numpy", "reference", "openvino"])
def test_an_output_that_nothing_reads_is_not_looked_at(side: str) -> None:
    x = op.parameter([2, 8], np.float32, name="x")
    halves = op.variadic_split(op.exp(x), op.constant(1), op.constant(np.array([4, 4])))
    model = ir.Model([op.tanh(halves.output(1))], [x])
    report = debug.compare(model, ROWS[:2, :8], side)
    assert report.explained, str(report)
    assert not any(unit.name.endswith(":0") for unit in report.units)


@pytest.mark.parametrize("name", ["gated", "tagger", "plain"])
def test_recurrent_layers_of_any_length_are_explained(name: str) -> None:
    model = ir.read_model(saved(f"{name}_of_any_length"))
    report = debug.compare(model, [recurrent.features(), recurrent.LENGTHS], "numpy")
    assert report.explained, str(report)


def test_the_length_of_a_range_is_a_decision() -> None:
    """Simulated rounding must not make it longer, nor move an exactly converted constant."""
    x = op.parameter([], np.float32, name="x")
    step = op.multiply(op.convert(op.constant(np.float16(0.5)), "f32"), x)
    numbers = op.range(
        op.constant(np.float32(0)), op.multiply(x, op.constant(np.float32(8))), step, "f32", name="range"
    )
    model = ir.Model([op.add(numbers, op.constant(np.arange(16, dtype=np.float32)))], [x])
    for side in ("reference", "numpy", "openvino"):
        report = debug.compare(model, [np.float32(0.7)], side)
        assert report.explained, str(report)


@pytest.mark.parametrize("rule", ["numpy", "pdpd"])
@pytest.mark.parametrize("name", ["floor_mod", "mod", "fake_quantize", "less"])
def test_decisions_of_operands_that_are_broadcast_are_judged(name: str, rule: str) -> None:
    x = op.parameter([2, 3, 1, 2], np.float32, name="x")
    shape = [2, 3, 1] if rule == "pdpd" else [3, 1, 1]
    y = op.constant(np.linspace(0.7, 1.3, int(np.prod(shape)), dtype=np.float32).reshape(shape))
    if name == "fake_quantize":
        result = op.fake_quantize(x, y, op.constant(np.float32(2)), y, op.constant(np.float32(2)), 16, rule)
    else:
        result = getattr(op, name)(x, y, auto_broadcast=rule)
    numbers = np.linspace(-3, 3, 12, dtype=np.float32).reshape(2, 3, 1, 2)
    for side in ("reference", "native"):
        report = debug.compare(ir.Model([result], [x]), [numbers], side)
        assert report.explained, str(report)


@pytest.mark.parametrize(("taken", "verdict"), [(12, "explained"), (13, "explained"), (14, "unexplained")])
def test_a_level_that_was_not_observed_may_be_either_where_rounding_leaves_it_open(
    taken: float, verdict: str
) -> None:
    """2.5 is a tie of the first FakeQuantize, which runtimes fuse with its consumer: 2 or 3, plus 10.2."""
    x = op.parameter([3], np.float32, name="x")
    zero, most = op.constant(np.float32(0)), op.constant(np.float32(255))
    y = op.add(op.fake_quantize(x, zero, most, zero, most, 256), op.constant(np.float32(10.2)))
    model = ir.Model([op.fake_quantize(y, zero, most, zero, most, 511, name="outer")], [x])
    report = debug.compare(model, np.float32([1, 2.5, 7]), {"outer": np.float32([11, taken, 17])})
    assert report.verdict == verdict, str(report)


# --- one verdict ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "verdict", "code"), [(1, "explained", 0), (1.01, "unexplained", 1)])
@pytest.mark.parametrize("as_json", [False, True])
def test_the_first_line_the_record_and_the_exit_code_agree(
    factor: float, verdict: str, code: int, as_json: bool, tmp_path: Path
) -> None:
    path = tmp_path / "net.xml"
    ir.save_model(exp(), path)
    np.save(tmp_path / "x.npy", np.float32([0, 1]))
    np.savez(tmp_path / "theirs.npz", **{"0": np.exp(np.float32([0, 1])) * np.float32(factor)})
    call = ["compare", str(path), "--results", str(tmp_path / "theirs.npz"), "-i", str(tmp_path / "x.npy")]
    done = CliRunner().invoke(main, [*call, *(["--json"] if as_json else [])])
    assert done.exit_code == code
    said = json.loads(done.stdout)["verdict"] if as_json else done.stdout.partition(":")[0]
    assert said == verdict


def test_what_is_explained_at_the_outputs_alone_is_not_explained() -> None:
    """A wrong inner tensor is a fault even if the outputs agree, and no line then says that all is explained."""
    x = op.parameter([2], np.float32, name="x")
    model = ir.Model([op.exp(op.abs(x, name="positive"))], [x])
    numbers = np.float32([0, 1])
    report = debug.compare(model, numbers, {"positive": numbers + 1, 0: np.exp(numbers)})
    assert report.verdict == "unexplained"
    assert str(report).startswith("unexplained: ")
    assert "explained: rounding explains" not in str(report)


def test_bisect_and_reduce_have_the_verdict_of_their_report() -> None:
    wrong = Device(lambda x: np.exp(x) * np.float32(1.5))
    for found in (
        debug.bisect(exp(), np.float32([0, 1]), wrong),
        debug.reduce(exp(), np.float32([0, 1]), wrong),
    ):
        assert str(found).startswith("unexplained: ")
        assert found.record()["verdict"] == "unexplained"


def test_openvino_says_what_it_ran_with() -> None:
    report = debug.compare(exp(), np.float32([0, 1]), "openvino")
    assert report.settings["version"] == ov.get_version().partition("-")[0]
    assert report.settings["DYNAMIC_QUANTIZATION_GROUP_SIZE"] == "0"
    assert json.loads(report.to_json())["side"]["settings"] == report.settings
    assert "openvino ran with version=" in str(report)


# --- functions, and decisions between two ends --------------------------------------------------------------------------


def test_functions_that_cancel_are_allowed_for() -> None:
    """1 + erf(x) has the rounding error of 1, which is large relative to the result."""
    x = op.parameter([64], np.float32, name="x")
    model = ir.Model([op.gelu(x, "erf")], [x])
    numbers = np.random.default_rng(0).uniform(-4, -2, 64).astype(np.float32)
    exact = debug.oracle(model, numbers).outputs[0]
    off = np.float32(exact + numbers * 2.0**-24)
    assert debug.compare(model, numbers, [off]).explained
    assert debug.compare(model, numbers, "openvino").explained
    other = ir.Model([op.gelu(x, "tanh")], [x])
    assert debug.compare(model, numbers, [ir.compile_model(other)(numbers)[0]]).verdict == "unexplained"


def test_levels_between_those_that_rounding_reaches_are_explained() -> None:
    """bf16 rounding moves an input by several levels: all levels between are explained, none beyond."""
    x = op.parameter([4], np.float32, name="x")
    low, high = op.constant(np.float32(-1.28)), op.constant(np.float32(1.27))
    model = ir.Model([op.fake_quantize(op.tanh(x), low, high, low, high, 256, name="levels")], [x])
    numbers = np.full(4, 3, np.float32)
    level = ir.compile_model(model)(numbers)[0]
    for levels, verdict in ((0, "explained"), (1, "explained"), (2, "explained"), (9, "unexplained")):
        found = level + np.float32(0.01 * levels)
        report = debug.compare(model, numbers, {"levels": found, 0: found}, precision="bf16")
        assert report.verdict == verdict, str(report)


def test_sums_over_an_axis_of_a_scalar_are_of_one_number() -> None:
    x = op.parameter([], np.float32, name="x")
    report = debug.compare(ir.Model([op.softmax(x, 0)], [x]), [np.float32(3)], "numpy")
    assert report.explained, str(report)


def test_one_result_shows_how_its_layer_computes() -> None:
    """A single bf16 element may be close to f64 by chance."""
    x = op.parameter([1, 64], np.float32, name="x")
    halves = op.split(
        op.matmul(x, op.constant(compressed.weights(64, 64)), False, True, name="product"), op.constant(1), 2
    )
    model = ir.Model(
        [op.topk(halves.output(0), op.constant(8), 1, "max", "value").output(0), halves.output(1)], [x]
    )
    assert len(model.outputs) == 2
    rows = ROWS[:1, :64]
    a, b = _in_bf16(rows, compressed.weights(64, 64))
    product = _in_bf16(a @ b.T)[0]
    top = np.sort(product[:, :32])[:, ::-1][:, :8]

    class Reported:
        def observe(self, model: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
            found = {port: product for port in ports if reference.graph[port.layer].name == "product"}
            return debug.Observation("device", [top, product[:, 32:]], found, "bf16", ("f32",))

    report = debug.compare(model, rows, Reported())
    assert report.verdict in ("explained", "doubtful"), str(report)
    assert report.first is None
