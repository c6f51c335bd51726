"""Other kernels of the NumPy backend against the reference: odd shapes, special values, any memory layout."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.kernels import SPECIAL, agree, layouts, numbers, same, unknown
from harness.layers import layer

from ir_runtime.backends.common import activations
from ir_runtime.backends.common.layout import flat_view
from ir_runtime.backends.numpy import backend, parallel
from ir_runtime.backends.numpy.kernels import _gemm, matmul, sdpa
from ir_runtime.backends.numpy.parallel import multithreaded_blas
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.activation import Sigmoid, Swish

pytestmark = pytest.mark.usefixtures("one_and_three_threads")


@pytest.mark.parametrize("slope", [0.25, 1.0, 3.0])
@pytest.mark.parametrize("shape", [(1, 5, 7, 3), (0, 4), (70000,)])
def test_prelu(slope: float, shape: tuple[int, ...]) -> None:
    agree(layer("PReLU-1"), numbers(*shape, special=True), np.array([slope], np.float32))


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize(
    ("batch", "time", "inputs", "hidden"), [(1, 5, 3, 4), (2, 7, 9, 16), (5, 1, 2, 24), (0, 3, 2, 8)]
)
@pytest.mark.parametrize("shorter", [0, 1])
def test_lstm(direction: str, batch: int, time: int, inputs: int, hidden: int, shorter: int) -> None:
    passes = 2 if direction == "bidirectional" else 1
    op = layer("LSTMSequence-5", hidden_size=str(hidden), direction=direction)
    states = [numbers(batch, passes, hidden, seed=seed) for seed in (1, 2)]
    lengths = np.full(batch, time, np.int64)
    lengths[:1] -= shorter
    weights = [numbers(passes, 4 * hidden, n, seed=n) for n in (inputs, hidden)]
    biases = numbers(passes, 4 * hidden)
    arrays = [numbers(batch, time, inputs), *states, lengths, *weights, biases]
    values = [*map(unknown, arrays[:4]), *map(Value.constant, arrays[4:])]
    kernel = backend.kernel(op, values)
    assert kernel is not None
    for array in arrays:
        array.setflags(write=False)
    for found, wanted in zip(kernel(*arrays), op.evaluate(*arrays), strict=True):
        same(found, wanted)


ACTIVATIONS: dict[str, dict[str, str]] = {
    "ReLU-1": {},
    "Clamp-1": {"min": "-0.5", "max": "1.25"},
    "Sigmoid-1": {},
    "Swish-4": {},
    "HSwish-4": {},
    "HSigmoid-5": {},
    "Gelu-2": {},
    "Gelu-7": {"approximation_mode": "tanh"},
}


@pytest.mark.parametrize("name", ACTIVATIONS)
@pytest.mark.parametrize("shape", [(), (0,), (12,), (3, 5, 7), (2, 3, 4, 5), (70001,)], ids=str)
def test_activation(name: str, shape: tuple[int, ...]) -> None:
    op = layer(name, **ACTIVATIONS[name])
    agree(op, 3 * numbers(*shape))
    agree(op, numbers(*shape, special=True))
    agree(op, np.resize(SPECIAL, shape))


def test_gelu_is_accurate_to_f32() -> None:
    x = np.linspace(-9, 9, 100001, dtype=np.float32)
    kernel = backend.kernel(layer("Gelu-7"), [unknown(x)])
    assert kernel is not None
    exact = layer("Gelu-7").evaluate(x.astype(np.float64))
    with np.errstate(over="ignore"):  # as in a run
        assert np.abs(kernel(x) - exact).max() < 1e-6


@pytest.mark.parametrize("name", ["Add-1", "Subtract-1", "Multiply-1"])
@pytest.mark.parametrize(
    "shape",
    [(), (1,), (5,), (1, 3, 1, 1), (3, 1, 1), (2, 3, 4, 5), (4, 1), (1, 1, 1, 1, 5), (2, 1, 1, 1)],
    ids=str,
)
def test_arithmetic(name: str, shape: tuple[int, ...]) -> None:
    op, x, c = layer(name), numbers(2, 3, 4, 5, special=True), numbers(*shape, seed=1)
    agree(op, x, c)
    left = backend.kernel(op, [Value.constant(c), unknown(x)])
    assert left is not None
    for stored in layouts(x):
        with np.errstate(all="ignore"):
            same(left(c, stored), op.evaluate(c, stored))


@pytest.mark.parametrize("transpose", ["true", "false"])
@pytest.mark.parametrize("shape", [(0, 8), (1, 8), (37, 8), (2, 3, 8), (2, 3, 4, 8)], ids=str)
@pytest.mark.parametrize("columns", [1, 5, 300])
def test_matmul_by_a_constant(shape: tuple[int, ...], columns: int, transpose: str) -> None:
    w = numbers(columns, 8) if transpose == "true" else numbers(8, columns)
    agree(layer("MatMul-1", transpose_b=transpose), numbers(*shape), w)


@pytest.mark.parametrize("transpose", ["true", "false"])
@pytest.mark.parametrize("shape", [(1, 520), (1, 1, 520)], ids=str)
def test_one_row_by_a_large_matrix(
    shape: tuple[int, ...], transpose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """BLAS threads share it if the run has several threads."""
    shared = []
    monkeypatch.setattr(matmul, "multithreaded_blas", lambda: [shared.append(1), multithreaded_blas()][1])
    w = numbers(1031, 520) if transpose == "true" else numbers(520, 1031)
    agree(layer("MatMul-1", transpose_b=transpose), numbers(*shape), w)
    assert bool(shared) == (parallel.max_threads > 1)


def test_matmul_by_an_unaligned_constant() -> None:
    w = np.frombuffer(b"." + numbers(8, 5).tobytes(), np.uint8)[1:].view(np.float32).reshape(8, 5)
    agree(layer("MatMul-1"), numbers(4, 8), w)


@pytest.mark.parametrize("shape", [(3, 7), (2, 3, 33), (0, 4), (1, 2, 3, 4)], ids=str)
@pytest.mark.parametrize("mode", ["inside_sqrt", "outside_sqrt"])
@pytest.mark.parametrize("variance", ["true", "false"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(shape: tuple[int, ...], mode: str, variance: str, axis: int) -> None:
    op = layer("MVN-6", eps="1e-5", eps_mode=mode, normalize_variance=variance)
    agree(op, 3 + numbers(*shape), np.array([axis]))


@pytest.mark.parametrize("shape", [(2, 17, 9), (2, 48, 60, 70)])
def test_layers_behind_a_norm_of_channels(shape: tuple[int, ...]) -> None:
    op = layer("MVN-6", normalize_variance="true", eps="1e-5", eps_mode="inside_sqrt")
    x, axes, other = 3 + numbers(*shape), np.array([1]), numbers(*shape, seed=1)
    scale = numbers(shape[1], *(1,) * (len(shape) - 2), seed=2)
    kernel: Any = backend.kernel(op, [unknown(x), Value.constant(axes)])
    kernel = kernel.fuse(layer("Multiply-1"), [unknown(x), Value.constant(scale)], 0)
    kernel = kernel.fuse(layer("Add-1"), [unknown(x), unknown(x)], 0)
    for data in layouts(x):
        with backend.around():
            same(kernel.prepare()(data, axes, scale, other), op.evaluate(data, axes) * scale + other)


MASKS = [None, (), (5, 7), (1, 1, 1, 7), (2, 1, 5, 7), (2, 3, 5, 1), (1, 3, 1, 7)]


@pytest.mark.parametrize("causal", ["true", "false"])
@pytest.mark.parametrize("mask", MASKS, ids=str)
@pytest.mark.parametrize("truth", [True, False])
@pytest.mark.parametrize("few", [True, False])
def test_attention(
    mask: tuple[int, ...] | None, truth: bool, causal: str, few: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sdpa, "FEW_SCORES", 1000 if few else 0)
    op = layer("ScaledDotProductAttention-13", causal=causal)
    q, k, v = numbers(2, 3, 5, 8), numbers(2, 1, 7, 8), numbers(1, 3, 7, 4)
    others = [] if mask is None else [numbers(*mask) > -1 if truth else numbers(*mask)]
    agree(op, q, k, v, *others)
    if others:
        agree(op, q, k, v, *others, np.array(0.3, np.float32))


def test_attention_of_many_queries_and_without_keys() -> None:
    op = layer("ScaledDotProductAttention-13", causal="false")
    agree(op, numbers(1, 2, 70001, 4), numbers(1, 2, 3, 4), numbers(1, 2, 3, 4))
    agree(op, numbers(1, 2, 4, 4), numbers(1, 2, 0, 4), numbers(1, 2, 0, 4))
    hidden = np.array([[True, True, True], [False, False, False]])
    agree(op, numbers(1, 1, 2, 4), numbers(1, 1, 3, 4), numbers(1, 1, 3, 4), hidden)


@pytest.mark.parametrize("queries", [3, 10, 300])
def test_attention_with_rows_of_very_different_scores(queries: int) -> None:
    """With one maximum for all rows, the exponentials of low rows, or of all rows next to an infinity, would vanish."""
    op = layer("ScaledDotProductAttention-13", causal="false")
    q, k, v = numbers(1, 2, queries, 8), numbers(1, 2, 400, 8, seed=1), numbers(1, 2, 400, 8, seed=2)
    mask = np.zeros((queries, 400), np.float32)
    mask[0], mask[1], mask[2] = -300, np.finfo(np.float32).min, np.inf
    agree(op, q, k, v, mask)


def test_other_types_run_the_reference() -> None:
    half = np.zeros((1, 3, 8, 8), np.float16)
    w = np.zeros((4, 3, 3, 3), np.float16)
    assert (
        backend.kernel(
            layer("Convolution-1", strides="1,1", pads_begin="1,1", pads_end="1,1", dilations="1,1"),
            [unknown(half), Value.constant(w)],
        )
        is None
    )
    assert backend.kernel(layer("Add-1"), [unknown(half), unknown(half)]) is None
    assert backend.kernel(layer("ReLU-1"), [unknown(half)]) is None


def test_split_range_covers_everything_once() -> None:
    for count in range(40):
        for most in (1, 2, 7):
            for grain in (1, 4):
                found = [i for part in _gemm.split_range(count, most, grain) for i in range(count)[part]]
                assert found == list(range(count))
                assert len(_gemm.split_range(count, most, grain)) <= most


def test_flat_view_of_any_memory_order() -> None:
    for x in (numbers(2, 3, 4), numbers(2, 3, 4).transpose(2, 0, 1), numbers(), numbers(0, 3)):
        line = flat_view(x)
        assert line is not None
        assert sorted(line.tolist()) == sorted(x.ravel().tolist())
    assert flat_view(numbers(4, 4)[:, ::2]) is None


@pytest.mark.parametrize("how", [(np.exp2, np.float32(-1 / np.log(2))), (np.exp, np.float32(-1))])
def test_sigmoids_with_exp_and_exp2(
    how: tuple[np.ufunc, np.float32], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(activations, "_EXP", how[0])
    monkeypatch.setattr(activations, "_EXP_SCALE", how[1])
    x = np.linspace(-80, 80, 2001, dtype=np.float32)
    exact = 1 / (1 + np.exp(-x.astype(np.float64)))
    for op, wanted in ((Sigmoid(), exact), (Swish(), x * exact)):
        activation = activations.activation_of(op, [Value.constant(x)])
        assert activation is not None
        found = np.empty_like(x)
        activation(x, found)
        np.testing.assert_allclose(found, wanted, rtol=5e-6)
