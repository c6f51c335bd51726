"""Samples of Unique: elements and slices, sorted and in order of occurrence, all types."""

from __future__ import annotations

import numpy as np
from harness.sample import case, ints, numbers, scalar

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
ROWS = np.array([[2, 1, 2], [0, 5, 0], [2, 1, 2], [0, 4, 0], [0, 5, 0]], np.float32)

SAMPLES = [
    sample
    for order in (True, False)
    for sample in (
        case("Unique-10", ROWS, sorted=order),
        case("Unique-10", ROWS, scalar(0), sorted=order, _constant=(1,)),
        case("Unique-10", ROWS, ints(-1), sorted=order, _constant=(1,)),
        case("Unique-10", ROWS, scalar(1, "i32"), sorted=order, index_element_type="i32", _constant=(1,)),
        case("Unique-10", numbers(7, dtype="i32"), sorted=order, count_element_type="i32"),
        case("Unique-10", numbers(7, dtype="i32"), scalar(0), sorted=order, _constant=(1,)),
        case("Unique-10", numbers(3, 2, 4, dtype="i32", low=0, high=1), sorted=order),
        *(
            case(
                "Unique-10",
                numbers(4, 2, 3, dtype="i32", low=0, high=1),
                ints(axis),
                sorted=order,
                _constant=(1,),
            )
            for axis in (0, 1, 2)
        ),
        case("Unique-10", numbers(1, 2, 1, 3, 2, dtype="i32"), ints(-2), sorted=order, _constant=(1,)),
        case("Unique-10", numbers(1, 1), sorted=order),
        case("Unique-10", np.array([0.0, -0.0, 1, np.inf, -0.0, np.inf], np.float32), sorted=order),
        *(case("Unique-10", numbers(9, dtype=t, low=0, high=3).round(), sorted=order) for t in TYPES[:-1]),
        *(
            case(
                "Unique-10",
                numbers(5, 2, dtype=t, low=0, high=1).round(),
                scalar(0),
                sorted=order,
                _constant=(1,),
            )
            for t in ("f32", "f16", "bf16", "i64", "i32")
        ),
        case("Unique-10", numbers(5, dtype="boolean"), sorted=order),
    )
] + [
    case(
        "Unique-10",
        np.array([[1, 2], [0, 1], [1, 2]], np.int8),
        scalar(0),
        _constant=(1,),
        _oracle="none",
        _differs="the plugin gives index 0 for every slice of single bytes",
        _expect=(np.array([[0, 1], [1, 2]], np.int8), ints(1, 0), ints(1, 0, 1), ints(1, 2)),
    ),
]
