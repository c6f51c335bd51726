"""Samples of OneHot: axes, classes out of range, types."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType


def hot(op: str, indices: Any, depth: Any, axis: int = -1, dtype: str = "f32", **more: Any) -> Sample:
    values = np.array([1, 0] if dtype == "boolean" else [5, 2]).astype(ElementType.parse(dtype).dtype)
    return case(op, indices, depth, values[0], values[1], axis=axis, **more)


SAMPLES = [
    sample
    for op in ("OneHot-1", "OneHot-16")
    for sample in (
        hot(op, ints(0, 3, 1, 2), scalar(3)),
        hot(op, ints(0, 3, 1, 2), scalar(3), 0, _constant=(1,)),
        hot(op, np.array([[0, 3, 1], [1, 2, 4]]), scalar(3), 1),
        hot(op, np.array([[0, 3, 1], [1, 2, 4]]), scalar(3), -3, _constant=(1,)),
        hot(op, np.array([[0, 3, 1], [1, 2, 4]], "i4"), scalar(2, "i32"), -2),
        hot(op, scalar(1), scalar(3)),
        hot(op, scalar(1), scalar(3), 0),
        hot(op, scalar(1, "i32"), scalar(3, "i64")),
        hot(op, ints(0, -1, -3, -4, 2, 3), scalar(3)),
        hot(op, ints(1), scalar(0)),
        hot(op, np.zeros((0, 2), "i8"), scalar(3), 0),
        hot(op, numbers(2, 1, 3, 2, dtype="i64", low=0), scalar(4), 2),
        *(
            hot(op, ints(1, 0), scalar(2), dtype=dtype)
            for dtype in ("f64", "f16", "bf16", "i64", "i32", "i8", "u8", "i16", "u16", "boolean")
        ),
    )
] + [
    hot("OneHot-16", ints(0, -1, -3, -4, 2, 3), scalar(3), negative_indices_mode="normalize"),
    hot("OneHot-16", ints(-1, -2, dtype="i32"), scalar(2, "i32"), 0, negative_indices_mode="normalize"),
    hot("OneHot-16", ints(-1, 1), scalar(2), negative_indices_mode="ignore_negative"),
]
