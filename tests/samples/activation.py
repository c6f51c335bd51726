"""Samples of activation functions: shapes, types, and extreme values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers, scalar

from ir_runtime.ir.tensor import Array

NAN, INF = np.nan, np.inf
ENDS = np.array([-INF, -20, -3, -0.5, -0.0, 0, 1e-6, 0.5, 3, 20, INF, NAN], np.float32)
HUGE = np.array([-1e30, -100, 100, 1e30], np.float32)
# OpenVINO's reference leaves f64 out, and its plugin computes it as f32.
F64: dict[str, Any] = {"_oracle": "plugin", "_rtol": 1e-5, "_atol": 1e-6}


def pointwise(name: str, **attributes: Any) -> list[Sample]:
    """Samples shared by all element-wise functions."""
    return [
        case(name, numbers(2, 3), **attributes),
        case(name, numbers(), **attributes),
        case(name, numbers(7, low=-9, high=9), **attributes),
        case(name, numbers(2, 1, 3, 2), **attributes),
        case(name, numbers(1, 2, 3, 2, 2), **attributes),
        case(name, numbers(2, 0, 3), **attributes),
        case(name, ENDS, **attributes),
        case(name, HUGE, **attributes),
        case(name, numbers(3, 5, dtype="f16", low=-8, high=8), **attributes),
        case(name, numbers(3, 5, dtype="bf16", low=-8, high=8), **attributes),
        case(name, numbers(3, 5, dtype="f64", low=-8, high=8), **attributes, **F64),
    ]


def integers(name: str, *dtypes: str, **attributes: Any) -> list[Sample]:
    return [case(name, numbers(3, 4, dtype=d, low=-8, high=8), **attributes) for d in dtypes]


def prelu() -> Iterator[Sample]:
    def slope(*shape: int, dtype: str = "f32") -> Array:
        return numbers(*shape, dtype=dtype, low=-1, high=2, seed=1)

    for data, shapes in {
        (2, 3, 4): [(), (1,), (3,), (4,), (3, 1), (3, 4), (2, 3, 4), (1, 3, 1), (2, 1, 1), (1, 1, 1, 1)],
        (5,): [(5,), (1,)],
        (3, 3): [(3,), (1, 3), (3, 1)],
        (4, 3, 3): [(3,)],
        (1, 2, 2, 2, 2): [(2,), (2, 1, 1, 1)],
        (2, 0, 3): [(3,), (1,)],
    }.items():
        for shape in shapes:
            yield case("PReLU-1", numbers(*data), slope(*shape))
    for shape in ((), (1,)):
        expected = {"_expect": (np.array(-1, np.float32),), "_differs": "the reference crashes"}
        half = np.full(shape, 0.5, np.float32)
        yield case("PReLU-1", scalar(-2, "f32"), half, _oracle="none", **expected)
    for dtype in ("f16", "bf16", "i32", "i64", "i8", "u8"):
        yield case("PReLU-1", numbers(2, 3, 2, dtype=dtype), slope(3, dtype=dtype))
    yield case("PReLU-1", numbers(2, 3, 2, dtype="f64"), slope(3, dtype="f64"), _constant=(1,), **F64)
    yield case("PReLU-1", ENDS, slope(1))
    yield case("PReLU-1", np.array([NAN, -INF, -0.0], np.float32), np.zeros(1, np.float32))


def settable(dtype: str) -> Iterator[Sample]:
    """Samples of functions with parameter inputs, which the plugin, the only oracle, requires as constants."""
    plain = precise(dtype) | {"_constant": (1, 2)}
    for shape in ((2, 3), (), (7,), (2, 1, 3, 2), (1, 2, 3, 2, 2), (2, 0, 3)):
        x = numbers(*shape, dtype=dtype, low=-5, high=5)
        for alpha, beta in ((0.2, 0.5), (1.6732632, 1.050701), (-0.3, 0.1)):
            yield case("HardSigmoid-1", x, scalar(alpha, dtype), scalar(beta, dtype), **plain)
            yield case("Selu-1", x, scalar(alpha, dtype), scalar(beta, dtype), **plain)
            yield case("Selu-1", x, real(alpha, dtype=dtype), real(beta, dtype=dtype), **plain)
    if dtype == "f32":
        # The plugin gives 1 for NaN.
        yield case("HardSigmoid-1", ENDS[:-1], scalar(0.25, dtype), scalar(0.5, dtype), **plain)
        yield case("Selu-1", ENDS, real(1.5), real(0.5), **plain)


def precise(dtype: str) -> dict[str, Any]:
    return F64 if dtype == "f64" else {}


def real(*values: float, dtype: str = "f32") -> Array:
    return np.array(values, numbers(dtype=dtype).dtype)


EVERY = ("i64", "i32", "i16", "i8", "u64", "u32", "u16", "u8")

SAMPLES = [
    *pointwise("ReLU-1"),
    *integers("ReLU-1", *EVERY),
    *pointwise("Clamp-1", min=-1.5, max=1.25),
    *integers("Clamp-1", *EVERY, min=-1.5, max=1.25),
    *integers("Clamp-1", *EVERY, min=2.5, max=5),
    *integers("Clamp-1", "i64", "i32", "i8", "u8", min=-1e20, max=1e20),
    *integers("Clamp-1", "u8", "i8", min=-1000, max=-500),
    case("Clamp-1", ENDS, min=-1e38, max=INF),
    case("Clamp-1", ENDS, min=2, max=2),
    *pointwise("HSigmoid-5"),
    *pointwise("HSwish-4"),
    *pointwise("Sigmoid-1"),
    *pointwise("Exp-1"),
    *pointwise("SoftPlus-4"),
    *pointwise("Mish-4"),
    *pointwise("SoftSign-9"),
    *pointwise("Elu-1", alpha=1),
    *pointwise("Elu-1", alpha=0.25),
    case("Elu-1", numbers(2, 3), alpha=0),
    case("Elu-1", numbers(2, 3), alpha=-0.5),
    *pointwise("Identity-16"),
    *integers("Identity-16", *EVERY, "boolean"),
    *pointwise("Gelu-7"),
    *pointwise("Gelu-7", approximation_mode="erf"),
    *pointwise("Gelu-7", approximation_mode="tanh"),
    *(sample for sample in pointwise("Gelu-2") if sample.inputs[0] is not ENDS),
    # The plugin, which is asked here, has NaN at infinity; version 7 of the reference has not.
    case("Gelu-2", ENDS[1:-2]),
    *pointwise("Swish-4"),
    *(case("Swish-4", numbers(2, 3), scalar(beta, "f32")) for beta in (0, 0.5, 1, 2, 100, -1)),
    case("Swish-4", numbers(), scalar(2, "f32")),
    case("Swish-4", ENDS, scalar(1.7, "f32")),
    case("Swish-4", numbers(2, 3, dtype="f16"), scalar(1.7, "f16")),
    case("Swish-4", numbers(2, 3, dtype="bf16"), scalar(1.7, "bf16")),
    *(case("SoftMax-8", numbers(2, 3, 4), axis=axis) for axis in (0, 1, 2, -1, -2, -3)),
    case("SoftMax-8", numbers(2, 3, 4)),
    case("SoftMax-8", numbers(5), axis=0),
    case("SoftMax-8", numbers(), axis=0),
    case("SoftMax-8", numbers(), axis=-1),
    case("SoftMax-8", numbers(2, 3, 1, 2, 2), axis=1),
    case("SoftMax-8", numbers(2, 0, 3), axis=1),
    case("SoftMax-8", numbers(2, 0, 3), axis=0),
    case("SoftMax-8", numbers(2, 1), axis=1),
    *(case("SoftMax-8", numbers(3, 6, dtype=d), axis=-1) for d in ("f64", "f16", "bf16")),
    *(
        case("SoftMax-8", np.array([x], np.float32), axis=1)
        for x in ([1e4, 1e4, -1e4], [1, -INF, 2], [-INF, -INF], [1, INF, 2], [NAN, 1])
    ),
    *(case("SoftMax-1", numbers(2, 3, 4), axis=axis) for axis in (0, 1, 2)),
    case("SoftMax-1", numbers(5), axis=0),
    case("SoftMax-1", numbers(), axis=0),
    case("SoftMax-1", numbers(2, 3, 1, 2, 2), axis=3),
    case("SoftMax-1", numbers(2, 0, 3), axis=1),
    *(case("SoftMax-1", numbers(3, 6, dtype=d), axis=1) for d in ("f64", "f16", "bf16")),
    case(
        "SoftMax-1",
        np.zeros((2, 4), np.float32),
        _oracle="none",
        _expect=(np.full((2, 4), 0.25, np.float32),),
        _differs="without an axis, OpenVINO takes 0; the page says 1",
    ),
    *(case("LogSoftmax-5", numbers(2, 3, 4), axis=axis) for axis in (0, 1, 2, -1, -2, -3)),
    case("LogSoftmax-5", numbers(2, 3, 4)),
    case("LogSoftmax-5", numbers(5), axis=0),
    case("LogSoftmax-5", numbers(), axis=-1),
    case("LogSoftmax-5", numbers(2, 3, 1, 2, 2), axis=1),
    case("LogSoftmax-5", numbers(2, 0), axis=1),
    *(case("LogSoftmax-5", numbers(3, 6, dtype=d), axis=-1) for d in ("f16", "bf16")),
    case("LogSoftmax-5", numbers(3, 6, dtype="f64"), axis=-1, **F64),
    *(
        case("LogSoftmax-5", np.array([x], np.float32), axis=1)
        for x in ([1e4, 1e4, -1e4], [1, -INF, 2], [-INF, -INF], [50, -60, 1])
    ),
    *prelu(),
    *(sample for d in ("f32", "f16", "bf16", "f64") for sample in settable(d)),
]
