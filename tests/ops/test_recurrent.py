"""Recurrent cells and sequences: inference from partial shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import layer, values
from harness.sample import numbers

F32 = "f32 "


def shapes_of(name: str, *shapes: Any, **attributes: str) -> list[str]:
    op = layer(name, **{"hidden_size": "2"} | attributes)
    return [str(t.shape) for t in op.infer_types(*values(shapes))]


CELL = ("f32 ?,3", "f32 5,2", "f32 6,3", "f32 6,2", "f32 6")
SEQUENCE = ("f32 ?,?,3", "f32 ?,1,2", "i64 5", "f32 1,6,3", "f32 1,6,2", "f32 1,6")


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "expected"),
    [
        ("GRUCell-3", CELL, {}, ["[5,2]"]),
        ("GRUCell-3", CELL[:4], {}, ["[5,2]"]),
        ("GRUCell-3", ("f32 ...",) * 5, {}, ["[?,2]"]),
        ("GRUCell-3", (*CELL[:4], "f32 8"), {"linear_before_reset": "true"}, ["[5,2]"]),
        ("RNNCell-1", ("f32 1..4,3", "f32 2..8,2", "f32 2,3", "f32 ?,?", "f32 2"), {}, ["[2..4,2]"]),
        ("LSTMCell-1", ("f32 4,3", "f32 ...", "f32 ...", "f32 8,3", "f32 8,2"), {}, ["[4,2]", "[4,2]"]),
        ("LSTMCell-4", ("f32 ...", "f32 ...", "f32 4,2", "f32 8,3", "f32 8,2"), {}, ["[4,2]", "[4,2]"]),
        ("GRUSequence-5", SEQUENCE, {"direction": "forward"}, ["[5,1,?,2]", "[5,1,2]"]),
        ("GRUSequence-5", ("f32 ...",) * 2 + ("i64 ...",) + ("f32 ...",) * 3, {"direction": "bidirectional"},
         ["[?,2,?,2]", "[?,2,2]"]),
        ("LSTMSequence-5", ("f32 ?,7,?", "f32 ...", "f32 ?,?,?", "i32 ?", "f32 1,8,?", "f32 ...", "f32 ..."),
         {"direction": "reverse"}, ["[?,1,7,2]", "[?,1,2]", "[?,1,2]"]),
    ],
)  # fmt: skip
def test_inferred_from_little(
    name: str, shapes: tuple[str, ...], attributes: dict[str, str], expected: list[str]
) -> None:
    assert shapes_of(name, *shapes, **attributes) == expected


def test_functions_are_those_of_the_page_by_default() -> None:
    assert layer("LSTMCell-4", hidden_size="2").activations == ("sigmoid", "tanh", "tanh")
    assert layer("GRUCell-3", hidden_size="2").activations == ("sigmoid", "tanh")
    assert layer("RNNCell-1", hidden_size="2", activations="ReLU").activations == ("relu",)


@pytest.mark.parametrize(("name", "gates"), [("GRUCell-3", 3), ("LSTMCell-4", 4)])
@pytest.mark.parametrize("extra", [{}, {"linear_before_reset": "true"}])
def test_biases_that_are_absent_are_zeros(name: str, gates: int, extra: dict[str, str]) -> None:
    """The specification makes them optional; OpenVINO does not read such a layer."""
    op = layer(name, hidden_size="2", **extra if gates == 3 else {})
    states = [numbers(4, 2, seed=i) for i in range(gates - 2)]
    arrays = (numbers(4, 3), *states, numbers(2 * gates, 3), numbers(2 * gates, 2))
    zeros = np.zeros(2 * gates + 2 * ("linear_before_reset" in extra and gates == 3), "f4")
    np.testing.assert_array_equal(op.evaluate(*arrays), op.evaluate(*arrays, zeros))


@pytest.mark.parametrize(("name", "gates"), [("RNN", 1), ("GRU", 3), ("LSTM", 4)])
def test_a_sequence_is_its_cell_step_by_step(name: str, gates: int) -> None:
    batch, time, inputs, hidden = 2, 5, 3, 2
    x = numbers(batch, time, inputs)
    states = [numbers(batch, 1, hidden, seed=i) for i in range(1 + (name == "LSTM"))]
    shapes = ((gates * hidden, inputs), (gates * hidden, hidden), (gates * hidden,))
    weights = [numbers(*shape, low=-1, high=1) for shape in shapes]
    cell = layer(f"{name}Cell-{ {'RNN': 1, 'GRU': 3, 'LSTM': 4}[name] }", hidden_size=str(hidden))
    whole = layer(f"{name}Sequence-5", hidden_size=str(hidden), direction="forward")
    y, *last = whole.evaluate(x, *states, np.full(batch, time), *(w[None] for w in weights))
    now = [state[:, 0] for state in states]
    for step in range(time):
        found = cell.evaluate(np.ascontiguousarray(x[:, step]), *now, *weights)
        now = list(found) if isinstance(found, tuple) else [found]
        np.testing.assert_allclose(y[:, 0, step], now[0], rtol=1e-5, atol=1e-6)
    for state, wanted in zip(last, now, strict=True):
        np.testing.assert_allclose(state[:, 0], wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["RNN", "GRU", "LSTM"])
def test_sequences_without_a_step_end_in_zeros(name: str) -> None:
    gates = {"RNN": 1, "GRU": 3, "LSTM": 4}[name]
    states = [numbers(2, 1, 3)] * (1 + (name == "LSTM"))
    weights = numbers(1, 3 * gates, 2), numbers(1, 3 * gates, 3), numbers(1, 3 * gates)
    op = layer(f"{name}Sequence-5", hidden_size="3", direction="reverse")
    y, *last = op.evaluate(np.zeros((2, 0, 2), "f4"), *states, np.zeros(2, "i8"), *weights)
    assert y.shape == (2, 1, 0, 3)
    assert not any(state.any() for state in last)
