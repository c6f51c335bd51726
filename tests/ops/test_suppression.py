"""What samples of suppressions cannot say: errors, and how many boxes may be left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import layer, value, values

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Value, objects

SUPPRESSIONS = [f"NonMaxSuppression-{version}" for version in (1, 3, 4, 5, 9)]


def number(k: int | Dimension) -> Value:
    return Value.bounded(ElementType.i64, objects([k], ()))


@pytest.mark.parametrize("name", SUPPRESSIONS)
@pytest.mark.parametrize(
    ("boxes", "scores", "limit", "rows"),
    [
        ("2,10,4", "2,3,10", 4, "..24"),
        ("2,10,4", "2,3,10", 40, "..60"),
        ("2,10,4", "2,3,10", Dimension(1, 5), "..30"),
        ("2,?,4", "2,3,..7", 40, "..42"),
        ("2,?,4", "2,3,?", 4, "..24"),
        ("2,10,4", "...", 4, "?"),
        ("?,10,4", "?,3,10", 4, "?"),
        ("?,10,4", "?,3,10", 0, "0"),
        ("...", "...", "i64", "?"),
    ],
)
def test_how_many_may_be_left(name: str, boxes: str, scores: str, limit: Any, rows: str) -> None:
    k = value(f"{limit} ") if isinstance(limit, str) else number(limit)
    found = layer(name).infer_types(value(f"f32 {boxes}"), value(f"f32 {scores}"), k)
    assert str(found[0].shape) == f"[{rows},3]"


@pytest.mark.parametrize("name", SUPPRESSIONS)
def test_without_a_limit_none_is_left(name: str) -> None:
    boxes, scores = np.ones((1, 3, 4), "f4"), np.ones((1, 2, 3), "f4")
    found = layer(name).infer_values(*values([boxes, scores]))
    assert str(found[0].shape) == "[0,3]"


@pytest.mark.parametrize(
    ("name", "inputs", "message"),
    [
        ("NonMaxSuppression-1", ("f32 2,10", "f32 2,3,10"), "boxes must have rank 3, found [2,10]"),
        ("NonMaxSuppression-9", ("f32 2,10,4", "f32 2"), "scores must have rank 3, found [2]"),
        ("MatrixNms-8", ("f32 2,10,5", "f32 2,3,10"), "a box is 4 numbers; boxes are of shape [2,10,5]"),
        (
            "MulticlassNms-8",
            ("f32 2,10,4", "f32 2,3,9"),
            "boxes [2,10,4] and scores [2,3,9] disagree; expected are [batches, boxes, 4] and [batches, classes, boxes]",
        ),
        (
            "NonMaxSuppression-3",
            ("f32 2,10,4", "f32 2,3,10", "i64 1"),
            "max_output_boxes_per_class must be a scalar, not of shape [1]",
        ),
        (
            "NonMaxSuppression-5",
            ("f32 2,10,4", "f32 2,3,10", "i64 1", "f32 2"),
            "iou_threshold must be a scalar or of shape [1], not of shape [2]",
        ),
        (
            "NMSRotated-13",
            ("f32 2,10,4", "f32 2,3,10", "i64 1", "f32 1", "f32 1"),
            "a box is 5 numbers; boxes are of shape [2,10,4]",
        ),
        (
            "MulticlassNms-9",
            ("f32 2,10,3", "f32 2,10", "i64 2"),
            "boxes must be of shape [?,?,4], found [2,10,3]",
        ),
        (
            "MulticlassNms-9",
            ("f32 2,10,4", "f32 3,10", "i64 2"),
            "scores must be of shape [2,10], found [3,10]",
        ),
        ("MulticlassNms-9", ("f32 2,10,4", "f32 2,10", "i64 2,1"), "roisnum must be 1-D, found [2,1]"),
        (
            "ExperimentalDetectronTopKROIs-6",
            ("f32 5,4", "f32 6"),
            "probs must be of shape [5], found [6]",
        ),
        (
            "ExperimentalDetectronTopKROIs-6",
            ("f32 5", "f32 5"),
            "rois must be of shape [regions, 4], found [5]",
        ),
    ],
)
def test_contradictions(name: str, inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name).infer_types(*values(inputs))
    assert caught.value.message == message


@pytest.mark.parametrize(
    "name", ["NonMaxSuppression-3", "NonMaxSuppression-9", "MatrixNms-8", "NMSRotated-13"]
)
def test_index_types(name: str) -> None:
    with pytest.raises(ValidationError, match="output_type must be i64 or i32, not u8"):
        layer(name, output_type="u8")


def test_more_boxes_than_there_are() -> None:
    op = layer("MulticlassNms-9")
    with pytest.raises(InferenceError, match="roisnum asks for 7 boxes, but there are 5"):
        op.evaluate(np.zeros((2, 5, 4), "f4"), np.zeros((2, 5), "f4"), np.array([3, 4]))


@pytest.mark.parametrize(
    ("name", "inputs", "attributes", "shapes"),
    [
        ("MatrixNms-8", ("f32 2,10,4", "f32 2,3,10"), {}, "[..60,6] [..60,1] [2]"),
        ("MatrixNms-8", ("f32 2,10,4", "f32 2,3,10"), {"nms_top_k": "4"}, "[..24,6] [..24,1] [2]"),
        ("MatrixNms-8", ("f32 2,?,4", "f32 2,3,?"), {"keep_top_k": "4"}, "[..8,6] [..8,1] [2]"),
        ("MulticlassNms-8", ("f32 ?,10,4", "f32 ?,3,10"), {}, "[?,6] [?,1] [?]"),
        ("MulticlassNms-9", ("f32 3,10,4", "f32 3,10", "i64 2"), {}, "[..60,6] [..60,1] [2]"),
        (
            "MulticlassNms-9",
            ("f32 3,10,4", "f32 3,10", "i64 2"),
            {"keep_top_k": "5"},
            "[..10,6] [..10,1] [2]",
        ),
    ],
)
def test_shapes_of_several_classes(
    name: str, inputs: tuple[str, ...], attributes: dict[str, str], shapes: str
) -> None:
    found = layer(name, **attributes).infer_types(*values(inputs))
    assert " ".join(str(t.shape) for t in found) == shapes


def test_boxes_of_no_area_and_nan() -> None:
    """They suppress nothing, and nothing suppresses them."""
    boxes = np.array([[[0, 0, 0, 5], [0, 0, 0, 5], [0, np.nan, 5, 5], [0, 0, 5, 5]]], "f4")
    limits = np.array(9), np.array(0.5, "f4"), np.array(0, "f4")
    found, scores, count = layer("NonMaxSuppression-9").evaluate(boxes, np.ones((1, 1, 4), "f4"), *limits)
    assert found[:, 2].tolist() == [0, 1, 2, 3]
    assert scores[:, 2].tolist() == [1, 1, 1, 1]
    assert count.tolist() == [4]
