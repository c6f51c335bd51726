"""What samples of the sparse group cannot say: errors, bounds, strings."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import bounded, layer, values

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Dimension

F = np.float32
TABLE = np.ones((3, 2), F)


OFFSETS, PACKED, SEGMENTS = "EmbeddingBagOffsets-15", "EmbeddingBagPacked-15", "EmbeddingSegmentsSum-3"
FILL = "SparseFillEmptyRows-16"


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        (OFFSETS, ("f32", "i64 2", "i64 1"), "emb_table must have rows, but is a scalar"),
        (OFFSETS, ("f32 3", "i64 2,1", "i64 1"), "indices must be 1-D, not of shape [2,1]"),
        (OFFSETS, ("f32 3", "i64 2", "i64"), "offsets must be 1-D, not of shape []"),
        (OFFSETS, ("f32 3", "i64 2", "i64 1", "i64 1"), "default_index must be a scalar, not of shape [1]"),
        (
            OFFSETS,
            ("f32 3", "i64 2", "i64 1", "i64", "f32 3"),
            "per_sample_weights are of shape [3], indices of shape [2]",
        ),
        (PACKED, ("f32 3", "i64 2"), "indices must be [bags, rows of a bag], not of shape [2]"),
        (SEGMENTS, ("f32 3", "i64 2", "i64 3", "i64"), "segment_ids are of shape [3], indices of [2]"),
        (SEGMENTS, ("f32 3", "i64 2", "i64 2", "i64 1"), "num_segments must be a scalar, not of shape [1]"),
        (FILL, ("f32 2,1", "i64 2", "i64 2,2", "f32"), "values must be 1-D, not of shape [2,1]"),
        (FILL, ("f32 2", "i64 2", "i64 2,2", "f32 1"), "default_value must be a scalar, not of shape [1]"),
        (FILL, ("f32 2", "i64 3", "i64 2,2", "f32"), "a number of rows and one of columns, not 3"),
        (FILL, ("f32 2", "i64 2", "i64 3,2", "f32"), "for each of 2 values, not of shape [3,2]"),
        (FILL, ("f32 1", [2, 3], [[2, 0]], "f32"), "row 2 is out of range; there are 2"),
        (FILL, ("f32 1", [2, 3], [[1, -1]], "f32"), "column -1 is out of range; there are 3"),
    ],
)
def test_contradictions(name: str, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name).infer_types(*values(inputs))
    assert message in caught.value.message


def test_weights_are_for_sums() -> None:
    for name, inputs in (
        (OFFSETS, ("f32 3,2", "i64 2", "i64 1", "i64", "f32 2")),
        (PACKED, ("f32 3,2", "i64 2,2", "f32 2,2")),
    ):
        with pytest.raises(InferenceError, match="per_sample_weights are for sums, but reduction is mean"):
            layer(name, reduction="mean").infer(*values(inputs))


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        (OFFSETS, (TABLE, [0, 3], [0]), "index 3 is out of range; there are 3"),
        (OFFSETS, (TABLE, [0, -1], [0]), "index -1 is out of range; there are 3"),
        (OFFSETS, (TABLE, [0, 1], [0, 3]), "offsets [0, 3] must ascend from 0 to at most 2"),
        (OFFSETS, (TABLE, [0, 1], [1, 0]), "offsets [1, 0] must ascend"),
        (OFFSETS, (TABLE, [0, 1], [0, 0], 5), "default_index 5 is out of range; there are 3 rows"),
        (SEGMENTS, (TABLE, [0, 1], [0, 2], 2), "segment 2 is out of range; there are 2"),
        (FILL, ([1.0], [2, 3], [[2, 0]], 0.0), "row 2 is out of range; there are 2"),
    ],
)
def test_data_that_do_not_fit(name: str, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name).evaluate(*map(np.asarray, inputs))
    assert message in caught.value.message


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
