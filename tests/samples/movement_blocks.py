"""Samples of SpaceToBatch, DepthToSpace and their inverses: ranks, modes, crops, pads, all types."""

from __future__ import annotations

from harness.sample import Sample, case, ints, numbers

TYPES = ("f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "boolean")


def batch_to_space(
    *shape: int, block: list[int], begin: list[int], end: list[int], dtype: str = "i64"
) -> Sample:
    lists = (ints(*numbers, dtype=dtype) for numbers in (block, begin, end))
    return case("BatchToSpace-2", numbers(*shape), *lists, _constant=(1, 2, 3) if 0 in shape else ())


def space_to_batch(
    *shape: int, block: list[int], begin: list[int], end: list[int], dtype: str = "i64"
) -> Sample:
    lists = (ints(*numbers, dtype=dtype) for numbers in (block, begin, end))
    return case("SpaceToBatch-2", numbers(*shape), *lists, _constant=(1, 2, 3) if 0 in shape else ())


BATCH = [
    batch_to_space(10, 2, block=[1, 5], begin=[0, 2], end=[0, 0]),
    batch_to_space(8, 3, 3, block=[1, 2, 2], begin=[0, 0, 0], end=[0, 0, 0]),
    batch_to_space(8, 1, 3, 2, block=[1, 1, 2, 4], begin=[0, 0, 1, 3], end=[0, 0, 2, 0], dtype="i32"),
    batch_to_space(24, 2, 2, 1, 2, block=[1, 2, 4, 3, 1], begin=[0, 0, 1, 0, 0], end=[0, 1, 1, 0, 0]),
    batch_to_space(4, 2, 2, block=[1, 2, 2], begin=[0, 4, 0], end=[0, 0, 0]),
    batch_to_space(3, 2, block=[1, 1], begin=[0, 0], end=[0, 0]),
    batch_to_space(2, 1, 4, 4, block=[1, 1, 1, 2], begin=[0, 0, 0, 1], end=[0, 0, 3, 1]),
    batch_to_space(6, 2, block=[1, 3], begin=[0, 1], end=[0, 1], dtype="i32"),
    space_to_batch(2, 8, block=[1, 5], begin=[0, 2], end=[0, 0]),
    space_to_batch(2, 4, 6, block=[1, 2, 2], begin=[0, 0, 0], end=[0, 0, 0]),
    space_to_batch(1, 2, 3, 5, block=[1, 1, 2, 4], begin=[0, 0, 1, 3], end=[0, 0, 2, 0], dtype="i32"),
    space_to_batch(2, 3, 6, 3, 2, block=[1, 2, 4, 3, 1], begin=[0, 0, 1, 0, 0], end=[0, 1, 1, 0, 0]),
    space_to_batch(3, 2, block=[1, 1], begin=[0, 0], end=[0, 0]),
    space_to_batch(3, 2, block=[1, 4], begin=[0, 1], end=[0, 1]),
    space_to_batch(1, 1, 1, 1, block=[1, 1, 3, 2], begin=[0, 0, 1, 0], end=[0, 0, 1, 1]),
    space_to_batch(2, 3, block=[1, 3], begin=[0, 0], end=[0, 3], dtype="i32"),
    *(
        case("BatchToSpace-2", numbers(4, 2, 1, dtype=t), ints(1, 2, 2), ints(0, 1, 0), ints(0, 0, 1))
        for t in TYPES
    ),
    *(
        case("SpaceToBatch-2", numbers(1, 3, 1, dtype=t), ints(1, 2, 2), ints(0, 1, 0), ints(0, 0, 1))
        for t in TYPES
    ),
]

DEPTH = [
    sample
    for mode in ("blocks_first", "depth_first")
    for sample in (
        case("DepthToSpace-1", numbers(1, 8, 2, 3), block_size=2, mode=mode),
        case("DepthToSpace-1", numbers(2, 6, 3), block_size=3, mode=mode),
        case("DepthToSpace-1", numbers(1, 16, 1, 2, 2), block_size=2, mode=mode),
        case("DepthToSpace-1", numbers(2, 18, 2, 2), block_size=3, mode=mode),
        case("DepthToSpace-1", numbers(2, 3, 2, 2), block_size=1, mode=mode),
        case("DepthToSpace-1", numbers(1, 16, 12, 12), block_size=2, mode=mode),
        case("SpaceToDepth-1", numbers(1, 2, 4, 6), block_size=2, mode=mode),
        case("SpaceToDepth-1", numbers(2, 2, 9), block_size=3, mode=mode),
        case("SpaceToDepth-1", numbers(1, 2, 2, 4, 4), block_size=2, mode=mode),
        case("SpaceToDepth-1", numbers(2, 2, 6, 3), block_size=3, mode=mode),
        case("SpaceToDepth-1", numbers(2, 3, 2, 2), block_size=1, mode=mode),
        *(case("DepthToSpace-1", numbers(1, 4, 1, 2, dtype=t), block_size=2, mode=mode) for t in TYPES),
        *(case("SpaceToDepth-1", numbers(1, 1, 2, 4, dtype=t), block_size=2, mode=mode) for t in TYPES),
    )
]

SAMPLES = [*BATCH, *DEPTH]
