"""Samples of DetectionOutput: encodings, shared and per-class boxes, limits, refined priors."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PRIORS, CLASSES = 12, 4
CENTER = "caffe.PriorBoxParameter.CENTER_SIZE"
PLUGIN: dict[str, Any] = {"_oracle": "plugin"}


def priors(entries: int, rows: int, size: float = 0) -> Array:
    """Overlapping boxes and variances; with an image id and in pixels if a size is given."""
    low = numbers(entries, PRIORS, 2, low=0, high=0.7, seed=5)
    boxes = np.concatenate([low, low + numbers(entries, PRIORS, 2, low=0.1, high=0.4, seed=6)], -1)
    if size:
        boxes = np.concatenate([np.zeros((entries, PRIORS, 1), "f4"), boxes * size], -1)
    variances = np.zeros_like(boxes).reshape(entries, 1, -1)
    variances[..., : PRIORS * 4] = np.tile([0.1, 0.1, 0.2, 0.2], PRIORS)
    return np.concatenate([boxes.reshape(entries, 1, -1), variances][:rows], 1).astype("f4")


def scores(entries: int, seed: int = 0, classes: int = CLASSES) -> Array:
    """Distinct scores."""
    ranks = np.random.default_rng(seed).permutation(entries * PRIORS * classes)
    return ((ranks + 1) / 256).reshape(entries, -1).astype("f4")


def detect(
    name: str, *more: Array, entries: int = 2, dtype: str = "f32", seed: int = 0, **changed: Any
) -> Sample:
    plain: dict[str, Any] = {"keep_top_k": 20, "nms_threshold": 0.4, "normalized": True, "code_type": CENTER}
    if name.endswith("-1"):
        plain["num_classes"] = CLASSES
    given = plain | changed
    rows = 1 if given.get("variance_encoded_in_target") else 2
    own = 1 if given.get("share_location", True) else CLASSES
    size = 0 if given["normalized"] else given.get("input_width", 1)
    inputs = [
        numbers(entries, PRIORS * own * 4, low=-1, high=1, seed=seed),
        scores(entries, seed, given.get("num_classes", CLASSES)),
        priors(given.pop("priors", 1), rows, size),
        *more,
    ]
    to = ElementType.parse(dtype).dtype
    return case(name, *(x.astype(to) for x in inputs), **PLUGIN, **given)


def common(name: str) -> list[Sample]:
    better = (numbers(2, PRIORS * 2, low=0, high=1, seed=8), numbers(2, PRIORS * 4, low=-1, high=1, seed=9))
    of_classes = (better[0], numbers(2, PRIORS * CLASSES * 4, low=-1, high=1, seed=9))
    return [
        *(detect(name, nms_threshold=overlap, seed=int(overlap * 10)) for overlap in (0.1, 0.5, 0.9)),
        detect(name, code_type="caffe.PriorBoxParameter.CORNER"),
        detect(name, variance_encoded_in_target=True),
        detect(name, variance_encoded_in_target=True, code_type="caffe.PriorBoxParameter.CORNER"),
        detect(name, share_location=False),
        detect(name, share_location=False, background_label_id=2),
        detect(name, background_label_id=-1),
        *(
            detect(name, keep_top_k=keep, top_k=top, _always=(keep, top) == (-1, 2))
            for keep in (-1, 3, 100)
            for top in (-1, 2, 5)
        ),
        detect(name, confidence_threshold=0.3),
        detect(name, confidence_threshold=2),
        detect(name, clip_after_nms=True, code_type="caffe.PriorBoxParameter.CORNER"),
        detect(name, clip_before_nms=True),
        detect(name, priors=2),
        detect(name, normalized=False, input_height=50, input_width=50),
        detect(name, normalized=False, input_height=30, input_width=60, share_location=False),
        *(
            detect(
                name,
                decrease_label_id=True,
                share_location=own,
                top_k=7,
                confidence_threshold=0.1,
                _always=True,
            )
            for own in (True, False)
        ),
        detect(name, decrease_label_id=True, keep_top_k=4),
        detect(name, *better, objectness_score=0.4, _always=True),
        detect(name, *better, objectness_score=0.4, decrease_label_id=True),
        detect(name, *of_classes, objectness_score=0.4, share_location=False),
        *(detect(name, entries=1, dtype=dtype, keep_top_k=5) for dtype in ("f16", "bf16")),
        detect(name, entries=1, dtype="f64", _rtol=1e-5, _atol=1e-5),
    ]


ONE_CLASS = detect("DetectionOutput-1", num_classes=1, background_label_id=-1)

SAMPLES = [*common("DetectionOutput-1"), ONE_CLASS, *common("DetectionOutput-8")]
