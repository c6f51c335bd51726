"""Samples of arithmetic: signs, overflow, rounding, broadcasting, and values on which implementations disagree."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

NAN, INF = np.nan, np.inf
SIGNED = ("i8", "i16", "i32", "i64")
UNSIGNED = ("u8", "u16", "u32", "u64")

# Where OpenVINO's reference leaves f64 out, its plugin computes it as f32.
F64: dict[str, Any] = {
    "_oracle": "plugin",
    "_rtol": 1e-5,
    "_atol": 1e-6,
    "_differs": "the plugin computes f64 as f32",
}


def floats(*numbers: float, dtype: Any = np.float32) -> np.ndarray:
    return np.array(numbers, dtype)


def stated(name: str, *inputs: Any, expect: Any, why: str, **attributes: Any) -> Sample:
    """A sample with a stated result, where OpenVINO's is different or missing."""
    how = {"_oracle": "none", "_expect": (np.asarray(expect),), "_differs": why}
    return case(name, *inputs, **attributes, **how)


NO_PDPD = "OpenVINO reads the rule, and implements it in neither its reference nor its plugin"
SATURATES = "the reference leaves 8 bits out, and the plugin saturates"


def broadcasting(name: str, low: float = -3) -> list[Sample]:
    """Shapes and broadcasting rules shared by all binary operations."""
    how = {"low": low}
    found = [
        case(name, numbers(), numbers(seed=1, **how)),
        case(name, numbers(4, **how), numbers(**how)),
        case(name, numbers(2, 3, **how), numbers(2, 3, seed=1, **how), auto_broadcast="none"),
        case(name, numbers(8, 1, 6, 1, **how), numbers(7, 1, 5, seed=1, **how), auto_broadcast="numpy"),
        case(name, numbers(3, **how), numbers(2, 1, 2, 3, 3, seed=1, **how)),
        case(name, numbers(2, 0, 3, **how), numbers(1, 3, seed=1, **how)),
        case(name, numbers(2, 3, dtype="f16", **how), numbers(3, dtype="f16", seed=1, **how)),
        case(name, numbers(2, 3, dtype="bf16", **how), numbers(3, dtype="bf16", seed=1, **how)),
        case(name, numbers(2, 3, dtype="f64", **how), numbers(2, 1, dtype="f64", seed=1, **how), **F64),
        *(
            case(name, numbers(2, 4, dtype=t, low=1, high=9), numbers(4, dtype=t, seed=1, low=1, high=3))
            for t in (*SIGNED, *UNSIGNED)
            if name not in ("Power-1", "SquaredDifference-1") or t not in ("i8", "u8", "i16", "u16")
        ),
    ]
    if name == "Mod-1":
        a, b = ints(7, -7, 8, 9, 5, 4).reshape(2, 3), ints(4, -3)
        expect = ints(3, -3, 0, 0, 2, 1).reshape(2, 3)
        return [*found, stated(name, a, b, expect=expect, why=NO_PDPD, auto_broadcast="pdpd")]
    return [
        *found,
        case(name, numbers(2, 3, 4, **how), numbers(2, 3, seed=1, **how), auto_broadcast="pdpd"),
        case(name, numbers(2, 3, 4, **how), numbers(1, 3, 1, seed=1, **how), auto_broadcast="pdpd"),
        case(name, numbers(2, 3, **how), numbers(seed=1, **how), auto_broadcast="pdpd"),
        case(name, numbers(2, 3, **how), numbers(2, seed=1, **how), auto_broadcast="pdpd"),
        case(name, numbers(2, 3, 1, 2, **how), numbers(2, 3, 1, seed=1, **how), auto_broadcast="pdpd"),
    ]


SPECIAL = floats(-INF, -2.5, -1, -0.0, 0, 0.5, 1, 7, INF, NAN)
PAIRS = ("Add-1", "Subtract-1", "Multiply-1", "Divide-1")
OTHERS = ("Maximum-1", "Minimum-1", "Mod-1", "FloorMod-1", "SquaredDifference-1", "Power-1")
DIVIDENDS, DIVISORS = ints(7, -7, 7, -7, 6, -6, 0, 1), ints(2, 2, -2, -2, 3, 3, -5, -9)
I8 = ints(100, -100, 50, -128, dtype="i8")
U8 = ints(200, 3, 100, 255, dtype="u8")

