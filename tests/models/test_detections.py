"""The comparison of detections: accepted and refused differences."""

from __future__ import annotations

import numpy as np
import pytest
from harness.oracle import assert_same_detections

from ir_runtime.ir.tensor import Array

BOXES = np.float32([[0, 0, 10, 10], [5, 5, 30, 20], [40, 2, 50, 60], [7, 8, 9, 10]])
SCORES = np.float32([0.9, 0.8, 0.8, 0.5])
LABELS = np.int64([1, 0, 3, 1])


def found(*rows: int, boxes: Array = BOXES, scores: Array = SCORES, labels: Array = LABELS) -> list[Array]:
    order = list(rows or range(len(boxes)))
    return [boxes[order], scores[order], labels[order]]


def changed(array: Array, row: int, value: float) -> Array:
    array = array.copy()
    array[row] = value
    return array


def test_the_same() -> None:
    noise = np.float32(1e-3)
    assert_same_detections(
        found(boxes=BOXES + noise, scores=SCORES - noise / 10), found(), rtol=1e-3, atol=1e-2
    )


def test_nothing_proves_nothing() -> None:
    none = [array[:0] for array in found()]
    with pytest.raises(AssertionError, match="nothing was found"):
        assert_same_detections(none, none, rtol=1e-3, atol=1e-2)


def test_equal_scores_in_another_order() -> None:
    assert_same_detections(found(0, 2, 1, 3), found(), rtol=1e-3, atol=1e-2)
    nearly = changed(SCORES, 1, 0.800001)
    assert_same_detections(found(0, 2, 1, 3), found(scores=nearly), rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize(
    "ours",
    [
        found(boxes=changed(BOXES, 2, 41)),
        found(boxes=changed(BOXES, (1, 0), 5.1)),
        found(0, 1, 2),
        found(0, 1, 1, 3),
        found(0, 2, 3, 1),
        found(1, 0, 2, 3),
        found(scores=changed(SCORES, 3, 0.51)),
        found(scores=changed(SCORES, 1, 0.7999)),
        found(labels=changed(LABELS, 0, 2)),
        found(boxes=changed(BOXES, 3, np.nan)),
        found(scores=changed(SCORES, 3, np.nan)),
    ],
    ids=[
        "a wrong box", "an edge", "a box less", "a box twice", "a worse one first", "the best one second",
        "a score", "scores ascend", "a label", "NaN among boxes", "NaN among scores",
    ],
)  # fmt: skip
def test_all_else_fails(ours: list[Array]) -> None:
    with pytest.raises(AssertionError):
        assert_same_detections(ours, found(), rtol=1e-3, atol=1e-2)
