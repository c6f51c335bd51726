"""Samples of Select, NonZero and Bucketize."""

from __future__ import annotations

import numpy as np
from harness.sample import case, ints, numbers, scalar


def truths(*shape: int):
    return numbers(*shape, dtype="boolean")


NAN, INF = np.nan, np.inf

SELECT = [
    case("Select-1", truths(2, 3), numbers(2, 3), numbers(2, 3, seed=1)),
    case("Select-1", truths(2, 3), numbers(2, 3), numbers(2, 3, seed=1), auto_broadcast="none"),
    case("Select-1", truths(3), numbers(2, 3), numbers(2, 1, seed=1)),
    case("Select-1", truths(2, 1, 3), numbers(4, 1, dtype="i64"), numbers(dtype="i64", seed=1)),
    case("Select-1", truths(2, 3, 4), numbers(), numbers(1)),
    case("Select-1", truths(), numbers(3, dtype="i32"), numbers(3, dtype="i32", seed=1)),
    case("Select-1", truths(), numbers(), numbers(seed=1)),
    case("Select-1", truths(2, 0), numbers(1, dtype="u8"), numbers(2, 1, dtype="u8")),
    case("Select-1", truths(4), numbers(4, dtype="boolean"), numbers(4, dtype="boolean", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="f16"), numbers(dtype="f16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="bf16"), numbers(4, dtype="bf16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="f64"), numbers(4, dtype="f64", seed=1)),
    case("Select-1", truths(5), numbers(5, dtype="i8"), scalar(-1, "i8")),
    case("Select-1", [False, True, False], ints(1, 1, 1), ints(2, -1, 4)),
    case("Select-1", truths(2, 3), numbers(2, 3, 4), numbers(2, 3, seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(2), numbers(2, 3), numbers(2, 3, seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(1, 3), numbers(2, 3, 4), numbers(seed=1), auto_broadcast="pdpd"),
    case("Select-1", truths(2, 3, 1, 1, 2), numbers(2, 3, 2, 1, 2), numbers(1, 1, 2, 2, 1, seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="u16"), numbers(4, dtype="u16", seed=1)),
    case("Select-1", truths(4), numbers(4, dtype="u64"), numbers(4, dtype="u64", seed=1)),
]

NONZERO = [
    case("NonZero-3", np.array([[1, 0], [1, 1]], np.float32)),
    case("NonZero-3", numbers(2, 3, 4, dtype="i32", low=-1, high=1), output_type="i32"),
    case("NonZero-3", numbers(7, dtype="boolean"), output_type="i64"),
    case("NonZero-3", np.array([0, -0.0, NAN, INF, 1e-30, -2], np.float32)),
    case("NonZero-3", np.array([0, 2, 0, -1], np.float16)),
    case("NonZero-3", numbers(5, dtype="bf16").round()),
    case("NonZero-3", np.array([0, 2, 0, -1], np.float64)),
    case("NonZero-3", numbers(2, 1, 3, 2, 2, dtype="u8", high=1)),
    case("NonZero-3", numbers(6, dtype="i8", low=0, high=1)),
    case("NonZero-3", numbers(6, dtype="u64", high=1)),
    case("NonZero-3", np.zeros((2, 3), np.int64)),
    case("NonZero-3", numbers(2, 0, 3)),
    case("NonZero-3", scalar(3, "f32")),
    case("NonZero-3", scalar(0, "f32")),
    case("NonZero-3", np.array([[0, 3, 0], [5, 0, 0]], np.int64), _constant=(0,)),
]

BOUNDS = ints(0, 5, 10).astype(np.float32)
BUCKETIZE = [
    *(
        case("Bucketize-3", numbers(*shape, low=-3, high=14), BOUNDS, output_type=t, with_right_bound=right)
        for shape, t in (((), "i64"), ((6,), "i32"), ((2, 0), "i64"), ((2, 3, 4), "i64"))
        for right in (True, False)
    ),
    *(
        case("Bucketize-3", np.array([[3, 50], [10, -1]], np.int32), ints(0, 5, 10), output_type=t)
        for t in ("i32", "i64")
    ),
    *(
        case(
            "Bucketize-3",
            np.array([0, 5, 4.5, 10, INF, -INF, NAN], np.float32),
            BOUNDS,
            output_type="i64",
            with_right_bound=right,
        )
        for right in (True, False)
    ),
    case("Bucketize-3", ints(0, 5, 7), BOUNDS, output_type="i64", with_right_bound=False),
    case("Bucketize-3", numbers(5, high=20), ints(0, 5, 10, dtype="i32"), output_type="i32"),
    case("Bucketize-3", numbers(5, dtype="f16"), numbers(1, dtype="f16"), output_type="i64"),
    case("Bucketize-3", numbers(5, dtype="bf16"), BOUNDS, output_type="i64"),
    case("Bucketize-3", numbers(5, dtype="u8", high=20), ints(1, 5, dtype="i8"), output_type="i64"),
    case("Bucketize-3", numbers(2, 1, 2, 2, 3), ints().astype(np.float32), output_type="i64"),
    case("Bucketize-3", numbers(2, 3, dtype="i64", high=20), ints(-1, 1), output_type="i64"),
]

# Bounds that nothing says anything about: OpenVINO searches by halves. The longer ones are more than kernels compare one by one.
UNSORTED = [
    np.array(bounds, np.float32)
    for bounds in (
        [3, 1, 2],
        [1, 5, 2, 4, 3, 0],
        [NAN],
        [1, NAN, 3],
        [NAN, 1, 2],
        [1, 2, NAN],
        numbers(129, low=-3, high=14),
        [NAN, *numbers(300, low=-3, high=14)],
    )
]
BUCKETIZE += [
    case(
        "Bucketize-3",
        np.append(numbers(*shape, low=-3, high=14), np.float32(NAN)),
        bounds,
        output_type="i64",
        with_right_bound=right,
    )
    for bounds in UNSORTED
    for right in (True, False)
    for shape in ((6,), (300,))
]
BUCKETIZE.append(
    case(
        "Bucketize-3",
        numbers(9, dtype="i32", low=-3, high=14),
        ints(5, 0, 10, dtype="i32"),
        output_type="i32",
    )
)

SAMPLES = SELECT + NONZERO + BUCKETIZE