ON_PAIRS = [
    *(s for name in (*PAIRS, *OTHERS) for s in broadcasting(name, low=0.5 if name == "Power-1" else -3)),
    *(case(name, SPECIAL[:, None], SPECIAL) for name in (*PAIRS, "Maximum-1", "Minimum-1")),
    # Whole numbers wrap around.
    case("Add-1", I8, I8),
    case("Add-1", U8, U8),
    case("Add-1", ints(2**31 - 1, -(2**31), dtype="i32"), ints(1, -1, dtype="i32")),
    case("Add-1", ints(2**63 - 1), ints(1)),
    case("Subtract-1", U8, U8[::-1]),
    case("Subtract-1", I8, I8[::-1]),
    case("Multiply-1", ints(100000, -100000, dtype="i32"), ints(100000, 3, dtype="i32")),
    stated("Multiply-1", I8, I8, expect=ints(16, 16, -60, 0, dtype="i8"), why=SATURATES),
    stated("Multiply-1", U8, U8, expect=ints(64, 9, 16, 1, dtype="u8"), why=SATURATES),
    stated("SquaredDifference-1", U8, U8[::-1], expect=ints(209, 193, 193, 209, dtype="u8"), why=SATURATES),
    stated("SquaredDifference-1", I8, I8[::-1], expect=ints(16, -28, -28, 16, dtype="i8"), why=SATURATES),
    # Quotients and remainders, of either sign.
    *(case("Divide-1", DIVIDENDS, DIVISORS, m_pythondiv=floor) for floor in (True, False)),
    *(case("Divide-1", DIVIDENDS.astype("i4"), DIVISORS.astype("i4"), m_pythondiv=f) for f in (True, False)),
    case("Divide-1", floats(1, -1, 0, 5.5), floats(0, 0, 0, -2), m_pythondiv=True),
    case("Divide-1", ints(7, 0, 255, dtype="u32"), ints(2, 3, 16, dtype="u32"), m_pythondiv=True),
    case(
        "Divide-1",
        numbers(2, 3, 4, dtype="i32", low=1, high=90),
        numbers(2, 3, dtype="i32", low=1),
        auto_broadcast="pdpd",
    ),
    stated(
        "Divide-1",
        ints(7, -7, -8, dtype="i8"),
        ints(2, dtype="i8"),
        expect=ints(3, -4, -4, dtype="i8"),
        why="the reference leaves 8 bits out, and the plugin truncates",
    ),
    *(case(name, DIVIDENDS, DIVISORS) for name in ("Mod-1", "FloorMod-1")),
    *(case(name, DIVIDENDS.astype("i1"), DIVISORS.astype("i1")) for name in ("Mod-1", "FloorMod-1")),
    *(
        case(name, floats(5.5, -5.5, 5.5, -5.5, 0), floats(2, 2, -2, -2, 3))
        for name in ("Mod-1", "FloorMod-1")
    ),
    case("FloorMod-1", floats(5, INF, 5, -5, 1e6, 1, -1e-9), floats(INF, 2, 0, INF, 0.1, NAN, 3)),
    case("FloorMod-1", numbers(3, 4, dtype="f16", high=9), numbers(4, dtype="f16", low=0.5, high=2)),
    stated(
        "Mod-1",
        floats(1e6, 5, -5, INF, 1),
        floats(0.1, INF, INF, 2, 0),
        expect=floats(0.08509884, 5, -5, NAN, NAN),
        why="the plugin computes a - trunc(a / b) * b, which is inexact",
    ),
    # Powers.
    case("Power-1", SPECIAL[:, None], floats(-1, -0.5, 0, 0.5, 1, 2, 3, NAN)),
    case("Power-1", floats(-8, -2, 0, 2), floats(3, 2, 0, -3)),
    case("Power-1", ints(3, -2, 10, 7, 0, 2, -1), ints(39, 31, 18, 0, 0, -1, -3)),
    case("Power-1", ints(2, 3, 0, -2, 7, -1, dtype="i32"), ints(40, 39, -1, 31, 3, -3, dtype="i32")),
    case("Power-1", ints(2, 3, 10, dtype="u32"), ints(31, 20, 9, dtype="u32")),
    case("Power-1", ints(2, 3, 10, dtype="u64"), ints(40, 20, 9, dtype="u64")),
    case("Power-1", ints(2, -3, 5, dtype="i8"), ints(6, 3, 2, dtype="i8")),
    case("Power-1", numbers(2, 3, low=0, high=2), scalar(2, "f32")),
    case("Power-1", numbers(2, 3, low=0, high=2, dtype="f16"), scalar(0.5, "f16")),
]

