"""bf16 weights with few rows of f32: only the weights are rounded, not states or inputs.

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

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.backends import KernelTemplate, Precision, load
from ir_runtime.backends.core.precision import within
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.codegen.bf16 import HAS_BF16, IS_FASTER
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels import _gemm_kernel
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.openvino.config import check_config, precision_of

NARROW = Precision(weights="bf16")
NAME = "gemm_bf16_weights"
KINDS = [("RNN", False), ("GRU", False), ("GRU", True), ("LSTM", False)]
GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers; the smallest weights are rounded."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param), backend.around():
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        patch.setattr(_gemm_kernel, "MIN_WIDENED_NUMBERS", 0)
        yield


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.from_dtype(x.dtype), PartialShape(x.shape))


def product(rows: int, depth: int, w: Array, precision: Precision = NARROW) -> Any:
    x = Value.unknown(ElementType.f32, PartialShape([rows, depth]))
    with within(precision):
        kernel = backend.kernel(layer("MatMul-1"), [x, Value.constant(w)])
    assert isinstance(kernel, KernelTemplate)
    return kernel


@pytest.mark.parametrize("depth", [2, 4, 6, 16, 30, 130])
def test_rows_are_not_rounded(depth: int) -> None:
    x, all_columns = numbers(8, depth), numbers(depth, 7 * LANES + 3, seed=1)
    left, right = x.astype(np.float64), rounded(all_columns).astype(np.float64)
    wanted, bound = left @ right, (depth + 1) * 2.0**-24 * (np.abs(left) @ np.abs(right))
    for columns in (1, LANES - 1, LANES, LANES + 1, 4 * LANES, 4 * LANES + 1, 7 * LANES + 3):
        kernel = product(8, depth, w := all_columns[:, :columns]).prepare()
        assert kernel.name == NAME
        for rows in range(1, 9):
            found = kernel(x[:rows], w)
            assert (np.abs(found - wanted[:rows, :columns]) <= bound[:rows, :columns]).all(), (rows, columns)


def test_what_follows_a_product_is_fused() -> None:
    x, w, bias = numbers(3, 40), numbers(40, 70, seed=1), numbers(1, 70, seed=2)
    kernel = product(3, 40, w).fuse(layer("Add-1"), [unknown(numbers(3, 70)), Value.constant(bias)], 0)
    assert kernel is not None
    kernel = kernel.fuse(layer("Gelu-7"), [unknown(numbers(3, 70))], 0)
    assert kernel is not None
    sums = (x.astype(np.float64) @ rounded(w) + bias).astype(np.float32)
    wanted = layer("Gelu-7").evaluate(sums)
    np.testing.assert_allclose(kernel.prepare()(x, w, bias), wanted, rtol=2e-5, atol=2e-5)


def test_others_stay_f32(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights stay f32 for many or unknown rows, rows that are not a multiple of the word size, and weights that fit the cache."""

    def name(rows: int, depth: int, precision: Precision = NARROW) -> str:
        return product(rows, depth, numbers(depth, 64), precision).prepare().name

    assert [name(rows, 64) for rows in (1, 8, 9, -1)] == [NAME, NAME, "", ""]
    assert name(1, 63) == ""
    assert name(1, 64, Precision()) == ""
    monkeypatch.setattr(_gemm_kernel, "MIN_WIDENED_NUMBERS", 64 * 64)
    assert [name(1, depth) for depth in (62, 64)] == ["", NAME]


@pytest.mark.parametrize("batch", [1, 3, 8])
@pytest.mark.parametrize("direction", ["forward", "bidirectional"])
@pytest.mark.parametrize("hidden", [2, 16, 34, 70, 130])
@pytest.mark.parametrize(("kind", "after"), KINDS)
def test_sequences(kind: str, after: bool, hidden: int, direction: str, batch: int) -> None:
    """States are not rounded; nor are input weights if the inputs of all steps are many rows."""
    time, inputs, directions = 12, 6, 1 + (direction == "bidirectional")
    rows, scale = GATES[kind] * hidden, np.float32(hidden**-0.5)
    w, b = numbers(directions, rows, inputs, seed=5), numbers(directions, rows + after * hidden, seed=7)
    r = numbers(directions, rows, hidden, seed=6) * scale
    states = [numbers(batch, directions, hidden, seed=i) for i in range(1 + (kind == "LSTM"))]
    x, lengths = numbers(batch, time, inputs), np.full(batch, time)
    how = {"linear_before_reset": "true"} if after else {}
    op: Any = layer(f"{kind}Sequence-5", direction=direction, hidden_size=str(hidden), **how)
    varying = [x, *states, lengths]
    with within(NARROW):
        kernel = backend.kernel(op, [*map(unknown, varying), *map(Value.constant, (w, r, b))])
    assert kernel is not None
    assert kernel.name == NAME
    wanted = op.evaluate(*varying, w, rounded(r), b)
    for ours, theirs in zip(kernel(*varying, w, r, b), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_a_cell_of_few_rows_reads_all_its_weights_in_bf16() -> None:
    hidden, inputs = 32, 10
    x, h, c = numbers(2, inputs), numbers(2, hidden), numbers(2, hidden, seed=1)
    w, r, b = numbers(4 * hidden, inputs, seed=2), numbers(4 * hidden, hidden, seed=3), numbers(4 * hidden)
    op: Any = layer("LSTMCell-4", hidden_size=str(hidden))
    with within(NARROW):
        kernel: Any = backend.kernel(op, [*map(unknown, (x, h, c)), *map(Value.constant, (w, r, b))])
    wanted = op.evaluate(x, h, c, rounded(w), rounded(r), b)
    for ours, theirs in zip(kernel(x, h, c, w, r, b), wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=2e-5, atol=2e-5)


def test_the_mode_asks_for_it_where_the_processor_computes_in_bf16() -> None:
    def weights(**config: object) -> str:
        return precision_of(check_config(config), load("native")[1]).weights

    assert weights(EXECUTION_MODE_HINT="PERFORMANCE") == ("bf16" if HAS_BF16 else "f32")
    assert weights() == weights(EXECUTION_MODE_HINT="ACCURACY") == "f32"
    assert weights(EXECUTION_MODE_HINT="PERFORMANCE", INFERENCE_PRECISION_HINT="f32") == "f32"


@pytest.mark.skipif(IS_FASTER or not HAS_BF16, reason="bf16 is faster, or OpenVINO does not compute in it")
def test_profiling_names_the_kernel() -> None:
    x = opset13.parameter([1, 64], np.float32, name="x")
    y = opset13.matmul(x, opset13.constant(numbers(64, 64)), False, False)
    config = {"EXECUTION_MODE_HINT": "PERFORMANCE", "PERF_COUNT": True}
    compiled = ir.compile_model(ir.Model([y], [x]), "CPU", config, backend="native")
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ir.Type.f32
    request = compiled.create_infer_request()
    request.infer([numbers(1, 64)])
    assert NAME in {info.exec_type for info in request.get_profiling_info()}


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
