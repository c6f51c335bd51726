"""Detection, beyond samples: inference from partial shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import bounded, layer, values

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ops.detection.regions import samples_of

ALIGN = {"pooled_h": "2", "pooled_w": "3", "sampling_ratio": "2", "spatial_scale": "1", "mode": "avg"}
POOL = {"pooled_h": "2", "pooled_w": "3", "spatial_scale": "1"}
SENSITIVE = {"output_dim": "2", "group_size": "3", "spatial_scale": "1", "mode": "average"}
YOLO = {"axis": "1", "end_axis": "3", "coords": "4", "classes": "3", "num": "2", "mask": "0,1,2"}
OUTPUT = {"keep_top_k": "20", "nms_threshold": "0.5", "normalized": "true"}
PROPOSAL = {
    "base_size": "16",
    "pre_nms_topn": "9",
    "post_nms_topn": "5",
    "nms_thresh": "0.5",
    "feat_stride": "16",
    "min_size": "1",
    "ratio": "1,2",
    "scale": "1",
}
LEFT = {"min_size": "0", "nms_threshold": "0.5", "pre_nms_count": "10", "post_nms_count": "5"}
EXTRACT = {"output_size": "3", "sampling_ratio": "2", "pyramid_scales": "4,8"}
FOUND = {
    "score_threshold": "0",
    "nms_threshold": "0.5",
    "num_classes": "3",
    "post_nms_count": "9",
    "max_detections_per_image": "7",
    "max_delta_log_wh": "4",
    "deltas_weights": "1,1,1,1",
}
PREFIX = "ExperimentalDetectron"


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "shapes"),
    [
        ("ROIAlign-9", ALIGN, ("f32 2,3,?,?", "f32 ...", "i64 5"), "[5,3,2,3]"),
        ("ROIAlign-9", ALIGN, ("f32 ...", "f32 ..7,4", "i64 2.."), "[2..7,?,2,3]"),
        ("ROIPooling-1", POOL, ("f32 ...", "f32 ..."), "[?,?,2,3]"),
        ("PSROIPooling-1", SENSITIVE, ("f32 ...", "f32 5,?"), "[5,2,3,3]"),
        ("PriorBoxClustered-1", {"offset": "0"}, (bounded(Dimension(2, 3), 4), "i64 2"), "[2,32..48]"),
        ("PriorBox-8", {"offset": "0", "min_size": "8"}, ("i64 2", "i64 2"), "[2,?]"),
        ("RegionYolo-1", YOLO, ("f32 ?,16,3,4",), "[?,192]"),
        ("RegionYolo-1", YOLO | {"do_softmax": "false"}, ("f32 2,?,?,4",), "[2,24,?,4]"),
        ("ReorgYolo-1", {"stride": "2"}, ("f32 ?,4..8,2..9,6",), "[?,16..32,1..4,3]"),
        ("DetectionOutput-8", OUTPUT, ("f32 ?,48", "f32 2,?", "f32 ..."), "[1,1,40,7]"),
        (
            "DetectionOutput-8",
            OUTPUT | {"keep_top_k": "-1"},
            ("f32 2,48", "f32 2,36", "f32 1,2,48"),
            "[1,1,72,7]",
        ),
        (
            "DetectionOutput-8",
            OUTPUT | {"keep_top_k": "-1", "top_k": "5"},
            ("f32 2,48", "f32 2,36", "f32 1,2,48"),
            "[1,1,30,7]",
        ),
        ("Proposal-4", PROPOSAL, ("f32 ...", "f32 2..3,8,?,?", "f32 ?"), "[10..15,5] [10..15]"),
        (
            "GenerateProposals-9",
            LEFT,
            ("f32 ?,3", "f32 ...", "f32 ..2,8,3,4", "f32 ..."),
            "[..10,4] [..10] [..2]",
        ),
        (
            f"{PREFIX}PriorGridGenerator-6",
            {"flatten": "false", "h": "5"},
            ("f32 3,4", "f32 1,2,?,4", "f32 ..."),
            "[5,4,3,4]",
        ),
        (f"{PREFIX}ROIFeatureExtractor-6", EXTRACT, ("f32 ?,4", "f32 ...", "f32 1,2,?,?"), "[?,2,3,3] [?,4]"),
    ],
)
def test_inferred_from_little(
    name: str, attributes: dict[str, str], inputs: tuple[Any, ...], shapes: str
) -> None:
    found = layer(name, **attributes).infer_types(*values(inputs))
    assert " ".join(str(t.shape) for t in found) == shapes


def test_batch_entries_there_are_not() -> None:
    data, rois = np.zeros((2, 1, 4, 4), "f4"), np.zeros((1, 4), "f4")
    with pytest.raises(InferenceError, match="a region is of batch entry 2, but data has 2"):
        layer("ROIAlign-9", **ALIGN).evaluate(data, rois, np.array([2]))


def test_regions_end_at_the_first_minus_one() -> None:
    data, rois = np.ones((1, 1, 4, 4), "f4"), np.tile(np.array([0, 0, 3, 3], "f4"), (3, 1))
    found = layer("ROIAlign-9", **ALIGN).evaluate(data, rois, np.array([0, -1, 0]))
    assert found.max(axis=(1, 2, 3)).tolist() == [1, 0, 0]


def test_nothing_to_look_at() -> None:
    """No regions, no priors of a batch entry, no images."""
    empty = np.zeros((0, 4), "f4")
    found = layer("ROIAlign-9", **ALIGN).evaluate(np.ones((1, 2, 4, 4), "f4"), empty, np.zeros(0, "i8"))
    assert found.shape == (0, 2, 2, 3)
    zeros = [np.zeros(s, "f4") for s in ((0, 3), (3, 4, 2, 4), (0, 8, 3, 4), (0, 2, 3, 4))]
    rois, scores, counts = layer("GenerateProposals-9", **LEFT).evaluate(*zeros)
    assert (rois.shape, scores.shape, counts.shape) == ((0, 4), (0,), (0,))
    boxes = layer(f"{PREFIX}DetectionOutput-6", **FOUND).evaluate(
        empty, np.zeros((0, 12), "f4"), np.zeros((0, 3), "f4"), np.ones((1, 3), "f4")
    )
    assert [x.shape for x in boxes] == [(7, 4), (7,), (7,)]


def test_priors_end_where_the_image_is_minus_one() -> None:
    priors = np.array([[0, 0.1, 0.1, 0.4, 0.4], [-1, 0, 0, 0, 0], [0, 0.6, 0.6, 0.9, 0.9]], "f4")
    proposals = np.stack([priors.ravel(), np.ones(15, "f4")])[None]
    op = layer("DetectionOutput-8", **OUTPUT | {"normalized": "false", "keep_top_k": "3"})
    found = op.evaluate(np.zeros((1, 12), "f4"), np.full((1, 6), 0.5, "f4"), proposals)
    np.testing.assert_allclose(found[0, 0, :2], [[0, 1, 0.5, 0.1, 0.1, 0.4, 0.4], [-1, 0, 0, 0, 0, 0, 0]])


@pytest.mark.parametrize("shape", [(1, 2, 0, 3), (1, 2, 3, 0)])
def test_maps_without_elements_give_zeros(shape: tuple[int, ...]) -> None:
    data, rois = np.zeros(shape, "f4"), np.array([[0, 0, 0, 1, 1]], "f4")
    found = layer("ROIPooling-1", **POOL | {"method": "bilinear"}).evaluate(data, rois)
    assert found.shape == (1, 2, 2, 3)
    assert not found.any()


@pytest.mark.parametrize("ratio", [0, 2048])
def test_a_region_may_take_as_many_points_as_are_allowed(ratio: int) -> None:
    """2 to the 24th, of 2 by 2 bins: as many as the region is large, or as sampling_ratio says."""
    size = np.float32(4096)
    assert samples_of(size, size, 2, 2, ratio) == (2048, 2048)
    with pytest.raises(InferenceError, match="which takes 16793604 points; at most 16777216"):
        samples_of(size + 1, size + 1, 2, 2, ratio and ratio + 1)
