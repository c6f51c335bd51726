"""Small models for data sets: one with rows, one with a fixed batch size, one with state."""

from __future__ import annotations

import numpy as np

import ir_runtime as ov
from ir_runtime import opset13 as op


def dense(rows: int = -1, width: int = 6) -> ov.Model:
    """``scores = softmax(x @ w)``, and the sum of each row."""
    x = op.parameter([rows, width], np.float32, name="x")
    x.output(0).set_names({"x"})
    w = op.constant(np.random.default_rng(0).standard_normal((width, 4)).astype(np.float32))
    scores = op.softmax(op.matmul(x, w, False, False), 1)
    scores.output(0).set_names({"scores"})
    total = op.reduce_sum(x, op.constant(np.array([1])), keep_dims=False)
    total.output(0).set_names({"total"})
    return ov.Model([op.result(scores), op.result(total)], [x], "dense")


def two_inputs() -> ov.Model:
    """``x + y``."""
    x, y = (op.parameter([-1, 6], np.float32, name=name) for name in "xy")
    return ov.Model([op.result(op.add(x, y))], [x, y], "two")


def running_sum() -> ov.Model:
    """A running sum over steps, kept in a variable."""
    x = op.parameter([-1, 3], np.float32, name="x")
    x.output(0).set_names({"x"})
    zeros = op.multiply(x, op.constant(np.float32(0)))
    before = op.read_value(zeros, "total", np.float32, [-1, 3])
    after = op.add(before, x)
    after.output(0).set_names({"sum"})
    return ov.Model([op.result(after)], [op.assign(after, "total")], [x], "running_sum")


def rows(count: int, width: int = 6) -> np.ndarray:
    """Return rows of random values."""
    return np.random.default_rng(1).standard_normal((count, width)).astype(np.float32)


COUNT, BATCH = 44, 4
X = rows(COUNT)
