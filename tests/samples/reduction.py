"""Samples of reductions: ranks, axes and types."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

# OpenVINO's reference leaves f64 out, and its plugin computes it as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_constant": (1,)}
NUMERIC = (
    "ReduceSum-1", "ReduceMean-1", "ReduceProd-1", "ReduceMin-1", "ReduceMax-1", "ReduceL1-4", "ReduceL2-4",
)  # fmt: skip
LOGICAL = ("ReduceLogicalAnd-1", "ReduceLogicalOr-1")
NAN, INF = np.nan, np.inf


def real(*values: float, dtype: str = "f32") -> np.ndarray:
    return np.array(values, numbers(dtype=dtype).dtype)


def everywhere(name: str, dtype: str) -> list[Sample]:
    """Shapes and axes shared by all reductions."""
    x = numbers(2, 3, 4, dtype=dtype)
    return [
        case(name, x, ints(1), keep_dims=True),
        case(name, x, ints(-1, 0), keep_dims=False),
        case(name, x, ints(2, -3), keep_dims=True),
        case(name, x, ints(0, 1, 2, dtype="i32")),
        case(name, x, ints(0, 1, 2, dtype="u8"), keep_dims=True),
        case(name, numbers(2, 3, dtype=dtype), scalar(-2, "i8")),
        case(name, numbers(2, 3, dtype=dtype), scalar(1, "u64"), keep_dims=True),
        case(name, numbers(2, 3, dtype=dtype), ints(1, dtype="i16")),
        case(name, numbers(5, dtype=dtype), ints(0, dtype="u32")),
        case(name, numbers(1, dtype=dtype), ints(0, dtype="u16")),
        case(name, numbers(2, 0, 4, dtype=dtype), ints(1)),
        case(name, numbers(2, 0, 4, dtype=dtype), ints(0, 2), keep_dims=True),
        case(name, numbers(0, dtype=dtype), ints(0)),
        case(name, numbers(2, 3, 1, 2, 2, dtype=dtype), ints(3, 1), _constant=(1,)),
    ]


def numeric(name: str) -> list[Sample]:
    positive = {"low": 0.0, "high": 3.0}
    return [
        *everywhere(name, "f32"),
        # Of no axes, ReduceL1 and ReduceL2 take the absolute value in OpenVINO; the page says identity.
        case(name, numbers(2, 3, 4, **positive), ints()),
        case(name, numbers(2, 3, 4, **positive), ints(), keep_dims=True, _constant=(1,)),
        case(name, numbers(**positive), ints(), _constant=(1,)),
        case(name, numbers(2, 3, 4, 2, dtype="f64"), ints(3, 1), **F64),
        case(name, numbers(3, 40, dtype="f16", low=-1.2, high=1.2), ints(1)),
        case(name, numbers(3, 40, dtype="bf16", low=-1.2, high=1.2), ints(-1), keep_dims=True),
        # The plugin, which is asked where the reference lacks a type, wants constant axes.
        case(name, numbers(3, 4, dtype="i32"), ints(1), _constant=(1,)),
        case(name, numbers(3, 4, dtype="i64", low=-9, high=9), ints(1), keep_dims=True, _constant=(1,)),
        case(name, numbers(3, 4, dtype="u32"), ints(0), _constant=(1,)),
        case(name, numbers(3, 4, dtype="u64"), ints(0), _constant=(1,)),
        case(name, numbers(3, 4, dtype="i8"), ints(0, 1), _constant=(1,)),
        case(name, numbers(3, 4, dtype="u8"), ints(1), _constant=(1,)),
        case(name, numbers(3, 4, dtype="i16"), ints(1), _constant=(1,)),
        case(name, numbers(3, 4, dtype="u16"), ints(1), _constant=(1,)),
        case(name, numbers(2, 0, dtype="i32"), ints(1), _constant=(1,)),
        case(name, numbers(2, 0, dtype="f16"), ints(1)),
        case(name, numbers(2, 0, dtype="bf16"), ints(1)),
        case(name, real(1, NAN, 3), ints(0)),
        case(name, real(NAN, NAN), ints(0)),
        case(name, real(INF, 1, 2), ints(0)),
        case(name, real(-INF, INF), ints(0)),
        case(name, real(-INF, -INF), ints(0)),
    ]


SAMPLES = [
    *(sample for name in NUMERIC for sample in numeric(name)),
    *(sample for name in LOGICAL for sample in everywhere(name, "boolean")),
    # On integers over no axes, ReduceL2 fails in OpenVINO.
    *(case(name, numbers(3, 4, dtype="i32", low=0), ints()) for name in NUMERIC if name != "ReduceL2-4"),
    *(case(name, numbers(2, 3, dtype="boolean"), ints()) for name in LOGICAL),
    *(case(name, numbers(dtype="boolean"), ints(), _constant=(1,)) for name in LOGICAL),
    *(
        case(name, np.array(rows), ints(1))
        for name in LOGICAL
        for rows in (
            [[True, True], [True, False], [False, False]],
            [[False] * 9 + [True]],
            [[True] * 9 + [False]],
        )
    ),
    # The sums do not stay in the narrow type.
    case("ReduceMean-1", real(60000, 60000, dtype="f16"), ints(0)),
    case("ReduceL2-4", real(300, 300, dtype="f16"), ints(0)),
    case("ReduceSum-1", np.full((2, 5000), 0.1, np.float16), ints(1)),
    case("ReduceL2-4", np.ones((1, 5000), np.float16), ints(1)),
    case("ReduceSum-1", real(60000, 60000, dtype="f16"), ints(0)),
    case("ReduceSum-1", np.full(3, 2**30, np.int32), ints(0)),
    case("ReduceSum-1", np.full((3000, 2), 0.1, np.float32), ints(0)),
    # Integer means drop what follows the point, also below zero.
    case("ReduceMean-1", np.array([[-3, -4, 5], [7, -8, -9], [-1, -1, 0], [2, 2, 4]], np.int32), ints(1)),
    case("ReduceMean-1", np.array([[2**32 - 1, 2**32 - 1]], np.uint64), ints(1)),
    case(
        "ReduceMean-1",
        np.full(2, 2**31 - 1, np.int32),
        ints(0),
        _oracle="none",
        _expect=(np.array(2**31 - 1, np.int32),),
        _differs="OpenVINO's sum overflows, and its mean of two large numbers is negative",
    ),
    case(
        "ReduceMean-1",
        np.full((1, 200), 100, np.int8),
        ints(1),
        _oracle="none",
        _expect=(np.array([100], np.int8),),
        _differs="the plugin's sum stops at 127, and the reference leaves i8 out",
    ),
    case(
        "ReduceL2-4",
        np.array([[7, -8, -9]], np.int8),
        ints(1),
        _oracle="none",
        _expect=(np.array([13], np.int8),),
        _differs="the plugin's sum of squares stops at 127, and the reference leaves integers out",
    ),
    *(
        case(
            name,
            real(1, -2, 3),
            ints(),
            _oracle="none",
            _expect=(real(1, -2, 3),),
            _differs="OpenVINO takes absolute values; the page says that no axes mean identity",
        )
        for name in ("ReduceL1-4", "ReduceL2-4")
    ),
]
