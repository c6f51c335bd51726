"""Samples of Detectron operations: thresholds, limits, grids, pyramid levels."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN: dict[str, Any] = {"_oracle": "plugin"}
F64 = PLUGIN | {"_rtol": 1e-5, "_atol": 1e-3}
PREFIX = "ExperimentalDetectron"


def regions(count: int, side: float = 60, seed: int = 0) -> Array:
    low = numbers(count, 2, low=0, high=40, seed=seed)
    return np.concatenate([low, low + numbers(count, 2, low=4, high=side, seed=seed + 1)], -1)


def ranked(*shape: int, seed: int = 0) -> Array:
    """Distinct scores."""
    order = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return ((order + 1) / 128).reshape(shape).astype("f4")


def typed(name: str, *inputs: Array, dtype: str = "f32", **attributes: Any) -> Sample:
    to = ElementType.parse(dtype).dtype
    return case(
        PREFIX + name, *(x.astype(to) for x in inputs), **(F64 if dtype == "f64" else PLUGIN), **attributes
    )


def detect(
    count: int = 12, dtype: str = "f32", seed: int = 0, rois: Array | None = None, **changed: Any
) -> Sample:
    plain: dict[str, Any] = {
        "score_threshold": 0.1,
        "nms_threshold": 0.5,
        "num_classes": 4,
        "post_nms_count": 100,
    }
    plain |= {
        "max_detections_per_image": count,
        "max_delta_log_wh": 4.135,
        "deltas_weights": (10.0, 10.0, 5.0, 5.0),
    }
    plain |= changed
    classes = plain["num_classes"]
    rois = regions(12, seed=seed) if rois is None else rois
    inputs = (rois, numbers(len(rois), classes * 4, seed=seed), ranked(len(rois), classes, seed=seed))
    return typed("DetectionOutput-6", *inputs, np.array([[80, 100, 1]], "f4"), dtype=dtype, **plain)


EMPTY = np.array([[5, 5, 5, 9], [1, 2, 30, 40], [9, 9, 2, 2], [0, 0, 20, 20]] * 3, "f4")
DETECT = [
    *(detect(nms_threshold=overlap, seed=i) for i, overlap in enumerate((0.1, 0.3, 0.7))),
    detect(count=5),
    detect(count=100),
    detect(post_nms_count=2),
    detect(score_threshold=0.3, count=20),
    detect(score_threshold=2.0),
    detect(max_delta_log_wh=0.2, deltas_weights=(1.0, 2.0, 1.0, 2.0)),
    detect(num_classes=2),
    detect(rois=EMPTY, class_agnostic_box_regression=True),
    *(detect(dtype=dtype, nms_threshold=1.0, count=40) for dtype in ("f16", "bf16")),
    detect(dtype="f64"),
    detect(num_classes=1),
    detect(count=1, post_nms_count=-1),
]


def grid(
    dtype: str = "f32", size: tuple[int, int] = (3, 4), image: tuple[int, int] = (48, 100), **attributes: Any
) -> Sample:
    priors = np.array([[-8, -8, 8, 8], [-4, -16, 4, 16], [-2, -3, 5, 7]], "f4")
    maps, data = np.zeros((1, 2, *size), "f4"), np.zeros((1, 3, *image), "f4")
    return typed("PriorGridGenerator-6", priors, maps, data, dtype=dtype, **{"flatten": True} | attributes)


GRIDS = [
    grid(),
    grid(flatten=False),
    grid(stride_x=16.0, stride_y=8.0),
    grid(stride_x=16.0, flatten=False),
    grid(h=3, w=4),
    grid(h=3, w=4, stride_x=5.0, stride_y=0.5),
    grid(size=(1, 1), image=(7, 5)),
    grid(size=(2, 5), image=(64, 80), flatten=False),
    *(grid(dtype=dtype, image=(48, 64)) for dtype in ("f16", "bf16", "f64")),
]


def extract(rois: Array, levels: int = 3, dtype: str = "f32", **changed: Any) -> Sample:
    plain: dict[str, Any] = {"output_size": 3, "sampling_ratio": 2, "pyramid_scales": (4, 8, 16, 32)[:levels]}
    plain |= {"aligned": False} | changed
    pyramid = [numbers(1, 2, 64 >> i, 48 >> i, seed=i) for i in range(levels)]
    return typed("ROIFeatureExtractor-6", rois, *pyramid, dtype=dtype, **plain)


SIZES = np.array(
    [
        [0, 0, 50, 50],
        [10, 20, 130, 140],
        [0, 0, 224, 224],
        [-5, 3, 400, 200],
        [3, 3, 3, 9],
        [0, 0, 448, 448],
        [1, 2, 9, 700],
    ],
    "f4",
)
EXTRACT = [
    *(extract(SIZES, levels) for levels in (1, 2, 3, 4)),
    *(
        extract(SIZES, aligned=aligned, sampling_ratio=ratio)
        for aligned in (True, False)
        for ratio in (0, 1, 3)
    ),
    extract(SIZES[:1], output_size=7),
    extract(SIZES[:2], output_size=1),
    extract(SIZES.astype("f4"), dtype="f64"),
    *(extract(SIZES[:4], dtype=dtype) for dtype in ("f16", "bf16")),
    extract(SIZES, pyramid_scales=(1, 2, 4)),
]
TOP = [
    *(
        typed("TopKROIs-6", regions(count), ranked(count), max_rois=most)
        for count, most in ((7, 3), (7, 7), (5, 1), (1, 1))
    ),
    typed("TopKROIs-6", regions(20), -ranked(20), max_rois=10),
    *(typed("TopKROIs-6", regions(6), ranked(6), dtype=dtype, max_rois=4) for dtype in ("f16", "bf16")),
    typed("TopKROIs-6", regions(6), ranked(6), dtype="f64", max_rois=4),
    typed("TopKROIs-6", regions(3), ranked(3), max_rois=0),
]

SAMPLES = [*DETECT, *GRIDS, *EXTRACT, *TOP]
