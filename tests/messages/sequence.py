"""Messages for invalid attention, recurrent, CTC and one-hot layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal
from harness.sample import numbers

CELL = ("f32 ?,3", "f32 5,2", "f32 6,3", "f32 6,2", "f32 6")
SEQUENCE = ("f32 ?,?,3", "f32 ?,1,2", "i64 5", "f32 1,6,3", "f32 1,6,2", "f32 1,6")
DECODER = "CTCGreedyDecoderSeqLen-6"


def attention(name: str, *shapes: str, mask: str = "f32", causal: bool = False) -> Refusal:
    types = ("f32", "f32", "f32", mask, "f32")
    inputs = [f"{type} {shape}" for type, shape in zip(types, shapes, strict=False)]
    return refusal(name, "ScaledDotProductAttention-13", *inputs, causal=causal)


def cell(name: str, inputs: tuple[str, ...], **attributes: Any) -> Refusal:
    return refusal(name, "GRUCell-3", *inputs, **{"hidden_size": 2} | attributes)


def sequence(name: str, inputs: tuple[str, ...], direction: str = "forward", **attributes: Any) -> Refusal:
    return refusal(name, "GRUSequence-5", *inputs, hidden_size=2, direction=direction, **attributes)


def steps(name: str, lengths: Any, **more: Any) -> Refusal:
    arrays = (numbers(2, 1, 1), np.array(lengths), numbers(1, 1, 2), numbers(1, 1, 1), numbers(1, 1))
    attributes = {"hidden_size": 1, "direction": "forward"} | more
    return refusal(name, "RNNSequence-5", numbers(2, 4, 2), *arrays, **attributes)


def loss(name: str, *inputs: Any, logits: Any = "f32 1,3,4", **more: Any) -> Refusal:
    return refusal(name, "CTCLoss-4", logits, *inputs, **more)


def hot(name: str, depth: Any = 3, on_value: str = "f32", axis: int = 0) -> Refusal:
    return refusal(name, "OneHot-1", "i64 2", depth, on_value, "f32", axis=axis)


REFUSALS = [
    attention("rank of query", "2,4", "3,4", "3,2"),
    attention("features", "1,2,4", "1,3,5", "1,3,2"),
    attention("key transposed before", "1,2,4", "1,4,3", "1,3,2"),
    attention("keys and values", "1,2,4", "1,3,4", "1,4,2"),
    attention("batch of key", "2,2,4", "3,3,4", "1,3,2"),
    attention("batch of value", "2,2,4", "2,3,4", "3,3,2"),
    attention("batch of the mask", "2,2,4", "2,3,4", "2,3,2", "3,2,3"),
    attention("rank of the mask", "1,2,4", "1,3,4", "1,3,2", "3"),
    attention("lengths of the mask", "1,2,4", "1,3,4", "1,3,2", "1,2,4"),
    attention("type of the mask", "1,2,4", "1,3,4", "1,3,2", "1,2,3", mask="f16"),
    attention("several scales", "1,2,4", "1,3,4", "1,3,2", "", "2"),
    cell("batch of the state", ("f32 4,3", *CELL[1:])),
    cell("hidden_size", CELL, hidden_size=3),
    cell("biases", CELL, linear_before_reset=True),
    cell("weights of x", (*CELL[:2], "f32 6,4", *CELL[3:])),
    cell("gates", (*CELL[:3], "f32 8,2", *CELL[4:])),
    cell("rank of x", ("f32 5,1,3", *CELL[1:])),
    sequence("directions", SEQUENCE, "bidirectional"),
    sequence("batch of the lengths", ("f32 4,?,3", *SEQUENCE[1:])),
    sequence("too few activations", SEQUENCE, activations="tanh"),
    sequence("unknown activation", SEQUENCE, activations="tahn, relu"),
    sequence("unknown direction", SEQUENCE, "backward"),
    steps("steps beyond the end", [3, 5]),
    steps("steps below 0", [-1, 2]),
    steps("steps beyond the end when it runs", [3, 5], _run=True, _fed=(2,)),
    refusal("mask of time", "CTCGreedyDecoder-1", "f32 4,2,5", "f32 2,4"),
    refusal("rank of scores", "CTCGreedyDecoder-1", "f32 4,2", "f32 2,4"),
    refusal("no classes", "CTCGreedyDecoder-1", "f32 4,2,0", "f32 4,2"),
    refusal("batch of scores", DECODER, "f32 4,2,5", "i32 2"),
    refusal("several blanks", DECODER, "f32 4,2,5", "i32 4", "i32 2"),
    refusal("longer than the scores", DECODER, "f32 1,3,4", [4]),
    refusal("longer than the scores when it runs", DECODER, numbers(1, 3, 4), np.array([4]), _run=True),
    refusal("type of the classes", DECODER, "f32 4,2,5", "i32 4", classes_index_type="i8"),
    loss("shape of labels", "i32 1", "i32 1,4", "i32 1"),
    loss("logits beyond the end", [4], [[0, 0, 0]], [1]),
    loss("labels below 0", [3], [[0, 0, 0]], [-1]),
    loss("more labels than steps", [1], [[0, 0, 0]], [2]),
    loss("class of a label", [3], [[0, 4, 0]], [2]),
    loss("class of the blank", [3], [[0, 1, 0]], [2], 7),
    loss(
        "class of a label when it runs", [3], [[0, 4, 0]], [2],
        logits=numbers(1, 3, 4), _run=True, _fed=(1, 2, 3),
    ),
    hot("axis", axis=2),
    hot("depth below 0", -3),
    hot("depth that is no scalar", "i64 1"),
    hot("on_value that is no scalar", on_value="f32 1"),
]  # fmt: skip
