"""Products of dynamically quantized 8-bit activations with integer weights: native bit for bit as an emulation, NumPy close to it.

The file is rerun for each vector instruction set, among them those with dot products of four bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.oracle import multiply_add
from harness.other_vectors import AGAIN, same_with_other_vectors

from ir_runtime.backends import Backend, KernelTemplate
from ir_runtime.backends.common.dynamic_quantization import (
    MIN_PEAK,
    IntegerMatrix,
    integer_matrix,
    quantize_activations,
    round_activations,
)
from ir_runtime.backends.core.precision import Precision, within
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native import backend as native
from ir_runtime.backends.native.kernels._quantized import QuantizedProduct
from ir_runtime.backends.numpy import backend as numpy
from ir_runtime.ir.array import Packed
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.element import pack
from ir_runtime.ir.quantized_weights import QuantizedWeights
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops.matrix import MatMul

ZEROS = [
    *((E.u4, zero) for zero in (0, 1, 8, 15)), *((E.u8, zero) for zero in (0, 1, 128, 255)), (E.i4, 8), (E.i8, 128),
    (E.i4, 15), (E.i8, 1),
]  # fmt: skip
OFFSETS = {E.u4: 0, E.i4: 8, E.u8: 0, E.i8: 128}


@pytest.fixture(params=[1, 2], ids=lambda n: f"threads={n}", autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, at_most(request.param):
        patch.setattr(QuantizedProduct, "min_parallel_work", 0)
        yield


def weights(
    element: E, outputs: int, groups: int, length: int, zero: Any = None, rows: bool = True
) -> QuantizedWeights:
    """Return random weights; zero points are those of unsigned types, one for all, random, or none."""
    random = np.random.default_rng([outputs, groups, length])
    shape, one = (outputs, groups, length), (outputs, groups, 1)
    numbers = random.integers(0, 2**element.bits, shape).astype(np.uint8)
    scale = random.uniform(0.001, 0.01, one).astype(np.float32)
    if isinstance(zero, str):
        zero = random.integers(0, 2**element.bits, one)
    points = None if zero is None else np.broadcast_to(np.float32(zero) - OFFSETS[element], one)
    if not rows:
        numbers, scale = numbers.transpose(1, 2, 0), scale.transpose(1, 2, 0)
        points = None if points is None else points.transpose(1, 2, 0)
    codes = np.ascontiguousarray(numbers)
    stored = Packed(pack(codes, 4), element, codes.shape) if element.bits == 4 else codes.view(element.dtype)
    size = (outputs, groups * length) if rows else (groups * length, outputs)
    return QuantizedWeights(stored, element, scale, points, size)


def activations(*shape: int) -> Array:
    return np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def kernel_of(backend: Backend, quantized: QuantizedWeights, size: int, rows: bool = True) -> KernelTemplate:
    depth = quantized.shape[1 if rows else 0]
    a = Value(TensorType(E.f32, PartialShape([-1, depth])))
    b = Value(TensorType(E.f32, PartialShape(quantized.shape)), quantized=quantized)
    with within(Precision(dynamic_group=size)):
        found = backend.kernel_packed(MatMul(transpose_a=False, transpose_b=rows), (a, b))
    assert isinstance(found, KernelTemplate)
    return found


def product(backend: Backend, quantized: QuantizedWeights, size: int, x: Array, rows: bool = True) -> Array:
    with backend.around():
        found = kernel_of(backend, quantized, size, rows)(x, np.empty(0))
    return np.asarray(found)


def integers(matrix: IntegerMatrix, rows: bool = True) -> Array:
    """Return the integer weights without scales, as ``[outputs, groups, length]``."""
    codes = matrix.weights.codes
    found = (
        (codes.unpack() if isinstance(codes, Packed) else codes).view(np.uint8).reshape(matrix.weights.shape)
    )
    found = (found if rows else found.T).astype(np.int64) + matrix.offset
    found %= 2**matrix.weights.element.bits
    return found.reshape(len(found), matrix.groups.groups, -1) - matrix.zero[:, :, None]


def emulated(quantized: QuantizedWeights, size: int, x: Array, rows: bool = True) -> Array:
    """Compute exact sums for each group of activations, and add them in f32, in order."""
    matrix = integer_matrix(quantized, rows, size)
    assert matrix is not None
    groups, w = matrix.groups, integers(matrix, rows)
    numbers, scale = quantize_activations(x, groups)
    total = np.zeros((len(x), len(w)), np.float32)
    for g in range(groups.groups):
        within = np.zeros_like(total)
        for part in range(groups.parts):
            columns = w[:, g, part * groups.size : (part + 1) * groups.size]
            sums = numbers[:, g, part, : columns.shape[1]].astype(np.int64) @ columns.T
            own = scale[:, g, part][:, None]
            if groups.parts == 1:
                total = multiply_add(sums.astype(np.float32), own * matrix.scale[:, g], total)
            within = multiply_add(sums.astype(np.float32), own, within)
        if groups.parts > 1:
            total = multiply_add(within, matrix.scale[:, g], total)
    return total


def check(quantized: QuantizedWeights, size: int, x: Array, rows: bool = True) -> None:
    """Compare the kernels with the emulation; native bit for bit."""
    wanted = emulated(quantized, size, x, rows)
    assert np.isfinite(wanted).all()
    np.testing.assert_array_equal(product(native, quantized, size, x, rows), wanted)
    near = product(numpy, quantized, size, x, rows)
    np.testing.assert_allclose(near, wanted, rtol=1e-5, atol=3e-6 * np.abs(wanted).max(initial=0))


@pytest.mark.parametrize(("element", "zero"), ZEROS)
def test_products_of_all_sizes(element: E, zero: int) -> None:
    for columns in range(1, 66, 1 if AGAIN not in os.environ else 4):
        groups, rows = 1 + columns % 9, 1 + (columns * 7 + zero) % 15
        check(weights(element, columns, groups, 32, zero), 32, activations(rows, 32 * groups))


@pytest.mark.parametrize("rows", [True, False])
@pytest.mark.parametrize("element", OFFSETS)
def test_zero_points_of_each_group_and_column(element: E, rows: bool) -> None:
    for columns, count in ((64, 1), (70, 3), (128, 15)):
        check(weights(element, columns, 3, 64, "random", rows), 32, activations(count, 192), rows)


@pytest.mark.parametrize("size", [32, 64, 128])
@pytest.mark.parametrize("length", [7, 16, 32, 40, 64, 100, 128, 320])
def test_groups_of_activations_within_those_of_weights(length: int, size: int) -> None:
    """The smaller group size applies, and remainders of groups of weights are covered."""
    for element in (E.u4, E.i8):
        for count in (1, 5):
            check(weights(element, 67, 2, length, "random"), size, activations(count, 2 * length))


@pytest.mark.parametrize("zero", [0, 255])
def test_sums_beyond_the_integers_of_f32(zero: int) -> None:
    quantized = weights(E.u8, 65, 1, 4096, zero)
    np.asarray(quantized.codes)[...] = 255 - zero
    x = np.ones((3, 4096), np.float32)
    x[2] *= -1
    assert 127 * 255 * 4096 > 1 << 24
    check(quantized, 4096, x)
    check(quantized, 128, x)


@pytest.mark.parametrize("element", [E.u4, E.i8])
def test_groups_of_zeros_and_of_the_smallest_numbers(element: E) -> None:
    x = activations(5, 192)
    x[0] = 0
    x[1, 32:64] = 0
    x[2, 64:96] = 1e-42
    x[3, :32] *= np.float32(MIN_PEAK / 4)
    x[4, 96:128] *= np.float32(1e30)
    quantized = weights(element, 66, 6, 32, 3)
    check(quantized, 32, x)
    matrix = integer_matrix(quantized, True, 32)
    assert matrix is not None
    rounded = round_activations(x, matrix.groups)
    assert not rounded[0].any()
    assert not rounded[2, 64:96].any()
    assert not rounded[3, :32].any()


@pytest.mark.parametrize("backend", [native, numpy], ids=lambda b: b.name)
@pytest.mark.parametrize("unusual", [np.nan, np.inf, -np.inf])
def test_a_row_with_nan_or_infinity_is_nan(unusual: float, backend: Backend) -> None:
    quantized, x = weights(E.u4, 65, 3, 40, 8), activations(6, 120)
    x[1, 0], x[4, 79] = unusual, unusual
    found = product(backend, quantized, 32, x)
    assert np.isnan(found[[1, 4]]).all()
    usual = [0, 2, 3, 5]
    np.testing.assert_allclose(found[usual], emulated(quantized, 32, x[usual]), rtol=1e-5, atol=1e-5)


def test_it_is_near_the_product_of_f32() -> None:
    """Rounding and grouping cost less than 1 % of accuracy."""
    for element in OFFSETS:
        quantized, x = weights(element, 64, 4, 128, "random"), activations(7, 512)
        exact = product(native, quantized, 0, x)
        for size, most in ((32, 7e-3), (128, 9e-3)):
            error = product(native, quantized, size, x) - exact
            assert 1e-4 < np.sqrt((error**2).mean() / (exact**2).mean()) < most


@pytest.mark.parametrize("count", [1, 6])
def test_fused_layers(count: int) -> None:
    """Fuse a scale and bias of columns, a residual, and an activation."""
    quantized, x = weights(E.u4, 128, 2, 32, 8), activations(count, 64)
    scale, shift, other = activations(1, 128) + 2, activations(128), activations(count, 128)
    unknown = Value.unknown(E.f32, PartialShape([count, 128]))
    kernel: Any = kernel_of(native, quantized, 32)
    steps = [("Multiply-1", scale), ("Add-1", shift), ("Add-1", None), ("ReLU-1", ...)]
    for name, row in steps:
        more = [] if row is ... else [unknown if row is None else Value.constant(row)]
        kernel = kernel.fuse(layer(name), [unknown, *more], 0)
        assert kernel is not None
    with native.around():
        found = kernel(x, np.empty(0), scale, shift, other)
    wanted = multiply_add(emulated(quantized, 32, x), scale, shift) + other
    np.testing.assert_array_equal(found, np.maximum(wanted, 0))


def test_weights_that_are_no_integers_are_multiplied_as_they_are() -> None:
    fractions = weights(E.u8, 64, 2, 64, 2.5)
    beyond = weights(E.u4, 64, 2, 64, 256)
    for quantized in (fractions, beyond):
        x = activations(3, 128)
        assert integer_matrix(quantized, True, 32) is None
        for backend in (native, numpy):
            exact = product(backend, quantized, 0, x)
            np.testing.assert_array_equal(product(backend, quantized, 32, x), exact)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
