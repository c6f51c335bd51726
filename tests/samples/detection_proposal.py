"""Samples of proposals: anchors, limits, clipping, small boxes, frameworks, several images."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN: dict[str, Any] = {"_oracle": "plugin"}
F64 = PLUGIN | {"_rtol": 1e-5, "_atol": 1e-4}
IMAGE = np.array([60, 80, 1.5], "f4")
SQUARE = np.array([70, 70, 1.0, 2.0], "f4")


def ranked(*shape: int, seed: int = 0) -> Array:
    """Distinct scores."""
    order = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return ((order + 1) / 512).reshape(shape).astype("f4")


def propose(
    name: str, image: Array = IMAGE, images: int = 1, dtype: str = "f32", seed: int = 0, **changed: Any
) -> Sample:
    plain: dict[str, Any] = {"base_size": 16, "pre_nms_topn": 40, "post_nms_topn": 6, "nms_thresh": 0.6}
    plain |= {"feat_stride": 16, "min_size": 8, "ratio": (0.5, 2.0), "scale": (1.0, 2.0)} | changed
    anchors = len(plain["ratio"]) * len(plain["scale"])
    inputs = (
        ranked(images, 2 * anchors, 3, 4, seed=seed),
        numbers(images, 4 * anchors, 3, 4, low=-0.4, high=0.4, seed=seed),
        image,
    )
    to = ElementType.parse(dtype).dtype
    how = F64 if dtype == "f64" else PLUGIN
    return case(name, *(x.astype(to) for x in inputs), **how, **plain)


def proposals(name: str) -> list[Sample]:
    swapped: dict[str, Any] = {"framework": "tensorflow", "image": SQUARE}
    return [
        *(propose(name, nms_thresh=overlap, seed=i) for i, overlap in enumerate((0.3, 0.5, 0.9))),
        propose(name, images=2),
        propose(name, pre_nms_topn=16, post_nms_topn=4, nms_thresh=1.0),
        propose(name, pre_nms_topn=100, post_nms_topn=30, nms_thresh=1.0),
        propose(name, image=SQUARE, min_size=12),
        propose(name, min_size=12, nms_thresh=0.4),
        propose(name, clip_before_nms=False),
        propose(name, clip_before_nms=False, clip_after_nms=True, normalize=True),
        propose(name, normalize=True),
        propose(name, box_size_scale=5.0, box_coordinate_scale=10.0),
        propose(name, base_size=9, ratio=(1.0, 0.3, 1.7), scale=(1.5,)),
        propose(name, **swapped),
        propose(name, **swapped, normalize=True, min_size=1, clip_before_nms=False),
        propose(name, post_nms_topn=60, pre_nms_topn=30, nms_thresh=0.2)
        if name.endswith("-1")
        else propose(name, seed=9),
        propose(name, dtype="f64"),
        *(propose(name, dtype=dtype, nms_thresh=1.0) for dtype in ("f16", "bf16")),
        propose(name, base_size=1, feat_stride=1, min_size=0),
        propose(name, pre_nms_topn=1, post_nms_topn=1),
    ]


def anchors(height: int, width: int, count: int) -> Array:
    """Boxes around the points of a grid."""
    y, x = np.meshgrid(np.arange(height) * 16 + 8, np.arange(width) * 16 + 8, indexing="ij")
    centre = np.stack([x, y], -1)[:, :, None]
    half = numbers(count, 2, low=5, high=20, seed=4)
    return np.concatenate([centre - half, centre + half], -1).astype("f4")


def single(dtype: str = "f32", seed: int = 0, size: tuple[int, int] = (60, 80), **changed: Any) -> Sample:
    name = "ExperimentalDetectronGenerateProposalsSingleImage-6"
    plain = {"min_size": 0.0, "nms_threshold": 0.6, "post_nms_count": 5, "pre_nms_count": 100} | changed
    inputs = (
        np.array([*size, 1], "f4"),
        anchors(3, 4, 3).reshape(-1, 4),
        numbers(12, 3, 4, low=-0.4, high=0.4, seed=seed),
        ranked(3, 3, 4, seed=seed),
    )
    to = ElementType.parse(dtype).dtype
    return case(name, *(x.astype(to) for x in inputs), **(F64 if dtype == "f64" else PLUGIN) | plain)


def generate(images: int = 2, dtype: str = "f32", seed: int = 0, scales: int = 1, **changed: Any) -> Sample:
    plain = {"min_size": 0.0, "nms_threshold": 0.6, "post_nms_count": 5, "pre_nms_count": 100} | changed
    info = np.array(
        [[60 + 10 * i, 80 - 10 * i, *(1 + j + i for j in range(scales))] for i in range(images)], "f4"
    )
    inputs = (
        info,
        anchors(3, 4, 3),
        numbers(images, 12, 3, 4, low=-0.4, high=0.4, seed=seed),
        ranked(images, 3, 3, 4, seed=seed),
    )
    to = ElementType.parse(dtype).dtype
    return case("GenerateProposals-9", *(x.astype(to) for x in inputs), **PLUGIN | plain)


def no_box(*expected: Array) -> dict[str, Any]:
    """Return the fields of a sample whose thresholds reject all boxes."""
    return {"_oracle": "none", "_expect": expected, "_differs": "the plugin crashes at a count of 0"}


SINGLE = [
    *(single(nms_threshold=overlap, seed=i) for i, overlap in enumerate((0.1, 0.3, 0.5, 1.0))),
    single(min_size=14.0, nms_threshold=0.8),
    single(min_size=20.0, post_nms_count=20),
    single(pre_nms_count=7, nms_threshold=1.0),
    single(pre_nms_count=20, post_nms_count=40, nms_threshold=0.3, seed=5),
    single(size=(30, 30), post_nms_count=10),
    *(single(dtype=dtype, nms_threshold=1.0) for dtype in ("f16", "bf16", "f64")),
    single(pre_nms_count=0, **no_box(np.zeros((5, 4), "f4"), np.zeros(5, "f4"))),
    single(post_nms_count=0, **no_box(np.zeros((0, 4), "f4"), np.zeros(0, "f4"))),
]
GENERATED = [
    *(generate(nms_threshold=overlap, seed=i) for i, overlap in enumerate((0.1, 0.3, 0.5, 1.0))),
    *(generate(normalized=normalized, nms_threshold=0.4, min_size=10.0) for normalized in (True, False)),
    generate(scales=2, min_size=9.0),
    generate(nms_eta=1.0, seed=6),
    generate(scales=2, min_size=9.0, normalized=False, images=3, seed=2),
    generate(pre_nms_count=7, nms_threshold=1.0),
    generate(images=1, post_nms_count=40, nms_threshold=0.3, seed=5),
    generate(roi_num_type="i32"),
    generate(min_size=1000.0),
    *(generate(dtype=dtype, nms_threshold=1.0) for dtype in ("f16", "bf16")),
    generate(pre_nms_count=1, post_nms_count=1),
]

SAMPLES = [*(s for name in ("Proposal-1", "Proposal-4") for s in proposals(name)), *SINGLE, *GENERATED]
