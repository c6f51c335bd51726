"""Matrix products with quantized weights on the NumPy backend, dequantized or not: all types, scales, zero points and shapes."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest

from ir_runtime.backends import KernelTemplate
from ir_runtime.backends.common import kept_weights
from ir_runtime.backends.numpy import backend
from ir_runtime.ir.array import Packed
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.element import pack
from ir_runtime.ir.quantized_weights import QuantizedWeights
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.limits import Limits, within
from ir_runtime.ops.conversion import convert
from ir_runtime.ops.matrix import MatMul

ELEMENTS = [E.u4, E.i4, E.u2, E.u8, E.i8, E.nf4, E.f4e2m1]
# Outputs, inputs, and inputs of a group: odd ones, several panels of columns, groups of several runs.
SIZES = [
    (130, 35, 7),
    (33, 96, 32),
    (1, 64, 64),
    (1030, 40, 20),
    (64, 390, 390),
    (70, 512, 256),
    (96, 37, 37),
]
ROWS = [(1,), (5,), (40,), (2, 3), (0,), ()]


def weights(
    element: E, size: tuple[int, int, int], by_rows: bool, zero: str = "", arithmetic: E = E.f32
) -> QuantizedWeights:
    """Return random quantized values, scales and zero points: none, "one", "groups", or "fractions"."""
    outputs, inputs, group = size
    rng = np.random.default_rng(size)
    shape = (outputs, inputs // group, group) if by_rows else (inputs // group, group, outputs)
    one = (outputs, inputs // group, 1) if by_rows else (inputs // group, 1, outputs)
    numbers = rng.integers(0, 2**element.bits, shape).astype(np.uint8)
    codes = Packed(pack(numbers, element.bits), element, shape) if element.bits < 8 else None
    zeros = {
        "": None,
        "one": np.full((1, 1, 1), 3.0),
        "groups": rng.integers(0, 2**element.bits, one).astype(np.float64),
        "fractions": rng.uniform(0, 2**element.bits, one),
    }[zero]
    return QuantizedWeights(
        numbers.view(element.dtype) if codes is None else codes,
        element,
        rng.uniform(0.001, 0.01, one).astype(arithmetic.dtype),
        None if zeros is None else zeros.astype(arithmetic.dtype),
        (outputs, inputs) if by_rows else (inputs, outputs),
        arithmetic,
    )


def dequantized(quantized: QuantizedWeights) -> Array:
    """Dequantize the matrix step by step, in the type of the file."""
    codes = quantized.codes.unpack() if isinstance(quantized.codes, Packed) else quantized.codes
    numbers = convert(codes, quantized.arithmetic, quantized.element)
    if quantized.zero is not None:
        numbers = numbers - quantized.zero
    if quantized.scale is not None:
        numbers = numbers * quantized.scale
    return np.asarray(numbers.astype(np.float32).reshape(quantized.shape))


def check(quantized: QuantizedWeights, by_rows: bool, rows: tuple[int, ...]) -> None:
    """Compare the kernel with a product of the dequantized matrix."""
    inputs = quantized.shape[1 if by_rows else 0]
    x = np.random.default_rng(0).standard_normal((*rows, inputs)).astype(np.float32)
    a = Value(TensorType(E.f32, PartialShape([-1] * len(rows) + [inputs])))
    b = Value(TensorType(E.f32, PartialShape(quantized.shape)), quantized=quantized)
    kernel = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=by_rows), (a, b))
    assert kernel is not None
    found = kernel(x, np.empty(0))
    matrix = dequantized(quantized).astype(np.float64)
    wanted = x.astype(np.float64) @ (matrix.T if by_rows else matrix)
    assert isinstance(found, np.ndarray)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=2e-6 * np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_any_shape(element: E, size: tuple[int, int, int], by_rows: bool) -> None:
    for arithmetic in (E.f32, E.f16):
        quantized = weights(element, size, by_rows, arithmetic=arithmetic)
        for rows in ROWS:
            check(quantized, by_rows, rows)


@pytest.mark.parametrize("arithmetic", [E.f32, E.f16, E.bf16], ids=str)
@pytest.mark.parametrize("zero", ["one", "groups"])
@pytest.mark.parametrize("element", [E.u4, E.i4, E.u8, E.i8], ids=str)
def test_zero_points(element: E, zero: str, arithmetic: E) -> None:
    if arithmetic is E.bf16 and element.bits == 8:
        zero = "one"  # differences of others do not fit into bf16
    for rows in ((1,), (3,), (30,)):
        check(weights(element, (130, 64, 16), True, zero, arithmetic), True, rows)


@pytest.mark.parametrize("element", [E.u4, E.u8], ids=str)
def test_fractional_zero_points(element: E) -> None:
    for rows in ((1,), (30,)):
        check(weights(element, (130, 64, 16), True, "fractions"), True, rows)


@pytest.mark.parametrize("arithmetic", [E.f32, E.f16], ids=str)
@pytest.mark.parametrize("scale", [None, 0.25, 0.3])
def test_a_scalar_scale_or_none(scale: float | None, arithmetic: E) -> None:
    quantized = weights(E.i4, (64, 48, 48), True, arithmetic=arithmetic)
    one = None if scale is None else np.full((1, 1, 1), scale, arithmetic.dtype)
    for rows in ((1,), (30,)):
        check(replace(quantized, scale=one), True, rows)


def test_products_in_f16_are_rounded_as_in_the_file() -> None:
    """Multiply every f16 scale that is not too large by every quantized value, and the result by 1 and 0."""
    bits = np.arange(1, 0x6800, dtype=np.uint16)
    for element in (E.i4, E.i8):
        numbers = np.arange(2**element.bits, dtype=np.uint8)
        codes = np.broadcast_to(numbers, (bits.size, numbers.size))[:: 8 if element is E.i8 else 1]
        scale = bits[:: 8 if element is E.i8 else 1].view(np.float16)[:, None]
        scale = np.minimum(scale, np.float16(500))
        stored = (
            Packed(pack(np.ascontiguousarray(codes), 4), element, codes.shape)
            if element.bits == 4
            else np.ascontiguousarray(codes).view(np.int8)
        )
        quantized = QuantizedWeights(stored, element, scale, None, codes.shape, E.f16)
        a = Value(TensorType(E.f32, PartialShape([-1, numbers.size])))
        b = Value(TensorType(E.f32, PartialShape(codes.shape)), quantized=quantized)
        kernel = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=True), (a, b))
        assert kernel is not None
        ones = np.eye(numbers.size, dtype=np.float32)
        wanted = dequantized(quantized).T
        np.testing.assert_array_equal(kernel(ones, np.empty(0)), wanted)
        np.testing.assert_array_equal(kernel(ones[1:2], np.empty(0)), wanted[1:2])


def test_inexact_products_are_declined() -> None:
    """Decline products below the smallest normal f16, and zero points that f16 rounds."""
    small = weights(E.nf4, (64, 64, 32), True, arithmetic=E.f16)
    assert small.scale is not None
    declined = [
        replace(small, scale=small.scale / np.float16(256)),
        weights(E.u4, (64, 64, 32), True, "fractions", E.f16),
    ]
    a = Value(TensorType(E.f32, PartialShape([-1, 64])))
    for quantized in declined:
        b = Value(TensorType(E.f32, PartialShape(quantized.shape)), quantized=quantized)
        assert backend.kernel_packed(MatMul(transpose_a=False, transpose_b=True), (a, b)) is None


@pytest.mark.parametrize("by_rows", [True, False])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("element", ELEMENTS, ids=str)
def test_small_models_keep_the_f32_weights_of_the_file(
    element: E, size: tuple[int, int, int], by_rows: bool
) -> None:
    """The weights are kept bit for bit: each row of the matrix is recovered by multiplying it by 1."""
    for zero in ("", "one", "groups") if element.integral else ("",):
        for arithmetic in (E.f32, E.f16):
            quantized = weights(element, size, by_rows, zero, arithmetic)
            inputs = quantized.shape[1 if by_rows else 0]
            a = Value(TensorType(E.f32, PartialShape([-1, inputs])))
            b = Value(TensorType(E.f32, PartialShape(quantized.shape)), quantized=quantized)
            with backend.compiling():
                kernel = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=by_rows), (a, b))
                assert isinstance(kernel, KernelTemplate)
                kernel = kernel.prepare()
            wanted = dequantized(quantized)
            found = kernel(np.eye(inputs, dtype=np.float32), np.empty(0))
            np.testing.assert_array_equal(found, wanted.T if by_rows else wanted)


def test_weights_of_one_compilation_share_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights are dequantized while they fit a budget; nested graphs share that budget."""
    monkeypatch.setattr(kept_weights, "MAX_BYTES", 100)
    assert not kept_weights.reserve(1)
    with backend.compiling():
        assert kept_weights.reserve(60)
        with backend.compiling():
            assert not kept_weights.reserve(41)
            assert kept_weights.reserve(40)
        assert not kept_weights.reserve(1)
    with within(Limits(memory=80)), backend.compiling():
        assert not kept_weights.reserve(11)
        assert kept_weights.reserve(10)


@pytest.mark.parametrize("element", [E.u4, E.i8, E.nf4], ids=str)
@pytest.mark.parametrize("by_rows", [True, False])
def test_weights_of_large_models_stay_quantized(element: E, by_rows: bool) -> None:
    """Neither compiling nor running allocates as much as a quarter of the f32 matrix."""
    quantized = weights(element, (3072, 2048, 128), by_rows)
    f32_size = 4 * quantized.shape[0] * quantized.shape[1]
    a = Value(TensorType(E.f32, PartialShape([-1, 2048])))
    b = Value(TensorType(E.f32, PartialShape(quantized.shape)), quantized=quantized)
    x = np.ones((1, 2048), np.float32)
    tracemalloc.start()
    try:
        kernel = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=by_rows), (a, b))
        assert kernel is not None
        held, compiling = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        kernel(x, np.empty(0))
        running = tracemalloc.get_traced_memory()[1] - held
    finally:
        tracemalloc.stop()
    assert held < 1.2 * f32_size * element.bits / 32
    assert compiling < held + f32_size / 4
    assert running < f32_size / 8
