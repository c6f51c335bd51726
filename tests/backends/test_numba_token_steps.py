"""Layers of single tokens on the numba backend: products with quantized weights and mixtures of experts, as one call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset1, opset4
from ir_runtime.backends import available
from ir_runtime.backends.numba.kernels import _quantized_product
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("numba" not in available(), reason="numba is not installed")

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def compiled(model: ir.Model, threads: int = 1, mode: str = "ACCURACY") -> ir.CompiledModel:
    config = {"INFERENCE_NUM_THREADS": threads, "EXECUTION_MODE_HINT": mode}
    return ir.compile_model(model, backend="numba", config=config)


def instructions(model: ir.CompiledModel) -> int:
    """How many instructions the next run has."""
    programs = model._plan.programs
    return min(len(program.instructions) for program in programs.recorded.values())


def check(model: ir.Model, *inputs: Array, threads: int, mode: str = "ACCURACY", parts: int = 1) -> None:
    """Compare replays with runs that are not recorded, and those with the reference."""
    fast = compiled(model, threads, mode)
    expected = [array.copy() for array in fast(inputs).to_tuple()]
    for _ in range(4):
        for found, wanted in zip(fast(inputs).to_tuple(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert instructions(fast) == parts
    tolerance = 1e-4 if mode == "ACCURACY" else 5e-2
    for found, wanted in zip(
        expected, ir.compile_model(model, backend="reference")(inputs).to_tuple(), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max())


def quantized(x: Any, inputs: int, outputs: int) -> Any:
    """A product with weights of 8 bits, and a scale for each output."""
    stored = opset1.convert(opset1.constant(RANDOM.integers(-127, 128, (outputs, inputs), np.int8)), "f32")
    scale = opset1.constant(RANDOM.uniform(0.5, 1, (outputs, 1)).astype(np.float32) / 500)
    return opset1.matmul(x, opset1.multiply(stored, scale), False, True)


@pytest.mark.parametrize("mode", ["ACCURACY", "PERFORMANCE"])
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("outputs", [1, 50, 64, 205])
@pytest.mark.parametrize("rows", [1, 3])
def test_products_with_quantized_weights_are_replayed(
    monkeypatch: pytest.MonkeyPatch, rows: int, outputs: int, threads: int, mode: str
) -> None:
    """With inputs that are added and multiplied to the result, and a bias; several threads share each product."""
    monkeypatch.setattr(_quantized_product, "MIN_PARALLEL_WORK", 1)
    width = 96
    x = opset1.parameter([rows, width], np.float32, name="x")
    gate = opset4.swish(quantized(x, width, outputs))
    y = opset1.multiply(gate, opset1.add(quantized(x, width, outputs), opset1.constant(numbers(1, outputs))))
    y = opset1.add(x, quantized(y, outputs, width)) if outputs % 32 == 0 else y
    check(ir.Model([y], [x]), numbers(rows, width), threads=threads, mode=mode)
