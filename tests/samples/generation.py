"""Samples of Range and Eye: ascending, descending, empty, all types."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, scalar

# OpenVINO's reference leaves half of the types of version 1 out; its plugin adds the step up.
SUMS = {"_oracle": "plugin", "_rtol": 1e-6, "_differs": "the plugin adds the step up"}


def span(start: float, stop: float, step: float, *types: str, **attributes: Any) -> Sample:
    """A Range; version 4 if an output type is given."""
    three = types * 3 if len(types) == 1 else types
    inputs = [scalar(n, t) for n, t in zip((start, stop, step), three, strict=True)]
    return case("Range-4" if "output_type" in attributes else "Range-1", *inputs, **attributes)


RANGES = [
    span(2, 23, 3, "i32"),
    span(23, 2, -3, "i64"),
    span(0, 4, 1, "i64", _constant=(0, 2)),
    span(0, 4, 1, "i64", _constant=(0, 1, 2)),
    span(5, 0, 1, "i32"),
    span(0, 5, -1, "i32"),
    span(3, 3, 1, "i32"),
    span(1, 9, 2, "i8"),
    span(1, 9, 2, "u64"),
    span(1, 9, 2, "u8"),
    span(1, 9, 2, "i16"),
    span(1, 2, 0.25, "f32"),
    span(0, 1, 0.1, "f32"),
    span(1, 2, 0.3, "f16", **SUMS),
    span(1, 2, 0.25, "bf16"),
    span(2, -1, -0.3, "f64"),
    span(2, 23, 3, "i32", output_type="i32"),
    span(23, 2, -3, "i64", "i32", "f32", output_type="i32"),
    span(0.5, 5.9, 1.7, "f32", output_type="i32"),
    span(-0.9, 3.9, 1, "f32", output_type="i64"),
    span(-0.9, 3.9, 1, "f32", "f64", "f16", output_type="f64"),
    span(0, 1000, 300, "i32", output_type="i8"),
    span(10, 0, -3, "i32", output_type="u8"),
    span(0, 5, 1, "i32", output_type="u64", _constant=(0, 2)),
    span(0, 5, 1, "i64", output_type="f32", _constant=(0, 1, 2)),
    span(5, 0, 1, "i32", output_type="f16"),
    span(1, 2.5, 0.5, "f32", output_type="f32"),
    span(0, 1, 0.1, "f32", output_type="f32"),
    span(0.1, 300, 0.7, "f32", output_type="f16"),
    span(0.1, 30, 0.7, "f32", output_type="bf16"),
    span(0.1, 1, 0.3, "f64", output_type="f32"),
    span(0.1, 1, 0.3, "bf16", output_type="f64"),
    span(1, 0, -0.25, "f16", output_type="f16"),
    span(2**33, 2**33 + 9, 4, "i64", output_type="i64"),
]


def eye(
    rows: Any, columns: Any, diagonal: Any, *batch: Any, output_type: str = "f32", **fields: Any
) -> Sample:
    inputs = [np.array(n, "i8") if isinstance(n, int) else n for n in (rows, columns, diagonal)]
    shape = [np.array(b, "i8") for b in batch]
    return case("Eye-9", *inputs, *shape, output_type=output_type, **fields)


EYES = [
    eye(3, 4, 2),
    eye(3, 4, -1),
    eye(4, 3, 0, _constant=(0, 1)),
    eye(3, 3, -2, _constant=(0, 1, 2)),
    eye(2, 2, 5, [1, 2]),
    eye(2, 2, -5),
    eye(2, 3, 1, [2, 1, 3], _constant=(0, 1, 3)),
    eye(2, 2, 0, [], _constant=(3,)),
    eye(2, 2, 0, [2, 0], _constant=(3,)),
    eye(0, 4, 0),
    eye(1, 1, 0),
    eye(ints(3), ints(4), ints(1)),
    eye(scalar(3, "i32"), scalar(4, "i64"), scalar(1, "i32")),
    *(eye(2, 3, 1, output_type=t) for t in ("f64", "f16", "bf16", "i64", "i32", "i8", "u8", "i16", "u64")),
]

SAMPLES = [*RANGES, *EYES]
