"""Samples of TopK and SearchSorted: modes, orders, axes, ties, all types."""

from __future__ import annotations

from itertools import product

import numpy as np
from harness.sample import Sample, case, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

TYPES = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8")
TIES = np.array([[3, 1, 3, 2, 1, 3], [0, 0, 0, 0, 0, 0], [5, 4, 3, 2, 1, 0]])


def shuffled(dtype: str) -> Array:
    """Distinct values: the reference lacks some types, and the plugin orders ties arbitrarily."""
    order = np.random.default_rng(0).permutation(20).reshape(4, 5)
    return order.astype(ElementType.parse(dtype).dtype)


def selections(name: str) -> list[Sample]:
    """Samples shared by all versions."""
    i64 = {"index_element_type": "i64"}
    return [
        *(
            case(name, TIES.astype(np.int32), scalar(k), axis=1, mode=mode, sort=sort)
            for k, mode, sort in product((1, 4, 6), ("max", "min"), ("value", "index"))
        ),
        *(
            case(name, TIES.astype(np.float32), scalar(2), axis=axis, mode=mode, sort="value", **i64)
            for axis, mode in product((0, -1), ("max", "min"))
        ),
        case(name, numbers(2, 3, 4), scalar(2, "i32"), axis=1, mode="max", sort="value"),
        case(name, numbers(2, 3, 4, 2), scalar(3, "i8"), axis=-3, mode="min", sort="index"),
        case(name, numbers(1, 2, 3, 4, 2), scalar(3), axis=3, mode="max", sort="value"),
        case(name, numbers(7), scalar(5), axis=0, mode="min", sort="value"),
        case(name, numbers(5), scalar(1), axis=0, mode="max", sort="none"),
        case(name, numbers(3, 5), scalar(1), axis=1, mode="min", sort="none"),
        case(
            name, np.array([1, np.inf, -np.inf, 0], np.float32), scalar(3), axis=0, mode="max", sort="value"
        ),
        case(name, np.array([0, -0.0, 1, -0.0], np.float32), scalar(3), axis=0, mode="min", sort="value"),
        case(name, np.array([2.0, 5, 1]), scalar(2), axis=0, mode="max", sort="value"),
        *(case(name, shuffled(t), scalar(3), axis=1, mode="max", sort="value") for t in TYPES),
        *(
            case(name, np.array([[True, False], [False, True]]), scalar(k), axis=1, mode=mode, sort="value")
            for k, mode in ((1, "max"), (2, "min"))
        ),
    ]


STABLE = [
    case("TopK-11", TIES.astype(np.int32), scalar(4), axis=1, mode=mode, sort=sort, stable=True)
    for mode, sort in product(("max", "min"), ("value", "index"))
]


SEQUENCE = np.array([[1, 3, 3, 5, 9], [-2, 0, 1, 1, 1]], np.float32)

SEARCH = [
    sample
    for right in (False, True)
    for sample in (
        case("SearchSorted-15", SEQUENCE, np.array([[3, 0, 10], [1, -3, 0]], np.float32), right_mode=right),
        case("SearchSorted-15", SEQUENCE[0], np.array([3, 4], np.float32), right_mode=right),
        case("SearchSorted-15", SEQUENCE[0], numbers(2, 3, low=0, high=10), right_mode=right),
        case("SearchSorted-15", SEQUENCE[0], np.array(3, np.float32), right_mode=right),
        case("SearchSorted-15", np.sort(numbers(2, 3, 4)), numbers(2, 3, 2, seed=1), right_mode=right),
        case(
            "SearchSorted-15", SEQUENCE[0], np.array([np.inf, -np.inf, np.nan], np.float32), right_mode=right
        ),
        case("SearchSorted-15", SEQUENCE, numbers(2, 3), right_mode=right, output_type="i32"),
        *(
            case(
                "SearchSorted-15",
                np.sort(numbers(2, 5, dtype=t)),
                numbers(2, 3, dtype=t, seed=1),
                right_mode=right,
            )
            for t in TYPES
        ),
    )
]

SAMPLES = [*(s for name in ("TopK-1", "TopK-3", "TopK-11") for s in selections(name)), *STABLE, *SEARCH]
