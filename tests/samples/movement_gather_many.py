"""Samples of GatherElements, GatherND and GatherTree: axes, batches, negative indices, beams, all types."""

from __future__ import annotations

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

TYPES = ("f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")
WHOLE = np.arange(6.0).reshape(3, 2)  # in f64: OpenVINO's plugin computes it as f32


def table(*rows: object, dtype: str = "i64") -> Array:
    return np.array(rows, ElementType.parse(dtype).dtype)


ELEMENTS = [
    case("GatherElements-6", numbers(2, 2), table([0, 1], [0, 0]), axis=0),
    case("GatherElements-6", numbers(2, 2), table([1, 1, 0], [1, 0, 1]), axis=1),
    case("GatherElements-6", numbers(3, 3), table([1, 0, 1], [1, 2, 0]), axis=0),
    case("GatherElements-6", numbers(2, 2, 2), table([[1], [0]], [[0], [1]], dtype="i32"), axis=-1),
    case("GatherElements-6", numbers(5), ints(4, 0, 0, 2), axis=0),
    case(
        "GatherElements-6",
        numbers(2, 3, 1, 2),
        table([[[[2, 0]], [[1, 1]]]]).reshape(1, 2, 1, 2).repeat(2, 0),
        axis=1,
    ),
    case("GatherElements-6", numbers(1, 1, 2, 1, 2), ints(1, 0).reshape(1, 1, 1, 1, 2), axis=2),
    case("GatherElements-6", numbers(3), ints(-1, 0, -3), axis=0, _oracle="plugin"),
    case("GatherElements-6", numbers(3, 2), np.zeros((0, 2), np.int64), axis=0),
    case("GatherElements-6", WHOLE, table([2, 0]), axis=0),
    case("GatherElements-6", numbers(2, 3), table([-1, -3], [0, -2]), axis=-1, _oracle="plugin"),
    case("GatherElements-6", np.array([np.nan, np.inf, -np.inf], "f4"), ints(1, 0, 2, 0), axis=0),
    case("GatherElements-6", numbers(2, 0), np.zeros((2, 0), np.int64), axis=0),
    case("GatherElements-6", numbers(4, 2, 3), numbers(2, 2, 3, dtype="i32", low=0, high=3), axis=-3),
    case("GatherElements-6", numbers(3, 4, dtype="u64"), numbers(3, 6, dtype="i64", low=0, high=3), axis=1),
    *(case("GatherElements-6", numbers(3, 2, dtype=t), table([2, 0]), axis=0) for t in TYPES),
]


def nd(name: str) -> list[Sample]:
    """Samples shared by both versions."""
    return [
        case(name, numbers(2, 2), table([0, 0], [1, 0])),
        case(name, numbers(2, 2), table([1], [0])),
        case(name, numbers(2, 2), table([[1]], [[0]], dtype="i32")),
        case(name, numbers(4, 3, 2), table([-1, 2], [0, -3])),
        case(name, numbers(4), table([3], [0], [3], dtype="u8")),
        case(name, numbers(4, 3), ints(2, 1)),
        case(name, numbers(4, 3), ints(-2)),
        case(name, numbers(2, 2), table([1], [0]), batch_dims=1),
        case(name, numbers(2, 3, 4), table([1], [0]), batch_dims=1),
        case(
            name, numbers(2, 3, 4), table([[1], [0], [2]], [[0], [2], [2]]).reshape(2, 3, 1, 1), batch_dims=2
        ),
        case(name, numbers(1, 2, 2, 4), table([[[1], [0]], [[3], [2]]]).reshape(1, 2, 2, 1), batch_dims=3),
        case(name, numbers(2, 3, 2, 2), table([[2, 1], [0, 0]], [[1, 1], [2, 0]]), batch_dims=1),
        case(name, numbers(2, 3, 2, 2, 2), table([[[0]], [[1]], [[0]]], [[[1]], [[1]], [[0]]]), batch_dims=2),
        case(name, numbers(3, 2), np.zeros((0, 1), np.int64)),
        case(name, numbers(3, 0), table([1], [2])),
        case(name, WHOLE, table([2], [0])),
        *(case(name, numbers(3, 2, dtype=t), table([2], [0])) for t in TYPES),
    ]


STEPS = table([[1, 2, 3]], [[4, 5, 6]], [[7, 8, 9]], dtype="i32")
PARENTS = table([[0, 0, 0]], [[0, 1, 1]], [[2, 1, 2]], dtype="i32")


def tree(steps: int, batch: int, beams: int, *lengths: int, end: int, dtype: str = "i32") -> Sample:
    """Random beams of given ``lengths``, possibly ended earlier by the token ``end``."""
    return case(
        "GatherTree-1",
        numbers(steps, batch, beams, dtype=dtype, low=1, high=9),
        numbers(steps, batch, beams, dtype=dtype, low=0, high=beams - 1, seed=1),
        ints(*lengths, dtype=dtype),
        scalar(end, dtype),
    )


TREE = [
    tree(1, 1, 1, 1, end=5),
    tree(6, 1, 5, 6, end=3),
    tree(6, 1, 5, 4, end=3),
    tree(8, 2, 3, 8, 5, end=2),
    tree(8, 2, 3, 1, 2, end=9),
    tree(3, 4, 2, 3, 1, 2, 3, end=20),
    tree(5, 2, 6, 7, 5, end=4),
    tree(7, 3, 2, 7, 6, 5, end=7, dtype="f32"),
    tree(4, 2, 4, 2, 4, end=1, dtype="f32"),
    tree(4, 2, 4, 3, 4, end=6, dtype="i64"),
    tree(2, 5, 1, 1, 2, 1, 2, 2, end=0),
    tree(10, 1, 1, 10, end=8),
    case("GatherTree-1", STEPS, PARENTS, ints(3, dtype="i32"), scalar(10, "i32")),
    case("GatherTree-1", STEPS, PARENTS, ints(3, dtype="i32"), scalar(5, "i32")),
    case("GatherTree-1", STEPS, PARENTS, ints(2, dtype="i32"), scalar(10, "i32")),
    case(
        "GatherTree-1",
        STEPS,
        PARENTS,
        ints(0, dtype="i32"),
        scalar(10, "i32"),
        _oracle="none",
        _differs="the plugin leaves sequences of length 0 as they come from memory",
        _expect=(np.full_like(STEPS, 10),),
    ),
    case("GatherTree-1", STEPS, PARENTS, ints(9, dtype="i32"), scalar(1, "i32")),
    case(
        "GatherTree-1",
        STEPS.astype(np.float32),
        PARENTS.astype(np.float32),
        np.array([3], np.float32),
        scalar(8, "f32"),
    ),
    case(
        "GatherTree-1",
        numbers(5, 3, 4, dtype="i32", low=1, high=6),
        numbers(5, 3, 4, dtype="i32", low=0, high=3, seed=1),
        ints(5, 1, 3, dtype="i32"),
        scalar(4, "i32"),
    ),
    case(
        "GatherTree-1",
        numbers(4, 2, 1, dtype="i32", low=1, high=6),
        np.zeros((4, 2, 1), np.int32),
        ints(4, 2, dtype="i32"),
        scalar(0, "i32"),
    ),
    case("GatherTree-1", STEPS.astype(np.int64), PARENTS.astype(np.int64), ints(3), scalar(10)),
]

SAMPLES = [*ELEMENTS, *(s for name in ("GatherND-5", "GatherND-8") for s in nd(name)), *TREE]
