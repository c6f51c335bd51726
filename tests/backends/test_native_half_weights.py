"""16-bit weights in the native backend: read as stored, or widened to f32 once."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.backends.common import kept_weights
from ir_runtime.backends.native.kernels import quantized_matmul
from ir_runtime.backends.native.kernels.quantized_matmul import MIN_STORED_ROWS

DEPTH, COLUMNS = 320, 208
SIZE = 4 * DEPTH * COLUMNS


def product(rows: int | None, kind: Any, by_rows: bool = True) -> ir.CompiledModel:
    """Compile a product with a bias, for a fixed or dynamic number of rows, with weights of a type or their f32 values."""
    rng = np.random.default_rng(0)
    w = rng.normal(size=(COLUMNS, DEPTH) if by_rows else (DEPTH, COLUMNS)).astype(kind or np.float16)
    constant = opset13.constant(w) if kind else opset13.constant(w.astype(np.float32))
    x = opset13.parameter([rows or -1, DEPTH], np.float32, name="x")
    weights = opset13.convert(constant, "f32") if kind else constant
    y = opset13.matmul(x, weights, False, by_rows)
    y = opset13.relu(opset13.add(y, opset13.constant(rng.normal(size=(1, COLUMNS)).astype(np.float32))))
    return ir.compile_model(ir.Model([y], [x]), backend="native")


@pytest.fixture
def widened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the size in bytes of the weights that kernels ask to widen."""
    sizes: list[int] = []

    def reserve(size: int) -> bool:
        if taken := kept_weights.reserve(size):
            sizes.append(size)
        return taken

    monkeypatch.setattr(quantized_matmul, "reserve", reserve)
    return sizes


@pytest.mark.parametrize(
    ("rows", "wanted"),
    [(1, []), (2, [SIZE]), (MIN_STORED_ROWS - 1, [SIZE]), (MIN_STORED_ROWS, []), (None, [SIZE])],
    ids=str,
)
def test_weights_are_widened_for_few_rows(rows: int | None, wanted: list[int], widened: list[int]) -> None:
    """A single row is bound by memory; for many rows widening in every run is cheap."""
    product(rows, np.float16)
    assert widened == wanted


def test_other_weights_are_not_widened(widened: list[int]) -> None:
    product(16, np.int8)
    assert widened == []


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("is_static", [True, False])
def test_few_rows_are_bit_identical_to_f32_weights(is_static: bool, by_rows: bool) -> None:
    """The results have the bits of the f32 kernel, in replays as well."""
    for count in (2, 3, 16):
        rows = count if is_static else None
        half, wide = product(rows, np.float16, by_rows), product(rows, None, by_rows)
        for seed in range(3):
            x = np.random.default_rng(seed).normal(size=(count, DEPTH)).astype(np.float32)
            np.testing.assert_array_equal(half([x])[0], wide([x])[0])


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
def test_any_number_of_rows(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A model gives the same values for one row, none, and many, whether or not its weights may be widened."""
    free = product(None, kind)
    monkeypatch.setattr(kept_weights, "MAX_BYTES", SIZE - 1)
    kept = product(None, kind)
    for count in (1, 0, 5, 1, 300):
        x = np.random.default_rng(count).normal(size=(count, DEPTH)).astype(np.float32)
        found, wanted = free([x])[0], kept([x])[0]
        assert found.shape == (count, COLUMNS)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4)
