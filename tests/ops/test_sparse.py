"""Sparse operations, beyond samples: bounds, strings."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import bounded, layer, values

from ir_runtime.ir.dimension import Dimension

F = np.float32
TABLE = np.ones((3, 2), F)


OFFSETS, PACKED, SEGMENTS = "EmbeddingBagOffsets-15", "EmbeddingBagPacked-15", "EmbeddingSegmentsSum-3"
FILL = "SparseFillEmptyRows-16"


def test_shapes() -> None:
    assert str(layer(OFFSETS).infer(*values(("f32 ?,2", "i64 ?", "i64 ..4")))) == "[..4,2]"
    assert str(layer(OFFSETS).infer(*values(("f32 ...", "i64 ?", "i64 4")))) == "[...]"
    assert str(layer(PACKED).infer(*values(("f32 5,2", "i64 ...")))) == "[?,2]"
    assert str(layer(SEGMENTS).infer(*values(("f32 5,2", "i64 4", "i64 4", "i64")))) == "[?,2]"
    assert str(layer(SEGMENTS).infer(*values(("f32 5,2", "i64 4", "i64 4", 7)))) == "[7,2]"


def test_no_bags_and_no_indices() -> None:
    none = np.zeros(0, np.int64)
    assert layer(OFFSETS).evaluate(TABLE, none, none).shape == (0, 2)
    assert layer(OFFSETS).evaluate(TABLE, none, np.array([0, 0])).tolist() == [[0, 0], [0, 0]]
    assert layer(OFFSETS).evaluate(TABLE, np.array([0, 1, 2]), np.array([2])).tolist() == [[1, 1]]


@pytest.mark.parametrize(
    ("count", "rows", "expected"),
    [("2", Dimension(4), "[4..5]"), ("?", Dimension(4), "[4..]"), ("0", Dimension(1, 4), "[1..4]")],
)
def test_elements_of_filled_rows(count: str, rows: Dimension, expected: str) -> None:
    given = (f"f32 {count}", bounded(rows, 3), f"i64 {count},2", "f32")
    places, elements, empty = layer(FILL).infer(*values(given))
    assert str(elements) == expected
    assert places[0] == elements[0]
    assert empty == [rows]


def test_strings_fill_rows() -> None:
    words = np.array(["a"], object)
    places, filled, empty = layer(FILL).evaluate(
        words, np.array([2, 3]), np.array([[1, 2]]), np.array("-", object)
    )
    assert (places.tolist(), filled.tolist(), empty.tolist()) == ([[0, 0], [1, 2]], ["-", "a"], [True, False])
