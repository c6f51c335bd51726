"""Recurrent layers of models converted to f16, as OpenVINO does with AVX512-FP16: f32 arithmetic with rounded weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from harness.debugging import needs_bf16

import ir_runtime as ir
from ir_runtime import debug, opset5
from ir_runtime import opset13 as op
from ir_runtime.debug.openvino_side import OpenVINO
from ir_runtime.debug.precision import rounding_to
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array

KINDS = [
    ("RNN", "forward"), ("GRU", "forward"), ("LSTM", "forward"), ("LSTM", "bidirectional"),
]  # fmt: skip
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
HIDDEN, TIME, INPUTS = 48, 60, 20
rounded = rounding_to("f16")


def inputs() -> Array:
    return np.random.default_rng(0).standard_normal((2, TIME, INPUTS)).astype(np.float32)


def weights(kind: str, directions: int) -> list[Array]:
    """Return the input and recurrent weights, the biases, and the weights of the following layer."""
    random, rows = np.random.default_rng(1), GATES[kind] * HIDDEN
    shapes = (
        (directions, rows, INPUTS),
        (directions, rows, HIDDEN),
        (directions, rows),
        (directions * HIDDEN, 9),
    )
    return [(random.standard_normal(shape) * HIDDEN**-0.5).astype(np.float32) for shape in shapes]


def tagger(kind: str, direction: str, given: Sequence[Array]) -> tuple[ir.Model, Any]:
    """Return a recurrent layer with a following product, and the states of all steps."""
    *trained, last = given
    directions = len(trained[0])
    x = op.parameter([2, TIME, INPUTS], np.float32, name="x")
    start = op.constant(np.zeros((2, directions, HIDDEN), np.float32))
    states = [start] * (1 + (kind == "LSTM"))
    made = getattr(opset5, f"{kind.lower()}_sequence")
    way = direction.upper() if kind == "LSTM" else direction
    sequence = made(x, *states, op.constant([TIME] * 2), *map(op.constant, trained), HIDDEN, way)
    y = op.transpose(sequence.output(0), op.constant([0, 2, 1, 3]))
    y = op.reshape(y, op.constant([2 * TIME, directions * HIDDEN]), False)
    return ir.Model([op.relu(op.matmul(y, op.constant(last), False, False))], [x]), sequence


class Converted:
    """A device that gets the model in f16 and computes its recurrent layers in f32, with weights of its own."""

    def __init__(self, kind: str, direction: str, given: Sequence[Array]) -> None:
        model, sequence = tagger(kind, direction, list(map(rounded, given)))
        self.states = ir.compile_model(
            ir.Model([sequence.output(0)], model.get_parameters()), backend="reference"
        )
        self.last = rounded(given[-1])

    def observe(self, _: Any, reference: Any, feeds: Sequence[Array], ports: Any) -> debug.Observation:
        (layer,) = (layer for layer in reference.graph if layer.type.endswith("Sequence"))
        states = rounded(np.asarray(self.states(rounded(feeds[0]))[0]))
        rows = states.transpose(0, 2, 1, 3).reshape(2 * TIME, -1)
        output = rounded(np.maximum(rows @ self.last, 0))
        seen = {Port(layer.id, 0): states}
        in_f32 = (layer.id,)
        return debug.Observation("device", [output], seen, "f16", ("f16", "f32"), wide=in_f32, held=in_f32)


@pytest.mark.parametrize(("kind", "direction"), KINDS)
def test_rounded_weights_are_explained_and_wrong_ones_are_not(kind: str, direction: str) -> None:
    right = weights(kind, 1 + (direction == "bidirectional"))
    model, sequence = tagger(kind, direction, right)
    report = debug.compare(model, inputs(), Converted(kind, direction, right))
    assert report.explained, str(report)
    assert max(unit.excess for unit in report.units) < 1.5
    wrong = [array.copy() for array in right]
    wrong[1][0, 3] *= 1.5
    report = debug.compare(model, inputs(), Converted(kind, direction, wrong))
    assert report.verdict == "unexplained", str(report)
    assert report.first is not None
    assert sequence.friendly_name in report.first.layers


class Faulty:
    """OpenVINO with a wrong row of recurrent weights."""

    def __init__(self, model: ir.Model, shape: tuple[int, ...]) -> None:
        self.model = model.clone()
        constant = next(
            node for node in self.model.get_ops() if node.type == "Constant" and node.data.shape == shape
        )
        changed = constant.data.copy()
        changed[0, 3] *= 1.5
        for reader in constant.output(0).get_target_inputs():
            reader.replace_source_output(op.constant(changed).output(0))

    def observe(self, _: Any, reference: Any, feeds: Any, ports: Any) -> debug.Observation:
        return OpenVINO("f16").observe(self.model, reference, feeds, ports)


@pytest.mark.oracle
@pytest.mark.parametrize(("kind", "direction"), KINDS)
def test_openvino_is_explained_and_a_wrong_weight_in_it_is_not(kind: str, direction: str) -> None:
    needs_bf16()
    right = weights(kind, 1 + (direction == "bidirectional"))
    model, _ = tagger(kind, direction, right)
    report = debug.compare(model, inputs(), "openvino:f16")
    assert report.explained, str(report)
    if "f16" in report.ran:  # in bf16, such a fault is not above the rounding
        report = debug.compare(model, inputs(), Faulty(model, right[1].shape))
        assert report.verdict == "unexplained", str(report)
