"""Samples of embedding bags and sparse rows: weights, empty bags, defaults, all types."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

TABLE = np.array([[-0.2, -0.6], [-0.1, -0.4], [-1.9, -1.8], [-1.0, 1.5], [0.8, -0.7]], np.float32)
PICKED = ints(0, 2, 3, 4)
WEIGHTS = np.array([0.5, 0.2, -2, 1], np.float32)
TYPES = ("f32", "f16", "i32", "i8", "u8")


def rows(*pairs: tuple[int, int], dtype: str = "i64") -> Array:
    return np.array(pairs, ElementType.parse(dtype).dtype).reshape(-1, 2)


def offsets(name: str) -> list[Sample]:
    """Samples shared by both versions."""
    return [
        case(name, TABLE, PICKED, ints(0, 2, 2), scalar(0), WEIGHTS),
        case(name, TABLE, PICKED, ints(0, 2, 2), scalar(-1), WEIGHTS),
        case(name, TABLE, PICKED, ints(0, 2, 2), scalar(3)),
        case(name, TABLE, PICKED, ints(0, 2, 2)),
        case(name, TABLE, ints(1, 1, 1, dtype="i32"), ints(0, dtype="i32")),
        case(name, TABLE, PICKED, ints(1, 3)),
        case(name, numbers(5), PICKED, ints(0, 1, 3)),
        case(name, numbers(3, 2, 3, 2), ints(2, 0, 1), ints(0, 2), scalar(1), numbers(3)),
        *(case(name, numbers(4, 3, dtype=t), ints(0, 2, 3, 1), ints(0, 1)) for t in TYPES),
        case(
            name,
            TABLE,
            PICKED,
            ints(0, 4),
            _oracle="none",
            _differs="the plugin may crash on an empty bag at the end, which the page allows",
            _expect=(np.array([[-2.3, -1.6], [0, 0]], np.float32),),
        ),
    ]


def packed(name: str) -> list[Sample]:
    """Samples shared by both versions."""
    pairs = rows((0, 2), (1, 2), (3, 4))
    return [
        case(name, TABLE, pairs),
        case(name, TABLE, pairs, np.full((3, 2), 0.5, np.float32)),
        case(name, TABLE, pairs.astype(np.int32), numbers(3, 2)),
        case(name, TABLE, pairs.reshape(1, 6)),
        case(name, TABLE, pairs.reshape(6, 1)),
        case(name, numbers(5), pairs),
        case(name, numbers(5, 2, 3), pairs, numbers(3, 2)),
        *(case(name, numbers(5, 3, dtype=t), pairs) for t in TYPES),
    ]


MEANS = [
    case("EmbeddingBagOffsets-15", TABLE, PICKED, ints(0, 2, 2), reduction="mean"),
    case("EmbeddingBagOffsets-15", TABLE, PICKED, ints(0, 2, 2), scalar(4), reduction="mean"),
    case("EmbeddingBagOffsets-15", numbers(5, 2, 2), PICKED, ints(0, 3), reduction="mean"),
    case("EmbeddingBagPacked-15", TABLE, rows((0, 2), (1, 2), (3, 4)), reduction="mean"),
    case("EmbeddingBagPacked-15", numbers(5, dtype="i32"), rows((0, 2), (1, 2), (3, 4)), reduction="mean"),
]

SEGMENTS = [
    case("EmbeddingSegmentsSum-3", TABLE, PICKED, ints(0, 0, 2, 2), scalar(3), scalar(0), WEIGHTS),
    case(
        "EmbeddingSegmentsSum-3",
        TABLE,
        PICKED,
        ints(0, 0, 2, 2),
        scalar(3),
        scalar(-1),
        WEIGHTS,
        _oracle="none",
        _differs="the plugin leaves what follows an empty segment as it comes from memory",
        _expect=(np.array([[-0.48, -0.66], [0, 0], [2.8, -3.7]], np.float32),),
    ),
    case("EmbeddingSegmentsSum-3", TABLE, PICKED, ints(0, 0, 2, 2), scalar(3), scalar(4)),
    case("EmbeddingSegmentsSum-3", TABLE, PICKED, ints(0, 0, 2, 2), scalar(5)),
    case(
        "EmbeddingSegmentsSum-3",
        TABLE,
        PICKED.astype(np.int32),
        ints(1, 1, 1, 2, dtype="i32"),
        scalar(3, "i32"),
        _constant=(3,),
    ),
    case("EmbeddingSegmentsSum-3", numbers(5), PICKED, ints(0, 0, 0, 1), scalar(2)),
    case(
        "EmbeddingSegmentsSum-3", numbers(5, 2, 3), PICKED, ints(0, 1, 2, 3), scalar(4), scalar(0), numbers(4)
    ),
    *(
        case("EmbeddingSegmentsSum-3", numbers(5, 3, dtype=t), PICKED, ints(0, 0, 1, 1), scalar(3))
        for t in TYPES
    ),
]


def filled(values: Array, shape: tuple[int, int], places: Array, **how: object) -> Sample:
    size = ints(*shape, dtype="i32" if places.dtype == np.int32 else "i64")
    return case("SparseFillEmptyRows-16", values, size, places, np.asarray(42).astype(values.dtype), **how)


FILLED = [
    filled(numbers(4), (5, 6), rows((0, 1), (0, 3), (2, 0), (3, 1))),
    filled(numbers(2), (3, 3), rows((0, 0), (2, 2), dtype="i32")),
    filled(numbers(3), (3, 2), rows((0, 0), (1, 1), (2, 0))),
    filled(numbers(3), (4, 4), rows((3, 1), (1, 2), (1, 0))),
    filled(numbers(0), (3, 2), rows()),
    filled(numbers(1), (1, 1), rows((0, 0))),
    filled(numbers(2), (4, 5), rows((1, 4), (3, 0)), _constant=(1,)),
    filled(numbers(2), (4, 5), rows((1, 4), (3, 0)), _constant=(1, 2)),
    *(
        filled(numbers(2, dtype=t), (4, 5), rows((1, 4), (3, 0)))
        for t in ("f16", "bf16", "i64", "i32", "i8", "u8")
    ),
]

SAMPLES = [
    *(s for name in ("EmbeddingBagOffsetsSum-3", "EmbeddingBagOffsets-15") for s in offsets(name)),
    *(s for name in ("EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15") for s in packed(name)),
    *MEANS,
    *SEGMENTS,
    *FILLED,
]
