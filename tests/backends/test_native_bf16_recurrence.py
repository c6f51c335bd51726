"""Recurrent cells of the native backend in bf16: rounded inputs, states and weights, with f32 sums.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.oracle import rounded_to_bf16 as rounded
from harness.other_vectors import same_with_other_vectors

from ir_runtime.backends import Precision
from ir_runtime.backends.core.precision import within
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

KINDS = [("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False)]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
SIZES = (1, 3, 16, 17, 33, 70, 130)
BATCH, TIME = 5, 4


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param), backend.around():
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def states_of(kind: str, directions: int, hidden: int) -> list[Array]:
    return [numbers(BATCH, directions, hidden, seed=i) for i in range(1 + (kind == "LSTM"))]


def weights_of(kind: str, directions: int, inputs: int, hidden: int, after: bool) -> list[Array]:
    rows = GATES[kind] * hidden
    scale = np.float32(hidden**-0.5)
    return [
        numbers(directions, rows, inputs, seed=5), numbers(directions, rows, hidden, seed=6) * scale,
        numbers(directions, rows + after * hidden, seed=7),
    ]  # fmt: skip


def sequence(kind: str, hidden: int, after: bool, direction: str) -> Any:
    how = {"linear_before_reset": "true"} if after else {}
    return layer(f"{kind}Sequence-5", direction=direction, hidden_size=str(hidden), **how)


def kernel_of(op: Any, varying: list[Array], constant: list[Array]) -> Any:
    with within(Precision("bf16")):
        given = [Value.unknown(ElementType.from_dtype(x.dtype), PartialShape(x.shape)) for x in varying]
        kernel = backend.kernel(op, [*given, *map(Value.constant, constant)])
    assert kernel is not None
    assert kernel.name == "gemm_bf16"
    return kernel


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("hidden", SIZES)
@pytest.mark.parametrize(("kind", "after"), KINDS)
def test_a_step_multiplies_rounded_numbers(kind: str, after: bool, hidden: int, direction: str) -> None:
    """Operands of products are bf16; the summand of a GRU's new state is not rounded."""
    directions = 1 + (direction == "bidirectional")
    op, constant = sequence(kind, hidden, after, direction), weights_of(kind, directions, 7, hidden, after)
    x, lengths = numbers(BATCH, 1, 7, seed=9), np.ones(BATCH, np.int64)
    first, *others = states_of(kind, directions, hidden)
    first = rounded(first)
    w, r, b = constant
    wanted = op.evaluate(rounded(x), first, *others, lengths, rounded(w), rounded(r), b)
    varying = [x, first, *others, lengths]
    found = kernel_of(op, varying, constant)(*varying, *constant)
    bound = 2e-5
    if kind == "GRU" and not after:  # the state that it resets is rounded, too
        bound += 2.0**-9 * float(np.abs(r).sum(axis=2).max() * np.abs(first).max())
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=bound)


@pytest.mark.parametrize("hidden", SIZES)
@pytest.mark.parametrize(("kind", "after"), KINDS)
def test_a_sequence_is_its_steps(kind: str, after: bool, hidden: int) -> None:
    op, constant = sequence(kind, hidden, after, "forward"), weights_of(kind, 1, 6, hidden, after)
    x, states = numbers(BATCH, TIME, 6), states_of(kind, 1, hidden)
    lengths, once = np.full(BATCH, TIME), np.ones(BATCH, np.int64)
    kernel = kernel_of(op, [x, *states, lengths], constant)
    whole, *last = kernel(x, *states, lengths, *constant)
    for step in range(TIME):
        y, *states = kernel(np.ascontiguousarray(x[:, step : step + 1]), *states, once, *constant)
        np.testing.assert_array_equal(y[:, :, 0], whole[:, :, step])
    for state, end in zip(states, last, strict=True):
        np.testing.assert_array_equal(state, end)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
