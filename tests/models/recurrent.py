"""Recurrent networks as written by converters, built with OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ir_runtime.ir.tensor import Array
from models.networks import weights

BATCH, TIME, FEATURES, HIDDEN, CLASSES = 3, 7, 5, 8, 6
GATES = {"lstm": 4, "gru": 3, "rnn": 1}
FUNCTIONS = {"lstm": ["sigmoid", "tanh", "tanh"], "gru": ["sigmoid", "tanh"], "rnn": ["tanh"]}
LENGTHS = np.array([7, 2, 4])


def features(batch: int = BATCH, time: int = TIME) -> Array:
    return np.random.default_rng(time).standard_normal((batch, time, FEATURES)).astype(np.float32)


def parameter(shape: list[int], dtype: Any, name: str) -> Any:
    made = op.parameter(shape, dtype, name)
    made.output(0).tensor.names = {name}
    return made


def state(x: Any, directions: int) -> Any:
    """Zeros for each batch entry, from the shape of the input: [batch, directions, hidden]."""
    batch = op.gather(op.shape_of(x, "i64"), op.constant(np.array([0])), op.constant(np.array(0)))
    wanted = op.concat([batch, op.constant(np.array([directions, HIDDEN]))], 0)
    return op.broadcast(op.constant(np.float32(0)), wanted)


def layer(kind: str, x: Any, lengths: Any, inputs: int, direction: str = "forward", **more: Any) -> Any:
    """A recurrent layer over [batch, time, inputs], as converters write it."""
    directions, gates = 1 + (direction == "bidirectional"), GATES[kind]
    biases = gates + bool(more.get("linear_before_reset"))
    start = [state(x, directions) for _ in range(1 + (kind == "lstm"))]
    shapes = ((gates * HIDDEN, inputs), (gates * HIDDEN, HIDDEN), (biases * HIDDEN,))
    trained = [weights(directions, *shape) for shape in shapes]
    make = getattr(op, f"{kind}_sequence") if kind != "rnn" else ov.opset5.rnn_sequence
    return make(x, *start, lengths, *trained, HIDDEN, direction, activations=FUNCTIONS[kind], **more)


def merged(y: Any, directions: int) -> Any:
    """[batch, directions, time, hidden] to [batch, time, directions * hidden]."""
    turned = op.transpose(y, op.constant(np.array([0, 2, 1, 3])))
    return op.reshape(turned, op.constant(np.array([0, 0, directions * HIDDEN])), True)


def tagger(batch: int, time: int) -> ov.Model:
    """Two bidirectional LSTM layers over variable-length sequences, and a class for each element."""
    x = parameter([batch, time, FEATURES], np.float32, "x")
    lengths = parameter([batch], np.int64, "lengths")
    first = layer("lstm", x, lengths, FEATURES, "bidirectional")
    second = layer("lstm", merged(first.output(0), 2), lengths, 2 * HIDDEN, "bidirectional")
    scores = op.matmul(merged(second.output(0), 2), weights(CLASSES, 2 * HIDDEN), False, True)
    last = [op.result(second.output(i)) for i in (1, 2)]
    return ov.Model([op.result(op.softmax(scores, -1)), *last], [x, lengths], "tagger")


def gated(batch: int, time: int) -> ov.Model:
    """A GRU with linear_before_reset, a reversed one without, and their last states."""
    x = parameter([batch, time, FEATURES], np.float32, "x")
    lengths = parameter([batch], np.int64, "lengths")
    first = layer("gru", x, lengths, FEATURES, linear_before_reset=True)
    second = layer("gru", merged(first.output(0), 1), lengths, HIDDEN, "reverse", clip=0.9)
    outputs = [op.result(first.output(1)), op.result(second.output(0)), op.result(second.output(1))]
    return ov.Model(outputs, [x, lengths], "gated")


def plain(batch: int, time: int) -> ov.Model:
    """A bidirectional RNN, and the mean of its states over time."""
    x = parameter([batch, time, FEATURES], np.float32, "x")
    lengths = parameter([batch], np.int64, "lengths")
    found = layer("rnn", x, lengths, FEATURES, "bidirectional")
    mean = op.reduce_mean(merged(found.output(0), 2), op.constant(np.array([1])), False)
    return ov.Model([op.result(mean), op.result(found.output(1))], [x, lengths], "plain")


def reader(batch: int, time: int) -> ov.Model:
    """The head of a text recognizer: an LSTM, classes, and greedy CTC decoding, by lengths and by masks."""
    x = parameter([batch, time, FEATURES], np.float32, "x")
    lengths = parameter([batch], np.int64, "lengths")
    found = layer("lstm", x, lengths, FEATURES)
    scores = op.matmul(merged(found.output(0), 1), weights(CLASSES, HIDDEN), False, True)
    by_length = op.ctc_greedy_decoder_seq_len(scores, lengths, op.constant(np.array(CLASSES - 1)))
    steps = op.range(op.constant(0), op.constant(time), op.constant(1), "i64")
    behind = op.less(op.unsqueeze(steps, op.constant(1)), op.unsqueeze(lengths, op.constant(0)))
    in_time = op.transpose(scores, op.constant(np.array([1, 0, 2])))
    by_mask = op.ctc_greedy_decoder(in_time, op.convert(behind, "f32"), True)
    found = [op.result(by_length.output(i)) for i in (0, 1)]
    return ov.Model([*found, op.result(by_mask)], [x, lengths], "reader")


def cells() -> ov.Model:
    """Three LSTM cells, a GRU cell and an RNN cell in a chain."""
    x = parameter([BATCH, FEATURES], np.float32, "x")
    hidden = cell = op.constant(np.zeros((BATCH, HIDDEN), np.float32))
    for step in range(3):
        trained = [weights(4 * HIDDEN, FEATURES), weights(4 * HIDDEN, HIDDEN), weights(4 * HIDDEN)]
        made = op.lstm_cell(x, hidden, cell, *trained, HIDDEN, clip=0.8 if step else 0.0)
        hidden, cell = made.output(0), made.output(1)
    gru = op.gru_cell(
        x, hidden, weights(3 * HIDDEN, FEATURES), weights(3 * HIDDEN, HIDDEN), weights(3 * HIDDEN), HIDDEN
    )
    plain = ov.opset3.rnn_cell(
        gru,
        hidden,
        weights(HIDDEN, HIDDEN),
        weights(HIDDEN, HIDDEN),
        weights(HIDDEN),
        HIDDEN,
        ["relu"],
        [],
        [],
    )
    return ov.Model([op.result(plain), op.result(cell)], [x], "cells")


NETWORKS: tuple[Callable[[int, int], ov.Model], ...] = (tagger, gated, plain, reader)


def saved(build: Callable[[int, int], ov.Model], folder: Path, batch: int = BATCH, time: int = TIME) -> Path:
    path = folder / "model.xml"
    ov.save_model(build(batch, time), path, compress_to_fp16=False)
    return path
