"""Reductions: many ranks, axes and types."""

from __future__ import annotations

from harness.sample import case, ints, numbers, scalar

# OpenVINO's reference leaves f64 out, and its plugin computes it as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_differs": "the plugin computes f64 as f32"}

SAMPLES = [
    sample
    for name in ("ReduceSum-1", "ReduceProd-1")
    for sample in (
        case(name, numbers(2, 3, 4), ints(1), keep_dims=True),
        case(name, numbers(2, 3, 4), ints(-1, 0), keep_dims=False),
        case(name, numbers(2, 3, 4), ints(0, 1, 2, dtype="i32")),
        case(name, numbers(2, 3, 4), ints()),
        case(name, numbers(2, 3), scalar(-2, "i8")),
        case(name, numbers(5, dtype="i32"), ints(0)),
        case(name, numbers(2, 0, 4), ints(1)),
        case(name, numbers(2, 3, 4, 2, dtype="f64"), ints(3, 1), _constant=(1,), **F64),
        case(name, numbers(), ints(), _constant=(1,)),
    )
]
