"""Messages for invalid sparse operations."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal

OFFSETS, PACKED, SEGMENTS = "EmbeddingBagOffsetsSum-3", "EmbeddingBagPackedSum-3", "EmbeddingSegmentsSum-3"
FILL = "SparseFillEmptyRows-16"
TABLE = np.ones((3, 2), np.float32)


def fill(name: str, values: Any, shape: Any, indices: Any, default: Any = "f32", **more: Any) -> Refusal:
    return refusal(name, FILL, values, shape, indices, default, **more)


REFUSALS = [
    refusal("table without rows", OFFSETS, "f32", "i64 2", "i64 1"),
    refusal("rank of indices", OFFSETS, "f32 3", "i64 2,1", "i64 1"),
    refusal("rank of offsets", OFFSETS, "f32 3", "i64 2", "i64"),
    refusal("rank of default_index", OFFSETS, "f32 3", "i64 2", "i64 1", "i64 1"),
    refusal("as many weights as indices", OFFSETS, "f32 3", "i64 2", "i64 1", "i64", "f32 3"),
    refusal(
        "weights of a mean", "EmbeddingBagOffsets-15", "f32 3,2", "i64 2", "i64 1", "i64", "f32 2",
        reduction="mean",
    ),
    refusal("index beyond the rows", OFFSETS, "f32 3,2", [0, 3], [0]),
    refusal("index below 0", PACKED, "f32 3,2", [[0, -1]]),
    refusal("index when it runs", OFFSETS, TABLE, np.array([0, 3]), np.array([0]), _run=True, _fed=(1, 2)),
    refusal("offset beyond the indices", OFFSETS, "f32 3,2", [0, 1], [0, 3]),
    refusal("offsets descend", OFFSETS, "f32 3,2", [0, 1], [1, 0]),
    refusal("default beyond the rows", OFFSETS, "f32 3,2", [0, 1], [0, 0], 5),
    refusal("rank of packed indices", PACKED, "f32 3", "i64 2"),
    refusal("as many segments as indices", SEGMENTS, "f32 3", "i64 2", "i64 3", "i64"),
    refusal("several numbers of segments", SEGMENTS, "f32 3", "i64 2", "i64 2", "i64 1"),
    refusal("segments below 0", SEGMENTS, "f32 3", "i64 2", "i64 2", -1),
    refusal("segment beyond the last", SEGMENTS, "f32 3,2", "i64 2", [0, 2], 2),
    fill("rank of values", "f32 2,1", "i64 2", "i64 2,2"),
    fill("default_value that is no scalar", "f32 2", "i64 2", "i64 2,2", "f32 1"),
    fill("rank of the matrix", "f32 2", "i64 3", "i64 2,2"),
    fill("matrix without rank", "f32 2", np.zeros(0, np.int64), "i64 2,2"),
    fill("as many places as values", "f32 2", "i64 2", "i64 3,2"),
    fill("row beyond the last", "f32 1", [2, 3], [[2, 0]]),
    fill("column below 0", "f32 1", [2, 3], [[1, -1]]),
    fill("row when it runs", np.float32([1]), [2, 3], np.array([[2, 0]]), np.float32(0), _run=True),
]  # fmt: skip
