"""What samples of detection cannot say: what is refused and how, what is inferred from little."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.layers import bounded, layer, values

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension

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
    ("name", "attributes", "inputs", "message"),
    [
        ("ROIAlign-9", ALIGN, ("f32 2,3,8", "f32 5,4", "i64 5"), "data must have rank 4, found [2,3,8]"),
        (
            "ROIAlign-3",
            ALIGN,
            ("f32 2,3,8,8", "f32 5,5", "i64 5"),
            "rois must be of shape [regions, 4], found [5,5]",
        ),
        ("ROIAlign-9", ALIGN, ("f32 2,3,8,8", "f32 5,4", "i64 6"), "there are 5 rois, but 6 batch_indices"),
        (
            "ROIAlign-9",
            ALIGN,
            ("f32 2,3,8,8", "f32 5,4", "i64 5,1"),
            "batch_indices must be 1-D, found [5,1]",
        ),
        (
            "ROIPooling-1",
            POOL,
            ("f32 2,3,8,8", "f32 5,4"),
            "rois must be of shape [regions, 5], found [5,4]",
        ),
        (
            "PSROIPooling-1",
            SENSITIVE,
            ("f32 2,3,8,8", "f32 5,5"),
            "data must have 18 channels, found [2,3,8,8]",
        ),
        (
            "DeformablePSROIPooling-1",
            SENSITIVE | {"mode": "bilinear_deformable", "part_size": "3"},
            ("f32 2,18,8,8", "f32 5,5", "f32 5,2,2,2"),
            "offsets must be of shape [5,?,3,3], found [5,2,2,2]",
        ),
        ("PriorBox-8", {"offset": "0.5"}, ("i64 3", "i64 2"), "output_size must be of shape [2], found [3]"),
        (
            "PriorBoxClustered-1",
            {"offset": "0.5"},
            ("i64 2", "i64 2,1"),
            "image_size must be of shape [2], found [2,1]",
        ),
        ("RegionYolo-1", YOLO, ("f32 2,15,3,4",), "data must have 16 channels, found [2,15,3,4]"),
        ("RegionYolo-1", YOLO, ("f32 2,16,3",), "data must have rank 4, found [2,16,3]"),
        (
            "RegionYolo-1",
            YOLO | {"end_axis": "4"},
            ("f32 2,16,3,4",),
            "end_axis 4 is out of range for rank 4; allowed: [-4, 3]",
        ),
        (
            "ReorgYolo-1",
            {"stride": "2"},
            ("f32 2,3,4,4",),
            "data must have at least 4 channels, found [2,3,4,4]",
        ),
        (
            "ReorgYolo-1",
            {"stride": "2"},
            ("f32 2,4,4,5",),
            "height and width must be multiples of 2, found [2,4,4,5]",
        ),
        ("ReorgYolo-1", {"stride": "2"}, ("f32 2,4,4",), "data must have rank 4, found [2,4,4]"),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2,48", "f32 3,36", "f32 1,2,48"),
            "box_logits [2,48] and class_preds [3,36] differ in batch size",
        ),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2,48", "f32 2,36", "f32 1,1,48"),
            "proposals must be of shape [2 or 1, 2, ...], found [1,1,48]",
        ),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2,44", "f32 2,36", "f32 1,2,48"),
            "box_logits has 44 numbers, 4 for each of the priors, of which there are 12",
        ),
        (
            "DetectionOutput-1",
            OUTPUT | {"num_classes": "5"},
            ("f32 2,48", "f32 2,36", "f32 1,2,48"),
            "class_preds has 36 numbers, 5 for each of the priors, of which there are 12",
        ),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2", "f32 2,36", "f32 1,2,48"),
            "box_logits must have rank 2, found [2]",
        ),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2,48", "f32 2,36", "f32 1,2,48", "f32 2,24", "f32 2,47"),
            "aux_box_preds [2,47] must be shaped as box_logits [2,48]",
        ),
        (
            "DetectionOutput-8",
            OUTPUT,
            ("f32 2,48", "f32 2,36", "f32 1,2,48", "f32 2,24"),
            "takes 3 or 5 inputs, got 4",
        ),
        (
            "Proposal-4",
            PROPOSAL,
            ("f32 1,4,3,3", "f32 1,9,3,3", "f32 3"),
            "bbox_deltas must be of shape [1,8,3,3], found [1,9,3,3]",
        ),
        (
            "Proposal-1",
            PROPOSAL,
            ("f32 1,6,3,3", "f32 1,12,3,3", "f32 3"),
            "class_probs must have 2 channels for each of 2 anchors, found [1,6,3,3]",
        ),
        (
            "Proposal-1",
            PROPOSAL,
            ("f32 1,4,3,3", "f32 1,8,3,3", "f32 5"),
            "image_shape must be 3 or 4 numbers, found [5]",
        ),
        (
            "GenerateProposals-9",
            LEFT,
            ("f32 2,3", "f32 3,4,2,4", "f32 2,8,3,4", "f32 2,2,4,3"),
            "scores must be of shape [2,2,3,4] by im_info and anchors, found [2,2,4,3]",
        ),
        (
            "GenerateProposals-9",
            LEFT,
            ("f32 2,5", "f32 3,4,2,4", "f32 2,8,3,4", "f32 2,2,3,4"),
            "im_info must be [N, 3] or [N, 4], found [2,5]",
        ),
        (
            f"{PREFIX}GenerateProposalsSingleImage-6",
            LEFT,
            ("f32 3", "f32 24,4", "f32 9,3,4", "f32 2,3,4"),
            "deltas must be of shape [8,3,4] by scores, found [9,3,4]",
        ),
        (
            f"{PREFIX}DetectionOutput-6",
            FOUND,
            ("f32 9,4", "f32 9,12", "f32 9,4", "f32 1,3"),
            "scores must be of shape [9, 3], found [9,4]",
        ),
        (
            f"{PREFIX}DetectionOutput-6",
            FOUND,
            ("f32 9,4", "f32 9,12", "f32 9,3", "f32 3"),
            "im_info must be of shape [1, 3], found [3]",
        ),
        (
            f"{PREFIX}PriorGridGenerator-6",
            {},
            ("f32 3,4", "f32 1,2,3,4", "f32 2,2,3,4"),
            "feature_map [1,2,3,4] and im_data [2,2,3,4] differ in batch size",
        ),
        (
            f"{PREFIX}ROIFeatureExtractor-6",
            EXTRACT,
            ("f32 9,4", "f32 1,2,8,8", "f32 1,3,4,4"),
            "levels must be of shape [1, 2, H, W], found [1,3,4,4]",
        ),
        (
            f"{PREFIX}ROIFeatureExtractor-6",
            EXTRACT,
            ("f32 9,4", *("f32 1,2,8,8",) * 3),
            "there are 3 levels, but 2 pyramid_scales",
        ),
    ],
)
def test_contradictions(name: str, attributes: dict[str, str], inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer(name, **attributes).infer_types(*values(inputs))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("name", "attributes", "message"),
    [
        ("PriorBox-1", {"offset": "0", "variance": "1,2"}, "variance must be 0, 1 or 4 numbers, not 2"),
        (
            "PriorBox-8",
            {"offset": "0", "fixed_size": "8,9", "density": "1"},
            "density and fixed_size differ in length: 1 and 2",
        ),
        (
            "PriorBox-8",
            {"offset": "0", "fixed_size": "8,9", "density": "1,2", "fixed_ratio": "1,2"},
            "the attributes make 10 boxes at each place, but count as 8",
        ),
        (
            "PriorBox-1",
            {"offset": "0", "min_size": "8", "max_size": "9,10"},
            "the attributes make 2 boxes at each place, but count as 3",
        ),
        (
            "PriorBoxClustered-1",
            {"offset": "0", "width": "8,9"},
            "width and height differ in length: 2 and 1",
        ),
        ("DetectionOutput-8", OUTPUT | {"keep_top_k": ""}, "keep_top_k must be one number, not none"),
        (
            "DetectionOutput-8",
            OUTPUT | {"decrease_label_id": "true", "background_label_id": "1"},
            "decrease_label_id asks for background_label_id 0, not 1",
        ),
        (
            f"{PREFIX}DetectionOutput-6",
            FOUND | {"deltas_weights": "1,2"},
            "deltas_weights must be 4 numbers, not 2",
        ),
        ("GenerateProposals-9", LEFT | {"roi_num_type": "f32"}, "roi_num_type must be i64 or i32, not f32"),
        ("ROIPooling-1", POOL | {"output_size": "2,4"}, "pooled_h 2 and pooled_w 3 are not [2, 4]"),
    ],
)
def test_attributes_that_contradict(name: str, attributes: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        layer(name, **attributes)
    assert message in str(caught.value)


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
    with pytest.raises(InferenceError, match="a region is of batch entry 2, but there are 2"):
        layer("ROIAlign-9", **ALIGN).evaluate(data, rois, np.array([2]))


def test_regions_end_at_the_first_minus_one() -> None:
    data, rois = np.ones((1, 1, 4, 4), "f4"), np.tile(np.array([0, 0, 3, 3], "f4"), (3, 1))
    found = layer("ROIAlign-9", **ALIGN).evaluate(data, rois, np.array([0, -1, 0]))
    assert found.max(axis=(1, 2, 3)).tolist() == [1, 0, 0]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1e9])
def test_regions_too_large_to_sample(wrong: float) -> None:
    data = np.ones((1, 1, 4, 4), "f4")
    op = layer("ROIAlign-9", **ALIGN | {"sampling_ratio": "0"})
    with pytest.raises(InferenceError, match="a region"):
        op.evaluate(data, np.array([[0, 0, wrong, wrong]], "f4"), np.array([0]))


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
