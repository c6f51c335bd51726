"""Samples of MatrixNms, MulticlassNms and NMSRotated: limits, orders, images, decays, per-class boxes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN: dict[str, Any] = {"_oracle": "plugin"}


def boxes(entries: int, count: int, seed: int = 0, size: float = 1) -> Array:
    """Boxes with many overlaps."""
    low = numbers(entries, count, 2, low=0, high=0.6, seed=seed)
    return (
        np.concatenate([low, low + numbers(entries, count, 2, low=0.1, high=0.4, seed=seed + 1)], -1) * size
    )


def ranked(*shape: int, seed: int = 0) -> Array:
    """Distinct scores, also in 16-bit types."""
    order = np.random.default_rng(seed).permutation(int(np.prod(shape)))
    return ((order + 1) / 128).reshape(shape)


def choose(
    name: str, dtype: str = "f32", seed: int = 0, images: int = 2, size: float = 1, **attributes: Any
) -> Sample:
    to = ElementType.parse(dtype).dtype
    inputs = boxes(images, 10, seed, size), ranked(images, 3, 10, seed=seed)
    return case(name, *(x.astype(to) for x in inputs), **PLUGIN, **attributes)


def orders(name: str) -> list[Sample]:
    """Samples shared by all of them."""
    return [
        *(
            choose(name, sort_result_type=order, sort_result_across_batch=across, seed=3)
            for order in ("none", "score", "classid")
            for across in (True, False)
        ),
        choose(name, output_type="i32"),
        choose(name, nms_top_k=3),
        choose(name, keep_top_k=4),
        choose(name, nms_top_k=5, keep_top_k=7, sort_result_type="classid", seed=1),
        choose(name, background_class=1),
        choose(name, background_class=0, score_threshold=0.2),
        choose(name, score_threshold=0.3),
        choose(name, images=1, size=50, normalized=False),
        choose(name, images=3, seed=5),
        choose(name, dtype="f16", images=1),
    ]


MATRIX = [
    *orders("MatrixNms-8"),
    *(choose("MatrixNms-8", decay_function="gaussian", gaussian_sigma=sigma) for sigma in (0.5, 2.0)),
    choose("MatrixNms-8", post_threshold=0.1),
    # The score of the best box of a class, which no other lowers.
    choose("MatrixNms-8", post_threshold=float(ranked(2, 3, 10)[0, 0].max()), _always=True),
    choose("MatrixNms-8", score_threshold=0.25, _always=True),
    choose("MatrixNms-8", post_threshold=0.2, decay_function="gaussian", score_threshold=0.1, keep_top_k=5),
]


UNSET = "the plugin leaves the counts as they were where nothing is left"


def nothing(name: str, **attributes: int) -> Sample:
    """No boxes of any class."""
    empty = np.zeros((0, 6), "f4"), np.zeros((0, 1), "i8"), np.zeros(2, "i8")
    sample = choose(name, **attributes)
    return replace(sample, oracle="none", differs=UNSET, expect=empty, always=True)


def several(name: str) -> list[Sample]:
    return [
        *orders(name),
        choose(name, dtype="bf16", images=1),
        nothing(name, nms_top_k=0),
        nothing(name, keep_top_k=0),
        # One score is 0.25; no box suppresses another.
        choose(name, score_threshold=0.25, iou_threshold=1.0, _always=True),
        choose(name, score_threshold=5.0),
        *(choose(name, iou_threshold=overlap, seed=2) for overlap in (0.1, 0.3, 0.7)),
        choose(name, iou_threshold=0.8, nms_eta=0.7, seed=4),
        choose(name, iou_threshold=0.4, nms_eta=0.5, seed=4),
        choose(name, iou_threshold=0.6, normalized=False, size=20),
    ]


def own(counts: tuple[int, ...], dtype: str = "i64", **attributes: Any) -> Sample:
    """Classes with boxes of their own, in one list for all images."""
    total = sum(counts)
    inputs = boxes(3, total, 6).astype("f4"), ranked(3, total, seed=6).astype("f4")
    return case("MulticlassNms-9", *inputs, ints(*counts, dtype=dtype), **PLUGIN, **attributes)


OWN = [
    own((4, 5)),
    own((4, 5), "i32", iou_threshold=0.3, output_type="i32"),
    own((9,), iou_threshold=0.5, background_class=2),
    own((3, 0, 6), iou_threshold=0.5, keep_top_k=5),
    own((4, 5), iou_threshold=0.5, sort_result_type="classid"),
    own((4, 5), iou_threshold=0.5, sort_result_type="score", sort_result_across_batch=True),
]


def rotated(
    count: int = 10,
    dtype: str = "f32",
    seed: int = 0,
    images: int = 2,
    limit: int = 10,
    iou: float = 0.3,
    above: float = 0.0,
    **attributes: Any,
) -> Sample:
    to = ElementType.parse(dtype).dtype
    centre = numbers(images, count, 2, low=0, high=6, seed=seed)
    sides = numbers(images, count, 2, low=1, high=5, seed=seed + 1)
    turned = np.concatenate([centre, sides, numbers(images, count, 1, seed=seed + 2)], -1)
    inputs = turned.astype(to), ranked(images, 2, count, seed=seed).astype(to)
    thresholds = scalar(limit), scalar(iou, "f32"), scalar(above, "f32")
    return case("NMSRotated-13", *inputs, *thresholds, _constant=(2, 3, 4), **PLUGIN, **attributes)


ROTATED = [
    *(rotated(iou=overlap, seed=i * 3, count=20) for i, overlap in enumerate((0.1, 0.2, 0.3, 0.5, 0.8))),
    *(rotated(clockwise=clockwise, iou=0.25, seed=20) for clockwise in (True, False)),
    # A box of 2 by 2, one of 2 by 1 inside of it, which is half of their union, and one far away.
    case(
        "NMSRotated-13",
        np.float32([[[1, 1, 2, 2, 0], [1, 0.5, 2, 1, 0], [9, 9, 2, 2, 0]]]),
        np.float32([[[0.5, 0.25, 0.125]]]),
        scalar(3),
        scalar(0.5, "f32"),
        scalar(0.125, "f32"),
        _constant=(2, 3, 4),
        _always=True,
        **PLUGIN,
    ),
    rotated(limit=2),
    rotated(above=0.15, sort_result_descending=False),
    rotated(count=1),
    replace(
        rotated(limit=0),
        oracle="none",
        differs=UNSET,
        expect=(np.zeros((0, 3), "i8"), np.zeros((0, 3), "f4"), np.zeros(1, "i8")),
    ),
    rotated(images=1, output_type="i32"),
    *(rotated(dtype=dtype, images=1, seed=8, iou=0.9) for dtype in ("f16", "bf16")),
]

SAMPLES = [
    *MATRIX,
    *(nothing("MatrixNms-8", **{limit: 0}) for limit in ("nms_top_k", "keep_top_k")),
    *(s for name in ("MulticlassNms-8", "MulticlassNms-9") for s in several(name)),
    *OWN,
    *ROTATED,
]
