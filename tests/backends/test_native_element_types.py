"""Element-wise layers of the native backend equal the reference for all types, broadcasts and memory layouts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime import opset16
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

if "native" not in available():
    pytest.skip("native is not installed", allow_module_level=True)

RNG = np.random.default_rng(0)
BITS = RNG.integers(0, 1 << 32, (2, 5000), np.uint32).view(np.float32)
ENDS = np.float32(
    [
        0,
        -0.0,
        1,
        -1,
        2,
        3.5,
        -3.5,
        np.inf,
        -np.inf,
        np.nan,
        1e38,
        -1e38,
        1e-45,
        -1e-45,
        3e-39,
        1e30,
        7e-30,
        0.1,
    ]
)
DATA = (2, 7, 33, 35)
OPERANDS: list[tuple[int, ...]] = [DATA, (7, 1, 1), (35,), (1,), (33, 1), (2, 1, 33, 1), ()]
ORDER = [0, 3, 1, 2]
REALS = np.concatenate([ENDS, BITS[0], *(np.float32(RNG.uniform(-n, n, 5000)) for n in (300, 3e9))])
HALVES = np.arange(1 << 16, dtype=np.uint16)
SOURCES = {
    "f32": np.concatenate(
        [REALS, np.float32([65519, 65520, 255.9, -0.9, 5.96e-8, 2.9e-8, 2**31, -(2**31), 2**63])]
    ),
    "f64": REALS[np.isfinite(REALS)].astype(np.float64) * (1 + 1e-9),
    "f16": HALVES.view(np.float16),
    "bf16": HALVES.view(ml_dtypes.bfloat16),
    "boolean": RNG.integers(0, 2, 5001) > 0,
    "u8": RNG.integers(0, 256, 5001).astype(np.uint8),
    "i8": RNG.integers(-128, 128, 5001).astype(np.int8),
    "i32": RNG.integers(-(2**31), 2**31, 5001).astype(np.int32),
    "i64": RNG.integers(-(2**63), 2**63 - 1, 5001),
}

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def outputs(build: Callable[..., ir.Node], arrays: Sequence[Array], backend: str, times: int) -> list[Array]:
    data = [op.parameter(list(x.shape), x.dtype.type) for x in arrays]
    compiled = ir.compile_model(ir.Model([build(*data)], data), backend=backend)
    return [compiled(list(arrays))[0] for _ in range(times)]


def check(build: Callable[..., ir.Node], *arrays: Array, relative: float = 0) -> None:
    """Compare runs, replays among them, with the reference, signs of zeros included."""
    (wanted,) = outputs(build, arrays, "reference", 1)
    for found in outputs(build, arrays, "native", 4):
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        if wanted.dtype.kind not in "fV":
            np.testing.assert_array_equal(found, wanted)
            continue
        a, b = found.astype(np.float64), wanted.astype(np.float64)
        np.testing.assert_allclose(a, b, relative, 1e-44 if relative else 0)
        if not relative:
            np.testing.assert_array_equal(np.signbit(a[~np.isnan(b)]), np.signbit(b[~np.isnan(b)]))


def numbers(*shape: int) -> Array:
    return RNG.standard_normal(shape, np.float32)


@pytest.mark.parametrize("name", ["mod", "floor_mod"])
def test_remainders_of_all_magnitudes(name: str) -> None:
    pairs = [np.concatenate([x.ravel(), bits]) for x, bits in zip(np.meshgrid(ENDS, ENDS), BITS, strict=True)]
    check(getattr(op, name), *pairs)
    check(getattr(op, name), BITS[0], BITS[0] * np.float32(1e-3))
    check(getattr(op, name), np.round(BITS[0]), np.full(5000, 3, np.float32))


@pytest.mark.parametrize("name", ["mod", "floor_mod"])
@pytest.mark.parametrize("shape", OPERANDS)
def test_remainders_of_broadcast_operands(name: str, shape: tuple[int, ...]) -> None:
    function, x, y = getattr(op, name), numbers(*DATA) * 50, numbers(*shape)
    check(function, x, y)
    check(lambda a, b: function(b, a), x, y)
    check(lambda a: function(op.constant(y), op.transpose(a, [0, 1, 3, 2])), x.transpose(0, 1, 3, 2).copy())


@pytest.mark.parametrize("shape", [*OPERANDS, (7,), (1, 7, 1, 1)])
def test_slopes_and_the_layers_around_them(shape: tuple[int, ...]) -> None:
    slope, x = op.constant(numbers(*shape)), numbers(*DATA)
    x.flat[:5] = np.nan, np.inf, -np.inf, 0, -0.0
    check(lambda a: op.prelu(a, slope), x)
    check(lambda a: op.relu(op.prelu(op.abs(a), slope)), x)
    check(lambda a: op.prelu(op.transpose(a, ORDER), slope), x.transpose(0, 2, 3, 1).copy())


@pytest.mark.parametrize("shape", [DATA, (600, 7)])
@pytest.mark.parametrize("opset", ["opset5", "opset1"])
def test_batch_normalization_by_constants(shape: tuple[int, ...], opset: str) -> None:
    parameters = [op.constant(x) for x in (*numbers(3, 7), RNG.uniform(0, 2, 7).astype(np.float32))]
    normalize = getattr(ir, opset).batch_norm_inference
    check(lambda x: normalize(x, *parameters, 1e-5), numbers(*shape))
    check(lambda x: op.relu(normalize(op.negative(x), *parameters, 1e-5)), numbers(*shape))


def scalar(x: float) -> ir.Node:
    return op.constant(np.float32(x))


ACTIVATIONS: dict[str, tuple[Callable[[ir.Node], ir.Node], float]] = {
    "SoftSign": (op.softsign, 0),
    "HardSigmoid": (lambda x: op.hard_sigmoid(x, scalar(0.2), scalar(0.5)), 0),
    "SoftPlus": (op.softplus, 5e-7),
    "Selu": (lambda x: op.selu(x, scalar(1.67), scalar(1.05)), 5e-7),
    "Elu": (lambda x: op.elu(x, 0.7), 5e-7),
}


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_from_the_smallest_numbers_to_infinity(name: str) -> None:
    build, relative = ACTIVATIONS[name]
    small = np.concatenate([RNG.uniform(-110, 110, 5000), -(10.0 ** RNG.uniform(-40, 0, 5000))])
    check(build, np.concatenate([ENDS, BITS[0], small.astype(np.float32)]), relative=relative)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", [*SOURCES, "i16", "u16", "u32", "u64"])
def test_conversions(source: str, target: str) -> None:
    x = SOURCES[source]

    def convert(a: ir.Node) -> ir.Node:
        return op.convert(a, target)

    check(convert, x)
    check(convert, x[5:18])
    check(lambda a: convert(op.transpose(a, [2, 1, 0])), x[: 7 * 9 * 11].reshape(7, 9, 11))
    check(lambda a: convert(op.broadcast(a, [300, 13])), x[5:18])


@pytest.mark.parametrize("shape", OPERANDS)
@pytest.mark.parametrize("name", ["mod", "floor_mod", "divide", "maximum", "minimum"])
@pytest.mark.parametrize(("dtype", "bits"), [(np.int64, 63), (np.int64, 52), (np.int64, 5), (np.int32, 31)])
def test_integers(name: str, shape: tuple[int, ...], dtype: Any, bits: int) -> None:
    x, y = (RNG.integers(-(2**bits), 2**bits - 1, some).astype(dtype) for some in (DATA, shape))
    x.flat[:4], y.flat[:1] = np.iinfo(dtype).min, -1
    x[x == 0], y[y == 0] = 7, 3
    check(getattr(op, name), x, y)
    check(getattr(op, name), y, x)


@pytest.mark.parametrize("count", [3, 5000])
def test_division_by_zero_is_refused_in_each_run(count: int) -> None:
    data = [op.parameter([count], np.int64) for _ in range(2)]
    model = ir.compile_model(ir.Model([op.divide(*data)], data), backend="native")
    x = np.arange(count)
    for divisor in (1, 0, 2, 1, 2, 0, 1):
        y = np.full(count, 2)
        y[-1] = divisor
        if divisor:
            np.testing.assert_array_equal(model([x, y])[0], x // y)
        else:
            with pytest.raises(ir.ExecutionError, match="b holds a 0"):
                model([x, y])


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.bool_])
@pytest.mark.parametrize("shape", [DATA, (33, 1), (1, 1, 33, 35), (1,)])
def test_selection_of_broadcast_elements(dtype: Any, shape: tuple[int, ...]) -> None:
    condition = RNG.integers(0, 2, shape) > 0
    for other in (DATA, (1,), (7, 1, 1), (35,)):
        x, y = (RNG.integers(-9, 9, some).astype(dtype) for some in (DATA, other))
        check(op.select, condition, x, y)
        check(op.select, condition, y, x)
    check(lambda c, a, b: op.select(c, op.transpose(a, ORDER), op.transpose(b, ORDER)), condition, *[
        RNG.integers(-9, 9, (2, 33, 35, 7)).astype(dtype) for _ in range(2)
    ])  # fmt: skip


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("depth", [0, 1, 29, 2900])
def test_classes(axis: int, kind: Any, depth: int) -> None:
    classes = RNG.integers(-12, 30, (13, 17)).astype(kind)
    for dtype in (np.float32, np.int8, np.int64):
        values = [op.constant(dtype(x)) for x in (1, -2)]
        length = op.constant(np.int64(depth))
        check(lambda x, a=length, b=values: op.one_hot(x, a, *b, axis), classes)
        check(lambda x, a=length, b=values: opset16.one_hot(x, a, *b, axis, "normalize"), classes)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 1000])
@pytest.mark.parametrize("is_right", [True, False])
def test_buckets(count: int, is_right: bool) -> None:
    buckets = np.sort(numbers(count))
    buckets[5:9] = buckets[5:6]
    x = np.concatenate([numbers(5000), ENDS, buckets])
    for kind in ("i32", "i64"):
        check(lambda a, b, kind=kind: op.bucketize(a, b, kind, is_right), x, buckets)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
