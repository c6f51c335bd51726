"""Messages for invalid detection layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.refusals import Refusal, refusal

ALIGN = {"pooled_h": 2, "pooled_w": 3, "sampling_ratio": 2, "spatial_scale": 1, "mode": "avg"}
POOL = {"pooled_h": 2, "pooled_w": 3, "spatial_scale": 1}
SENSITIVE = {"output_dim": 2, "group_size": 3, "spatial_scale": 1}
YOLO = {"axis": 1, "end_axis": 3, "coords": 4, "classes": 3, "num": 2, "mask": "0,1,2"}
OUTPUT = {"keep_top_k": 20, "nms_threshold": 0.5, "normalized": True}
PROPOSAL = {
    "base_size": 16,
    "pre_nms_topn": 9,
    "post_nms_topn": 5,
    "nms_thresh": 0.5,
    "feat_stride": 16,
    "min_size": 1,
    "ratio": "1,2",
    "scale": 1,
}
LEFT = {"min_size": 0, "nms_threshold": 0.5, "pre_nms_count": 10, "post_nms_count": 5}
EXTRACT = {"output_size": 3, "sampling_ratio": 2, "pyramid_scales": "4,8"}
FOUND = {
    "score_threshold": 0,
    "nms_threshold": 0.5,
    "num_classes": 3,
    "post_nms_count": 9,
    "max_detections_per_image": 7,
    "max_delta_log_wh": 4,
    "deltas_weights": "1,1,1,1",
}
MAPS = "f32 2,3,8,8"
PREFIX = "ExperimentalDetectron"


def aligned(name: str, *inputs: Any, **more: Any) -> Refusal:
    return refusal(name, "ROIAlign-9", *inputs, **ALIGN | more)


def pooled(name: str, *inputs: Any, **more: Any) -> Refusal:
    return refusal(name, "ROIPooling-1", *inputs, **POOL | more)


def moved(name: str, data: Any, *offsets: Any) -> Refusal:
    attributes = SENSITIVE | {"mode": "bilinear_deformable", "part_size": 3}
    return refusal(name, "DeformablePSROIPooling-1", data, "f32 5,5", *offsets, **attributes)


def priors(name: str, output_size: Any = "i64 2", image_size: Any = "i64 2", **more: Any) -> Refusal:
    return refusal(name, "PriorBox-8", output_size, image_size, **{"offset": 0.5} | more)


def regions(name: str, data: str, **more: Any) -> Refusal:
    return refusal(name, "RegionYolo-1", data, **YOLO | more)


def detected(name: str, *shapes: str, **more: Any) -> Refusal:
    return refusal(name, "DetectionOutput-8", *(f"f32 {s}" for s in shapes), **OUTPUT | more)


def proposed(name: str, *shapes: str, **more: Any) -> Refusal:
    return refusal(name, "Proposal-4", *(f"f32 {s}" for s in shapes), **PROPOSAL | more)


def generated(name: str, *shapes: str, **more: Any) -> Refusal:
    return refusal(name, "GenerateProposals-9", *(f"f32 {s}" for s in shapes), **LEFT | more)


def single(name: str, *shapes: str) -> Refusal:
    return refusal(name, f"{PREFIX}GenerateProposalsSingleImage-6", *(f"f32 {s}" for s in shapes), **LEFT)


def found(name: str, *shapes: str, **more: Any) -> Refusal:
    return refusal(name, f"{PREFIX}DetectionOutput-6", *(f"f32 {s}" for s in shapes), **FOUND | more)


def extracted(name: str, *shapes: str) -> Refusal:
    return refusal(name, f"{PREFIX}ROIFeatureExtractor-6", *(f"f32 {s}" for s in shapes), **EXTRACT)


REFUSALS = [
    aligned("ROIAlign: rank of data", "f32 2,3,8", "f32 5,4", "i64 5"),
    aligned("ROIAlign: numbers of a region", MAPS, "f32 5,5", "i64 5"),
    aligned("ROIAlign: as many batch entries as regions", MAPS, "f32 5,4", "i64 6"),
    aligned("ROIAlign: rank of batch_indices", MAPS, "f32 5,4", "i64 5,1"),
    aligned("ROIAlign: batch entry", MAPS, "f32 2,4", [0, 2]),
    pooled("ROIPooling: numbers of a region", MAPS, "f32 5,4"),
    pooled("ROIPooling: sizes", MAPS, "f32 5,5", output_size="2,4"),
    pooled("ROIPooling: batch entry", MAPS, np.float32([[0, 0, 0, 1, 1], [2, 0, 0, 1, 1]])),
    refusal("PSROIPooling: channels", "PSROIPooling-1", MAPS, "f32 5,5", **SENSITIVE),
    refusal(
        "PSROIPooling: channels of parts", "PSROIPooling-1", MAPS, "f32 5,5",
        **SENSITIVE | {"mode": "bilinear", "spatial_bins_x": 2, "spatial_bins_y": 2},
    ),
    refusal(
        "PSROIPooling: no parts", "PSROIPooling-1", MAPS, "f32 5,5",
        **SENSITIVE | {"mode": "bilinear", "spatial_bins_x": 0},
    ),
    moved("DeformablePSROIPooling: channels", MAPS),
    moved("DeformablePSROIPooling: offsets", "f32 2,18,8,8", "f32 5,2,2,2"),
    moved("DeformablePSROIPooling: classes", "f32 2,18,8,8", "f32 5,6,3,3"),
    priors("PriorBox: output_size", "i64 3"),
    priors("PriorBox: image_size", "i64 2", "i64 2,1"),
    priors("PriorBox: height below 0", [-1, 4]),
    priors("PriorBox: too many boxes", [1 << 16, 1 << 16], min_size=8),
    priors("PriorBox: variance", variance="1,2"),
    priors("PriorBox: density", fixed_size="8,9", density="1"),
    priors("PriorBox: dense beyond measure", fixed_size=8, density=2000),
    priors("PriorBox: fixed sizes that do not count", fixed_size="8,9", density="1,2", fixed_ratio="1,2"),
    priors("PriorBox: sizes that do not count", min_size=8, max_size="9,10"),
    refusal("PriorBoxClustered: widths", "PriorBoxClustered-1", "i64 2", "i64 2", offset=0, width="8,9"),
    regions("RegionYolo: channels", "f32 2,15,3,4"),
    regions("RegionYolo: channels without softmax", "f32 2,15,3,4", do_softmax=False),
    regions("RegionYolo: rank", "f32 2,16,3"),
    regions("RegionYolo: end_axis", "f32 2,16,3,4", end_axis=4),
    refusal("ReorgYolo: channels", "ReorgYolo-1", "f32 2,3,4,4", stride=2),
    refusal("ReorgYolo: sides", "ReorgYolo-1", "f32 2,4,4,5", stride=2),
    refusal("ReorgYolo: rank", "ReorgYolo-1", "f32 2,4,4", stride=2),
    detected("DetectionOutput: batches", "2,48", "3,36", "1,2,48"),
    detected("DetectionOutput: no variances", "2,48", "2,36", "1,1,48"),
    detected("DetectionOutput: variances in excess", "2,48", "2,36", "1,2,48", variance_encoded_in_target=True),
    detected("DetectionOutput: boxes of priors", "2,44", "2,36", "1,2,48"),
    detected("DetectionOutput: priors with an image id", "2,48", "2,36", "1,2,48", normalized=False),
    detected("DetectionOutput: objects of priors", "2,48", "2,36", "1,2,48", "2,23", "2,48"),
    detected("DetectionOutput: classes", "2,48", "2,37", "1,2,48"),
    refusal(
        "DetectionOutput: num_classes", "DetectionOutput-1", "f32 2,48", "f32 2,36", "f32 1,2,48",
        **OUTPUT | {"num_classes": 5},
    ),
    detected("DetectionOutput: rank", "2", "2,36", "1,2,48"),
    detected("DetectionOutput: boxes to make better", "2,48", "2,36", "1,2,48", "2,24", "2,47"),
    detected("DetectionOutput: batches of objects", "2,48", "2,36", "1,2,48", "3,24", "2,48"),
    detected("DetectionOutput: no priors", "2,0", "2,36", "1,2,0"),
    detected("DetectionOutput: four inputs", "2,48", "2,36", "1,2,48", "2,24"),
    detected("DetectionOutput: no limit", "2,48", "2,36", "1,2,48", keep_top_k=""),
    detected(
        "DetectionOutput: background", "2,48", "2,36", "1,2,48", decrease_label_id=True, background_label_id=1
    ),
    proposed("Proposal: deltas", "1,4,3,3", "1,9,3,3", "3"),
    proposed("Proposal: anchors", "1,6,3,3", "1,12,3,3", "3"),
    proposed("Proposal: image_shape", "1,4,3,3", "1,8,3,3", "5"),
    proposed("Proposal: framework", "1,4,3,3", "1,8,3,3", "3", framework="caffe"),
    proposed("Proposal: rank", "4,3,3", "1,8,3,3", "3"),
    generated("GenerateProposals: scores", "2,3", "3,4,2,4", "2,8,3,4", "2,2,4,3"),
    generated("GenerateProposals: deltas", "2,3", "3,4,2,4", "2,9,3,4", "2,2,3,4"),
    generated("GenerateProposals: im_info", "2,5", "3,4,2,4", "2,8,3,4", "2,2,3,4"),
    generated("GenerateProposals: numbers of an anchor", "2,3", "3,4,2,5", "2,8,3,4", "2,2,3,4"),
    generated("GenerateProposals: type", "2,3", "3,4,2,4", "2,8,3,4", "2,2,3,4", roi_num_type="f32"),
    single("single image: deltas", "3", "24,4", "9,3,4", "2,3,4"),
    single("single image: anchors", "3", "20,4", "8,3,4", "2,3,4"),
    single("single image: im_info", "4", "24,4", "8,3,4", "2,3,4"),
    found("Detectron: scores", "9,4", "9,12", "9,4", "1,3"),
    found("Detectron: deltas", "9,4", "9,11", "9,3", "1,3"),
    found("Detectron: im_info", "9,4", "9,12", "9,3", "3"),
    found("Detectron: weights", "9,4", "9,12", "9,3", "1,3", deltas_weights="1,2"),
    refusal(
        "grid: batches", f"{PREFIX}PriorGridGenerator-6", "f32 3,4", "f32 1,2,3,4", "f32 2,2,3,4"
    ),
    refusal("grid: priors", f"{PREFIX}PriorGridGenerator-6", "f32 3,5", "f32 1,2,3,4", "f32 1,2,3,4"),
    extracted("pyramid: channels", "9,4", "1,2,8,8", "1,3,4,4"),
    extracted("pyramid: levels", "9,4", *("1,2,8,8",) * 3),
    extracted("pyramid: none", "9,4"),
    aligned(
        "region without end", np.ones((1, 1, 4, 4), "f4"), np.float32([[0, 0, np.nan, 3]]), np.array([0]),
        _run=True, sampling_ratio=0,
    ),
    aligned(
        "region too large to sample", np.ones((1, 1, 4, 4), "f4"), np.float32([[0, 0, 1e9, 1e9]]),
        np.array([0]), _run=True, sampling_ratio=0,
    ),
    pooled("region that is no number", np.ones((1, 1, 4, 4), "f4"), np.float32([[0, 0, np.nan, 1, 1]]), _run=True),
    refusal(
        "DeformablePSROIPooling: region that is no number", "DeformablePSROIPooling-1",
        np.ones((1, 18, 4, 4), "f4"), np.float32([[0, 0, np.nan, 1, 1]]),
        _run=True, **SENSITIVE | {"mode": "bilinear_deformable", "part_size": 3},
    ),
    pooled("region of no batch entry", np.ones((1, 1, 4, 4), "f4"), np.float32([[3, 0, 0, 1, 1]]), _run=True),
]  # fmt: skip
