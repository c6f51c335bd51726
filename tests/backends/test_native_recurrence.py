"""Recurrent cells of the fast backends, alone and along sequences of any length, against the reference.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends import Backend, native, numpy
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.threading import parallel
from ir_runtime.backends.numpy.kernels import recurrence as planned
from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

quick = settings(max_examples=8 if AGAIN in os.environ else 40, deadline=None)

GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}
USUAL = {"RNN": "tanh", "GRU": "sigmoid,tanh", "LSTM": "sigmoid,tanh,tanh"}
OTHER = {"RNN": "relu", "GRU": "tanh,relu", "LSTM": "relu,sigmoid,sigmoid"}
# One number, fewer than a vector, all kinds of panels, and more than one panel.
SIZES = (1, 3, 16, 17, 33, 64, 70, 100)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        with at_most(request.param), backend.around():
            yield


def numbers(*shape: int, seed: int = 0, scale: float = 1) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32) * np.float32(scale)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.from_dtype(x.dtype), PartialShape.dynamic(x.ndim))


def listed(found: Any) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


def agree(op: Any, varying: list[Array], constant: list[Array], backend: Backend = native.backend) -> None:
    """Compare with the reference for any layout of the inputs, which stay unchanged."""
    known = [Value.unknown(ElementType.from_dtype(x.dtype), PartialShape(x.shape)) for x in varying]
    wanted = op.evaluate(*varying, *constant)
    apart = [np.repeat(x, 2, axis=-1)[..., ::2] for x in varying]
    for values in (known, [*map(unknown, varying)]):
        run = backend.kernel(op, [*values, *map(Value.constant, constant)])
        assert run is not None
        for inputs in (varying, apart):
            for x in inputs:
                x.setflags(write=False)
            found = run(*inputs, *constant)
            for ours, theirs in zip(listed(found), listed(wanted), strict=True):
                assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
                np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=1e-5)


def weights(kind: str, directions: int, inputs: int, hidden: int, after: bool) -> list[Array]:
    gates = GATES[kind]
    return [
        numbers(directions, gates * hidden, inputs, seed=1, scale=0.3),
        numbers(directions, gates * hidden, hidden, seed=2, scale=hidden**-0.5),
        numbers(directions, (gates + after) * hidden, seed=3),
    ]


def attributes(kind: str, hidden: int, clip: float, usual: bool, after: bool) -> dict[str, str]:
    found = {"hidden_size": str(hidden), "clip": str(clip), "activations": (USUAL if usual else OTHER)[kind]}
    return found | ({"linear_before_reset": "true"} if after else {})


kinds = st.sampled_from([("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False)])
clips = st.sampled_from([0, 0.4])


@quick
@given(
    kinds, st.sampled_from(["forward", "reverse", "bidirectional"]), st.sampled_from([1, 2, 8, 45]),
    st.sampled_from(SIZES), st.integers(1, 5), st.integers(1, 9), clips, st.booleans(), st.data(),
)  # fmt: skip
def test_sequences(
    kind: tuple[str, bool], direction: str, batch: int, hidden: int, time: int, inputs: int, clip: float,
    usual: bool, data: st.DataObject,
) -> None:  # fmt: skip
    name, after = kind
    directions = 1 + (direction == "bidirectional")
    op = layer(f"{name}Sequence-5", direction=direction, **attributes(name, hidden, clip, usual, after))
    whole = data.draw(st.booleans())
    lengths = np.array([time if whole else data.draw(st.integers(0, time)) for _ in range(batch)])
    states = [numbers(batch, directions, hidden, seed=i) for i in range(1 + (name == "LSTM"))]
    varying = [numbers(batch, time, inputs), *states, lengths]
    constant = weights(name, directions, inputs, hidden, after)
    agree(op, varying, constant)
    if usual and not clip and AGAIN not in os.environ:
        agree(op, varying, constant, numpy.backend)


@quick
@given(kinds, st.sampled_from([1, 2, 8, 45]), st.sampled_from(SIZES), st.integers(1, 9), clips, st.booleans())
def test_cells(
    kind: tuple[str, bool], batch: int, hidden: int, inputs: int, clip: float, usual: bool
) -> None:
    name, after = kind
    op = layer(
        {"RNN": "RNNCell-1", "GRU": "GRUCell-3", "LSTM": "LSTMCell-4"}[name],
        **attributes(name, hidden, clip, usual, after),
    )
    states = [numbers(batch, hidden, seed=i) for i in range(1 + (name == "LSTM"))]
    constant = [array[0] for array in weights(name, 1, inputs, hidden, after)]
    agree(op, [numbers(batch, inputs), *states], constant)


@pytest.mark.parametrize("name", GATES)
def test_nan_and_infinity_stay_in_their_sequence(name: str) -> None:
    op = layer(f"{name}Sequence-5", direction="reverse", **attributes(name, 20, 0, True, False))
    x = numbers(4, 5, 3)
    x[0, 2, 1], x[1, 0, 0], x[2, 4, 2], x[3, 1] = np.nan, np.inf, -np.inf, 1e30
    states = [numbers(4, 1, 20, seed=i) for i in range(1 + (name == "LSTM"))]
    agree(op, [x, *states, np.array([5, 5, 4, 3])], weights(name, 1, 3, 20, False))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.parametrize("batch", [1, 3])
def test_states_large_enough_for_multithreaded_blas(
    name: str, batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planned, "MIN_MULTITHREADED_SIZE", 0)
    op = layer(f"{name}Sequence-5", direction="forward", **attributes(name, 300, 0, True, False))
    states = [numbers(batch, 1, 300, seed=i) for i in range(1 + (name == "LSTM"))]
    varying = [numbers(batch, 6, 3), *states, np.full(batch, 6)]
    agree(op, varying, weights(name, 1, 3, 300, False), numpy.backend)


def test_empty_batches_and_sequence_lengths_out_of_range() -> None:
    op = layer("GRUSequence-5", direction="forward", **attributes("GRU", 8, 0, True, False))
    constant = weights("GRU", 1, 3, 8, False)
    agree(op, [numbers(0, 4, 3), numbers(0, 1, 8), np.zeros(0, np.int64)], constant)
    x, hidden, lengths = numbers(2, 4, 3), numbers(2, 1, 8), np.array([1, 5])
    run = backend.kernel(op, [*map(unknown, (x, hidden, lengths)), *map(Value.constant, constant)])
    assert run is not None
    with pytest.raises(InferenceError, match="sequence_lengths holds 5"):
        run(x, hidden, lengths, *constant)
    for wrong in ([x, hidden[:1], lengths[:1]], [x[:, :, :2], hidden, lengths[:1]]):
        with pytest.raises((ValueError, IndexError)):
            run(*wrong, *constant)


def test_activations_of_the_second_direction_are_ignored() -> None:
    how = {"hidden_size": "8", "direction": "bidirectional", "activations": f"{USUAL['LSTM']},relu,relu,relu"}
    states = [numbers(2, 2, 8, seed=i) for i in range(2)]
    for each in (native.backend, numpy.backend):
        op = layer("LSTMSequence-5", **how)
        agree(op, [numbers(2, 4, 3), *states, np.array([4, 4])], weights("LSTM", 2, 3, 8, False), each)


def test_cells_with_unusual_gates_are_left_to_the_reference() -> None:
    inputs = [numbers(2, 3), numbers(2, 8), numbers(2, 8)]
    constant = [array[0] for array in weights("LSTM", 1, 3, 8, False)]
    known = [*map(unknown, inputs), *map(Value.constant, constant)]
    usual = attributes("LSTM", 8, 0, True, False)
    assert backend.kernel(layer("LSTMCell-1", **usual), known) is not None
    assert backend.kernel(layer("LSTMCell-1", weights_format="icof", **usual), known) is None
    assert backend.kernel(layer("LSTMCell-1", input_forget="true", **usual), known) is None


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
