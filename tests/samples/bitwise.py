"""Samples of bitwise operations on integers and booleans."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers

TYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "boolean")
WIDE = {"low": -100, "high": 100}

UFUNC = {"BitwiseAnd-13": np.bitwise_and, "BitwiseOr-13": np.bitwise_or, "BitwiseXor-13": np.bitwise_xor}

LONG = {
    name: {"_expect": (expected,), "_differs": "the reference lacks i64, which the plugin computes as i32"}
    for name, expected in (
        ("BitwiseLeftShift-15", ints(2**40, -(2**43), 2**62)),
        ("BitwiseRightShift-15", ints(0, -(2**37), 2**62)),
    )
}


def pdpd(name: str, a: np.ndarray, b: np.ndarray) -> Sample:
    expected = UFUNC[name](a, b.reshape(b.shape + (1,) * (a.ndim - b.ndim)))
    how = {"_oracle": "none", "_differs": "the reference declines, the plugin mixes up the axes"}
    return case(name, a, b, auto_broadcast="pdpd", _expect=(expected,), **how)


LOGIC = [
    sample
    for name in ("BitwiseAnd-13", "BitwiseOr-13", "BitwiseXor-13")
    for sample in (
        *(case(name, numbers(2, 5, dtype=t, **WIDE), numbers(5, dtype=t, seed=1, **WIDE)) for t in TYPES),
        case(name, numbers(3, dtype="i32"), numbers(3, dtype="i32", seed=1), auto_broadcast="none"),
        pdpd(name, numbers(2, 3, 4, dtype="i32"), numbers(2, 3, dtype="i32", seed=1)),
        pdpd(name, numbers(2, 3, 2, dtype="u8", high=200), numbers(1, 3, 1, dtype="u8", seed=1, high=200)),
        case(name, numbers(dtype="i64"), numbers(dtype="i64", seed=1)),
        case(name, numbers(2, 0, dtype="u8"), numbers(1, 1, dtype="u8")),
        case(name, numbers(2, 1, 2, 1, 3, dtype="i32", **WIDE), numbers(2, 2, 1, dtype="i32", **WIDE)),
    )
] + [
    *(case("BitwiseNot-13", numbers(7, dtype=t, **WIDE)) for t in TYPES),
    case("BitwiseNot-13", numbers(dtype="i32")),
    case("BitwiseNot-13", numbers(2, 0, 3, dtype="u8")),
    case("BitwiseNot-13", numbers(2, 3, 1, 2, dtype="i64", **WIDE)),
]

PLACES = {"low": 0, "high": 3, "seed": 1}
SHIFTS = [
    sample
    for name in ("BitwiseLeftShift-15", "BitwiseRightShift-15")
    for sample in (
        *(
            case(name, numbers(2, 5, dtype=t, low=-15, high=15), numbers(5, dtype=t, **PLACES))
            for t in TYPES[:-1]
        ),
        case(name, numbers(3, dtype="i32"), numbers(3, dtype="i32", **PLACES), auto_broadcast="none"),
        case(name, numbers(dtype="i32", low=9, high=9), numbers(dtype="i32", **PLACES)),
        case(name, numbers(2, 0, dtype="i32"), numbers(1, 1, dtype="i32", **PLACES)),
        case(name, numbers(2, 1, 2, 1, 3, dtype="i32", **WIDE), numbers(2, 2, 1, dtype="i32", **PLACES)),
        case(name, ints(1, -1, 5, 2**30, dtype="i32"), ints(30, 31, 29, 1, dtype="i32")),
        case(name, ints(200, 255, 1, dtype="u8"), ints(1, 7, 7, dtype="u8")),
        case(name, ints(1, -(2**40), 2**62), ints(40, 3, 0), _oracle="none", **LONG[name]),
    )
]

SAMPLES = LOGIC + SHIFTS
