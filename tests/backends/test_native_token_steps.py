"""Layers for single tokens on the native backend: products with quantized weights, and mixtures of experts, replayed as one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset1, opset4, opset8, opset11
from ir_runtime.backends import UNREAD, available
from ir_runtime.backends.native import backend
from ir_runtime.backends.native.kernels._quantized import QuantizedProduct
from ir_runtime.backends.native.threading import parallel
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.quantized_weights import QuantizedWeights
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops.matrix import MatMul

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

RANDOM = np.random.default_rng(0)


def numbers(*shape: int) -> Array:
    return RANDOM.standard_normal(shape).astype(np.float32)


def compiled(model: ir.Model, threads: int = 1, mode: str = "ACCURACY") -> ir.CompiledModel:
    config = {"INFERENCE_NUM_THREADS": threads, "EXECUTION_MODE_HINT": mode}
    return ir.compile_model(model, backend="native", config=config)


def instructions(model: ir.CompiledModel) -> int:
    """Return the number of instructions of the next run."""
    programs = model._plan.programs
    return min(len(program.instructions) for program in programs.recorded.values())


def check(model: ir.Model, *inputs: Array, threads: int, mode: str = "ACCURACY") -> None:
    """Compare replays with unrecorded runs, and those with the reference."""
    fast = compiled(model, threads, mode)
    expected = [array.copy() for array in fast(inputs).to_tuple()]
    for _ in range(4):
        for found, wanted in zip(fast(inputs).to_tuple(), expected, strict=True):
            np.testing.assert_array_equal(found, wanted)
    assert not expected[0].size or instructions(fast) == 1
    tolerance = 1e-4 if mode == "ACCURACY" else 5e-2
    for found, wanted in zip(
        expected, ir.compile_model(model, backend="reference")(inputs).to_tuple(), strict=True
    ):
        np.testing.assert_allclose(
            found, wanted, rtol=tolerance, atol=tolerance * np.abs(wanted).max(initial=0)
        )


def quantized(x: Any, inputs: int, outputs: int) -> Any:
    """A product with 8-bit weights and a scale for each output."""
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
    """With inputs added to and multiplied with the result, and a bias; several threads share each product."""
    for product in QuantizedProduct.__subclasses__():
        monkeypatch.setattr(product, "min_parallel_work", 1)
    width = 96
    x = opset1.parameter([rows, width], np.float32, name="x")
    gate = opset4.swish(quantized(x, width, outputs))
    y = opset1.multiply(gate, opset1.add(quantized(x, width, outputs), opset1.constant(numbers(1, outputs))))
    y = opset1.add(x, quantized(y, outputs, width)) if outputs % 32 == 0 else y
    check(ir.Model([y], [x]), numbers(rows, width), threads=threads, mode=mode)


@pytest.mark.parametrize("zero", [None, 0, 3, 128, 255])
def test_products_in_f16_are_rounded_as_in_the_file(zero: int | None) -> None:
    """Multiply f16 scales by every 8-bit value minus a zero point, and the result by 1 and 0."""
    scale = np.arange(1, 0x5B00, 16, dtype=np.uint16).view(np.float16)[:, None]
    codes = np.ascontiguousarray(np.broadcast_to(np.arange(256, dtype=np.uint8), (len(scale), 256)))
    points = None if zero is None else np.full_like(scale, zero)
    weights = QuantizedWeights(codes, E.u8, scale, points, codes.shape, E.f16)
    a = Value(TensorType(E.f32, PartialShape([-1, 256])))
    b = Value(TensorType(E.f32, PartialShape(codes.shape)), quantized=weights)
    kernel = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=True), (a, b))
    assert kernel is not None
    ones, wanted = (
        np.eye(256, dtype=np.float32),
        ((codes - np.float16(zero or 0)) * scale).astype(np.float32).T,
    )
    np.testing.assert_array_equal(kernel(ones, UNREAD), wanted)
    for row in range(0, 256, 5):
        np.testing.assert_array_equal(kernel(ones[row : row + 1], UNREAD), wanted[row : row + 1])


def chosen(rows: Sequence[int], indices: Sequence[int], by_rows: bool, kind: Any = np.int64) -> ir.Model:
    """A product of rows with matrices selected by indices, followed by a scale, bias, sum and activation."""
    depth, columns = rows[-1], 70
    x = opset1.parameter(list(rows), np.float32, name="x")
    places = opset1.parameter(list(indices), kind, name="places")
    tables = [numbers(6, *((columns, depth) if by_rows else (depth, columns))) for _ in range(2)]
    first, second = (
        opset1.matmul(x, opset8.gather(opset1.constant(table), places, opset1.constant(0)), False, by_rows)
        for table in tables
    )
    scaled = opset1.add(opset1.multiply(first, numbers(1, columns)), numbers(1, columns))
    return ir.Model([opset1.multiply(opset4.swish(scaled), second)], [x, places])


def is_matched(model: ir.CompiledModel) -> bool:
    return any("gathered_matmul" in step.pattern for step in model._plan.steps)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("rows", "indices"),
    [
        ((1, 20), (2,)),
        ((2, 1, 3, 37), (2, 4)),
        ((4, 1, 16), (3, 1)),
        ((1, 1, 8, 5), (2, 1, 2)),
        ((2, 3), (0,)),
    ],
)
def test_products_with_chosen_matrices(
    monkeypatch: pytest.MonkeyPatch,
    rows: Sequence[int],
    indices: Sequence[int],
    kind: Any,
    by_rows: bool,
    threads: int,
) -> None:
    """Negative indices count from the end; out-of-range indices select zeros."""
    monkeypatch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
    model, x = chosen(rows, indices, by_rows, kind), numbers(*rows)
    assert is_matched(compiled(model))
    check(model, x, RANDOM.integers(-6, 6, indices).astype(kind), threads=threads)
    fast, slow = compiled(model, threads), ir.compile_model(model, backend="reference")
    for low, high in ((-6, 6), (-6, 6), (-6, 6), (-9, 9), (6, 7), (-(2**31), 2**31 - 1), (-6, 6)):
        places = RANDOM.integers(low, high, indices).astype(kind)
        found, wanted = fast([x, places])[0], slow([x, places])[0]
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("rows", [(9, 20), (-1, 20)])
def test_of_many_rows_copies_are_multiplied(rows: Sequence[int]) -> None:
    assert not is_matched(compiled(chosen(rows, (2,), True)))


def test_chosen_matrices_of_open_lengths() -> None:
    """With dynamic dims, shapes that do not broadcast are refused as by the reference."""
    model = chosen((-1, 1, 20), (-1,), True)
    fast, slow = compiled(model), ir.compile_model(model, backend="reference")
    assert is_matched(fast)
    for batch, count in ((1, 1), (3, 3), (3, 1), (1, 4), (0, 1), (3, 3)):
        given = [numbers(batch, 1, 20), RANDOM.integers(0, 6, count)]
        np.testing.assert_allclose(fast(given)[0], slow(given)[0], rtol=1e-4, atol=1e-4)
    for each in (fast, slow):
        with pytest.raises(ir.IRError, match="batches"):
            each([numbers(2, 1, 20), np.arange(3)])


def best(shape: Sequence[int], k: int, mode: str, sort: str, kind: str) -> ir.Model:
    x = opset1.parameter(list(shape), np.float32, name="x")
    found = opset11.topk(
        opset1.multiply(x, np.float32(1)), opset1.constant(k), -1, mode, sort, index_element_type=kind
    )
    return ir.Model([found.output(1), opset1.multiply(found.output(0), np.float32(1))], [x])


@pytest.mark.parametrize("sort", ["value", "index", "none"])
@pytest.mark.parametrize("mode", ["max", "min"])
@pytest.mark.parametrize(
    ("shape", "k", "kind"),
    [
        ((8,), 2, "i32"),
        ((2, 3, 5), 5, "i64"),
        ((1, 1), 1, "i32"),
        ((9, 40), 32, "i64"),
        ((3, 700), 7, "i32"),
        ((0, 4), 2, "i32"),
    ],
)
def test_the_best_of_rows(shape: Sequence[int], k: int, kind: str, mode: str, sort: str) -> None:
    """Ties are ordered by index; NaN is larger than any number."""
    model = best(shape, k, mode, sort, kind)
    check(model, numbers(*shape), threads=1)
    fast, slow = compiled(model, 2), ir.compile_model(model, backend="reference")
    special = np.float32([0, -0.0, 1, -1, np.inf, -np.inf, 0.5])
    given = [numbers(*shape), *(RANDOM.choice(special, shape) for _ in range(3))]
    given += [np.sort(numbers(*shape), -1), -np.sort(numbers(*shape), -1)]
    given += [RANDOM.choice(np.float32([np.nan, 1, np.inf, 2]), shape), numbers(*shape)]
    for x in given:
        for found, wanted in zip(fast(x).to_tuple(), slow(x).to_tuple(), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype


def test_more_elements_than_there_are() -> None:
    model = best((1, -1), 3, "max", "value", "i32")
    fast = compiled(model)
    assert fast(numbers(1, 3))[0].shape == (1, 3)
    with pytest.raises(ir.IRError, match="k asks for 3 elements"):
        fast(numbers(1, 2))


@pytest.mark.parametrize("axis", [0, -2])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_embeddings_and_positions_are_part_of_a_replay(kind: Any, axis: int) -> None:
    """Gathered rows, with zeros for out-of-range indices, and converted integers."""
    ids = opset1.parameter([2, 3], kind, name="ids")
    rows = opset8.gather(opset1.constant(numbers(5, 33)), ids, opset1.constant(axis))
    other = opset1.convert(ids, "i32" if kind is np.int64 else "i64")
    positions = opset1.unsqueeze(opset1.convert(other, "f32"), opset1.constant(2))
    model = ir.Model([opset1.relu(opset1.multiply(rows, positions)), other], [ids])
    fast, slow = compiled(model), ir.compile_model(model, backend="reference")
    large = np.iinfo(kind).max
    for low, high in ((0, 5), (-5, 5), (0, 5), (-5, 5), (0, 9), (-large, large), (0, 5)):
        x = RANDOM.integers(low, high, (2, 3)).astype(kind)
        for found, wanted in zip(fast(x).to_tuple(), slow(x).to_tuple(), strict=True):
            np.testing.assert_array_equal(found, wanted)
            assert found.dtype == wanted.dtype
    assert instructions(fast) == 1
