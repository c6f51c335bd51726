"""Quantized models: levels that rounding explains, and others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from models.quantized import asymmetric, bias, f32, symmetric
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime.debug.reference import Reference
from ir_runtime.ir.tensor import Array

X = np.random.default_rng(0).standard_normal((1, 8, 12, 12)).astype(np.float32)


def half_range(*shape: int) -> Any:
    """Return weights in the middle half of 255 levels, so that sums of two products fit 16 bits on any processor."""
    values = (np.random.default_rng(shape).standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(
        np.float32
    )
    high = 2 * np.abs(values).max((1, 2, 3), keepdims=True)
    limits = op.constant(-high), op.constant(high)
    return op.fake_quantize(op.constant(values), *limits, *limits, 255)


def conv(x: Any, channels: int, pad: int = 1) -> Any:
    weights = half_range(channels, 8, 3, 3)
    return op.add(op.convolution(x, weights, [1, 1], [pad, pad], [pad, pad], [1, 1]), bias(channels))


def saved(y: Any, x: Any, folder: Path) -> ir.Model:
    ov.save_model(ov.Model([y], [x]), folder / "net.xml", compress_to_fp16=False)
    return ir.read_model(folder / "net.xml")


def chain(folder: Path, low: float = 0, last: bool = True) -> ir.Model:
    x = op.parameter(list(X.shape), np.float32, name="x")
    limits = f32(low), f32(low + 3)
    y = op.fake_quantize(op.relu(conv(symmetric(x, 3), 8)), *limits, *limits, 256)
    y = op.swish(conv(y, 8))
    y = asymmetric(y, -0.5, 3) if last else y
    return saved(op.reduce_mean(y, op.constant([2, 3]), False), x, folder)


def test_int8_of_openvino_is_explained(tmp_path: Path) -> None:
    report = debug.compare(chain(tmp_path), X, "openvino")
    assert report.explained, str(report)
    assert set(report.ran) & {"i8", "u8"}
    assert any(decision.layers[-1] == decision.name for decision in report.decisions)


def test_a_zero_that_is_no_level_is_reduced_to_one_convolution(tmp_path: Path) -> None:
    """The plugin subtracts an integer from the levels, but the zero of -0.1 to 2.9 is level 8.5."""
    model = chain(tmp_path, -0.1, last=False)
    report = debug.compare(model, X, "openvino")
    assert report.verdict == "unexplained"
    found = debug.reduce(model, X, "openvino")
    types = [node.type for node in found.model.get_ops()]
    assert types.count("Convolution") == 1
    assert "FakeQuantize" in types
    assert found.report.verdict == "unexplained"


def quantize(folder: Path) -> ir.Model:
    """One layer with a step of 0.01, and of 1 in one channel."""
    x = op.parameter([1, 2, 3], np.float32, name="x")
    low, high = f32(-1.28, -128, rank=3), f32(1.27, 127, rank=3)
    return saved(op.fake_quantize(op.tanh(x), low, high, low, high, 256), x, folder)


def judged(model: ir.Model, x: Array, levels: float) -> debug.Comparison:
    """Compare with an execution whose first element is off by some levels."""
    reference = Reference(model)

    def side(inputs: list[Array], names: list[str]) -> dict[Any, Array]:
        found: dict[Any, Array] = {}

        def change(layer: Any, given: Any, outputs: tuple[Array, ...]) -> tuple[Array, ...]:
            if layer.type == "FakeQuantize":
                outputs = (outputs[0].copy(),)
                outputs[0][0, 0, 0] += np.float32(0.01 * levels)
            found[layer.name] = outputs[0]
            return outputs

        return dict(enumerate(reference.run(inputs, change))) | {n: found[n] for n in names if n in found}

    return debug.compare(model, x, side)


def test_levels_that_rounding_does_not_explain(tmp_path: Path) -> None:
    model = quantize(tmp_path)
    x = np.linspace(-0.5, 0.5, 6, dtype=np.float32).reshape(1, 2, 3)
    assert judged(model, x, 0).explained
    one, three = judged(model, x, 1), judged(model, x, 3)
    assert (one.verdict, three.verdict) == ("doubtful", "unexplained")
    (decision,) = three.decisions
    assert (decision.differ, decision.unexplained, decision.levels) == (1, 1, 3)
    assert decision.layers == (decision.name,)
    assert three.first_decision is decision
    assert "1 not explained by rounding, by 3 levels at most" in str(three)
    assert "by 1 level at most" in str(one)


@pytest.mark.parametrize(("offset", "verdict"), [(0, "explained"), (1e-4, "doubtful")])
def test_ties_are_explained(offset: float, verdict: str, tmp_path: Path) -> None:
    """Rounding decides at half a level, and nowhere else."""
    x = np.full((1, 2, 3), 0.1, np.float32)
    x[0, 0, 0] = np.arctanh(0.205 - offset)
    model = quantize(tmp_path)
    level = Reference(model).run([x])[0][0, 0, 0]
    assert judged(model, x, 1 if level < 0.205 else -1).verdict == verdict