UNARY = (
    "Abs-1", "Acos-1", "Acosh-4", "Asin-1", "Asinh-4", "Atan-1", "Atanh-4", "Ceiling-1", "Cos-1", "Cosh-1",
    "Erf-1", "ErfInv-17", "Floor-1", "Log-1", "Negative-1", "Round-5", "Sign-1", "Sin-1", "Sinh-1", "Sqrt-1",
    "Tan-1", "Tanh-1",
)  # fmt: skip
DOMAIN = {"Acos-1": (-1, 1), "Asin-1": (-1, 1), "Atanh-4": (-0.9, 0.9), "ErfInv-17": (-0.6, 0.6)} | {
    "Log-1": (0.1, 9),
    "Sqrt-1": (0, 9),
    "Acosh-4": (1, 9),
}
# The nearest whole number to the result, not beyond what an integer can hold.
WHOLE = ints(0, 1, 2, 3, 5, 7, 10)


def inverse_of_erf(x: np.ndarray) -> np.ndarray:
    """Compute the inverse of erf by bisection."""

    def solve(wanted: float) -> float:
        low, high = 0.0, 7.0
        for _ in range(99):
            middle = (low + high) / 2
            below = math.erfc(middle) > 1 - abs(wanted)
            low, high = (middle, high) if below else (low, middle)
        return math.copysign(low if abs(wanted) < 1 else math.inf, wanted)

    return np.array([solve(float(n)) for n in x]).astype(x.dtype)


def unary(name: str) -> list[Sample]:
    """Shapes, types and special values shared by all unary operations."""
    low, high = DOMAIN.get(name, (-3, 3))
    how = {"low": low, "high": high}
    found = [
        case(name, numbers(**how)),
        case(name, numbers(7, **how)),
        case(name, numbers(2, 0, 3, **how)),
        case(name, numbers(2, 3, 4, **how)),
        case(name, numbers(1, 2, 3, 1, 2, **how)),
        case(name, numbers(6, dtype="f16", **how)),
        case(name, numbers(6, dtype="bf16", **how)),
        case(name, numbers(6, dtype="f64", **how), **F64),
        case(name, SPECIAL),
        case(name, np.linspace(-4, 4, 17, dtype=np.float32)),
    ]
    if name != "ErfInv-17":
        found += [case(name, WHOLE[2:5] if name == "Acosh-4" else WHOLE)]
        found += [case(name, ints(1, 2, 9, dtype="u32") if name == "Acosh-4" else ints(0, 1, dtype="i32"))]
    return found


# One more than the largest number that squares into i32, and its neighbours: where rounding could fail.
ROOTS = ints(0, 1, 2, 3, 6, 7, 12, 13, 46340**2, 46340**2 - 46340, 46340**2 - 46339, dtype="i32")
HALVES = floats(-4.5, -1.9, -1.5, -0.5, -0.0, 0.4, 0.5, 0.9, 1.5, 2.3, 2.5, 1000, -INF, NAN)

ON_NUMBERS = [
    *(s for name in UNARY for s in unary(name)),
    stated("Abs-1", ints(-128, -1, 127, dtype="i8"), expect=ints(-128, 1, 127, dtype="i8"), why=SATURATES),
    case("Abs-1", ints(-(2**31), -(2**31) + 1, dtype="i32")),
    case("Abs-1", ints(0, 200, dtype="u8")),
    case("Negative-1", ints(-5, 0, 7, dtype="i8")),
    case("Negative-1", ints(-(2**63), -5, 0, 7)),
    case("Negative-1", ints(-(2**31), 5, dtype="i32")),
    case("Sign-1", ints(-5, 0, 7, dtype="i8")),
    case("Sign-1", ints(0, 7, dtype="u8")),
    case("Sqrt-1", ROOTS),
    case("Sqrt-1", ROOTS.astype("u4")),
    case("Sqrt-1", ints(0, 6, 7, 100, 255, dtype="u8")),
    case("Erf-1", ints(-3, -1, 0, 1, 3, dtype="i8")),
    case("Tanh-1", ints(-3, -1, 0, 1, 3, dtype="i32")),
    case("Atanh-4", ints(-2, -1, 0, 1, 2, dtype="i32")),
    case("Floor-1", ints(-3, 0, 3, dtype="i8")),
    case("Ceiling-1", ints(-3, 0, 3, dtype="i16")),
    *(
        stated("ErfInv-17", x, expect=inverse_of_erf(x), why="the plugin is wrong by up to 0.2 %")
        for x in (
            np.array([0.65, 0.7, -0.84, 0.86, -0.98, -0.999, 1 - 1e-9, 1, 1e-12]),
            floats(0.65, 0.7, -0.84, 0.86, -0.98, -0.999, 0.9999999, -1),
        )
    ),
    *(case("Round-5", HALVES, mode=mode) for mode in ("half_to_even", "half_away_from_zero")),
    *(case("Round-5", HALVES.astype(np.float16), mode=m) for m in ("half_to_even", "half_away_from_zero")),
    case("Round-5", floats(0.49999997, -0.49999997, 8388609, 0.5), mode="half_away_from_zero"),
    case("Round-5", ints(-3, 0, 100, dtype="i8"), mode="half_away_from_zero"),
    case("Round-5", numbers(2, 3, dtype="bf16"), mode="half_away_from_zero"),
]

