"""Bits of integers and booleans."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, numbers

TYPES = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "boolean")
WIDE = {"low": -100, "high": 100}

UFUNC = {"BitwiseAnd-13": np.bitwise_and, "BitwiseOr-13": np.bitwise_or, "BitwiseXor-13": np.bitwise_xor}


def pdpd(name: str, a: np.ndarray, b: np.ndarray) -> Sample:
    expected = UFUNC[name](a, b.reshape(b.shape + (1,) * (a.ndim - b.ndim)))
    how = {"_oracle": "none", "_differs": "the reference declines, the plugin mixes up the axes"}
    return case(name, a, b, auto_broadcast="pdpd", _expect=(expected,), **how)


SAMPLES = [
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
