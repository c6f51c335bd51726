"""Messages for invalid TopK, search and suppression layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal

TOP: dict[str, Any] = {"axis": 1, "mode": "max", "sort": "value"}
BEST = "ExperimentalDetectronTopKROIs-6"


def top(name: str, k: Any, data: Any = "f32 2,5", **more: Any) -> Refusal:
    return refusal(name, "TopK-11", data, k, **TOP | more)


REFUSALS = [
    top("k of 0", 0),
    top("k beyond the axis", 6),
    top("k for another axis", 3, "f32 9,2"),
    top("k beyond all lengths", 6, "f32 2,..5"),
    top("k that is no scalar", "i64 1"),
    top("k beyond the axis when it runs", np.array(4), np.ones((2, 3), np.float32), _run=True),
    top("axis", 3, axis=2),
    top("no order to keep", 3, sort="none", stable=True),
    top("type of the indices", 3, index_element_type="u8"),
    refusal("scalar sequence", "SearchSorted-15", "f32", "f32 2"),
    refusal("sequences for other values", "SearchSorted-15", "f32 2,5", "f32 3,4"),
    refusal("several sequences for one row", "SearchSorted-15", "f32 2,5", "f32 4"),
    refusal("type of places", "SearchSorted-15", "f32 5", "f32 4", output_type="f32"),
    refusal("rank of boxes", "NonMaxSuppression-1", "f32 2,10", "f32 2,3,10"),
    refusal("rank of scores", "NonMaxSuppression-9", "f32 2,10,4", "f32 2"),
    refusal("numbers of a box", "MatrixNms-8", "f32 2,10,5", "f32 2,3,10"),
    refusal("numbers of a rotated box", "NMSRotated-13", "f32 2,10,4", "f32 2,3,10", 1, "f32", "f32"),
    refusal("batches", "MulticlassNms-8", "f32 2,10,4", "f32 3,3,10"),
    refusal("boxes and scores", "MulticlassNms-8", "f32 2,10,4", "f32 2,3,9"),
    refusal("limit that is no scalar", "NonMaxSuppression-3", "f32 2,10,4", "f32 2,3,10", [1]),
    refusal("several thresholds", "NonMaxSuppression-5", "f32 2,10,4", "f32 2,3,10", [1], "f32 2"),
    refusal("type of selected indices", "NonMaxSuppression-9", "f32 2,10,4", "f32 2,3,10", output_type="u8"),
    refusal("boxes of all images", "MulticlassNms-9", "f32 2,10,3", "f32 2,10", "i64 2"),
    refusal("scores of all images", "MulticlassNms-9", "f32 2,10,4", "f32 3,10", "i64 2"),
    refusal("rank of roisnum", "MulticlassNms-9", "f32 2,10,4", "f32 2,10", "i64 2,1"),
    refusal("roisnum beyond the boxes", "MulticlassNms-9", "f32 2,5,4", "f32 2,5", [3, 4]),
    refusal("rank of rois", BEST, "f32 5", "f32 5", max_rois=2),
    refusal("as many probs as rois", BEST, "f32 5,4", "f32 6", max_rois=2),
]