SUMS = [
    case("CumSum-3", ints(1, 2, 3, 4, 5).astype("f4"), scalar(0), exclusive=exclusive, reverse=reverse)
    for exclusive in (False, True)
    for reverse in (False, True)
] + [
    *(
        case("CumSum-3", numbers(2, 3, 4), scalar(axis, t), exclusive=exclusive, reverse=reverse)
        for axis, t in ((0, "i64"), (1, "i32"), (-1, "i64"), (-3, "i32"))
        for exclusive, reverse in ((False, False), (True, True))
    ),
    case("CumSum-3", numbers(2, 3, 1, 2, 2), scalar(2), exclusive=True),
    stated(
        "CumSum-3",
        numbers(2, 0, 3),
        scalar(1),
        exclusive=True,
        reverse=True,
        expect=numbers(2, 0, 3),
        why="the reference writes beyond an empty axis",
    ),
    case("CumSum-3", numbers(2, 0, 3), scalar(0)),
    *(
        case("CumSum-3", np.array([[False, True, False], [True, False, False]]), scalar(1), **how)
        for how in ({}, {"exclusive": True}, {"reverse": True}, {"exclusive": True, "reverse": True})
    ),
    case("CumSum-3", numbers(2, 3), scalar(-1), exclusive=0, reverse=1),
    case("CumSum-3", numbers(6, dtype="i32", low=-99, high=99), scalar(0), reverse=True),
    case("CumSum-3", numbers(6, dtype="i64"), scalar(0), exclusive=True),
    case("CumSum-3", numbers(4, 2, dtype="i8", low=50, high=100), scalar(0), _oracle="plugin"),
    case("CumSum-3", numbers(4, 2, dtype="u8", low=50, high=100), scalar(0)),
    case("CumSum-3", numbers(3, 5, dtype="f16"), scalar(1)),
    case("CumSum-3", numbers(3, 5, dtype="bf16"), scalar(1)),
    case("CumSum-3", numbers(3, 5, dtype="f64"), scalar(1), **F64),
    case("CumSum-3", floats(1, INF, 2, NAN, 3), scalar(0)),
]

IDS = ints(0, 0, 2, 3)
SEGMENTS = [
    case("SegmentMax-16", floats(1, 5, 2, 4), IDS, fill_mode="ZERO", _constant=(1,)),
    case("SegmentMax-16", floats(-1, -5, -2, -4), IDS, fill_mode="LOWEST", _constant=(1,)),
    case("SegmentMax-16", numbers(4, 2, 3), IDS, fill_mode="ZERO", _constant=(1,)),
    case("SegmentMax-16", numbers(4, 2, 1, 3), ints(0, 1, 1, 1, dtype="i32"), fill_mode="ZERO"),
    case("SegmentMax-16", numbers(4, 2), IDS, scalar(2), fill_mode="ZERO", _constant=(1, 2)),
    case("SegmentMax-16", numbers(4, 2), IDS, scalar(6, "i32"), fill_mode="LOWEST", _constant=(1, 2)),
    case("SegmentMax-16", numbers(4, 2), IDS, scalar(6), fill_mode="ZERO", _constant=(2,)),
    case("SegmentMax-16", numbers(4, 2), IDS, scalar(6), fill_mode="ZERO"),
    case("SegmentMax-16", numbers(4, dtype="i32"), IDS, fill_mode="LOWEST", _constant=(1,)),
    case("SegmentMax-16", numbers(4, dtype="i8"), IDS, fill_mode="LOWEST", _constant=(1,)),
    case("SegmentMax-16", numbers(4, 3, dtype="u8"), IDS, fill_mode="LOWEST", _constant=(1,)),
    case("SegmentMax-16", numbers(4, 3, dtype="f16"), IDS, fill_mode="ZERO", _constant=(1,)),
    case("SegmentMax-16", numbers(4, 3, dtype="bf16"), IDS, fill_mode="ZERO", _constant=(1,)),
    case("SegmentMax-16", floats(1, 5, -INF, INF), IDS, fill_mode="ZERO", _constant=(1,)),
    stated(
        "SegmentMax-16",
        floats(1, 5, 2, 4, dtype=np.float16),
        IDS,
        fill_mode="LOWEST",
        expect=floats(5, -65504, 2, 4, dtype=np.float16),
        why="the plugin fills f16 with the lowest number of f32, which is infinite there",
        _in_f32="the lowest number of f32 is infinite in f16",
    ),
]

SAMPLES = ON_PAIRS + ON_NUMBERS + SUMS + SEGMENTS
