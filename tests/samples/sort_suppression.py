"""Samples of NonMaxSuppression: overlaps, ties, batches and classes, thresholds, encodings, soft suppression."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from harness.sample import Sample, case, ints, numbers, scalar

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN: dict[str, Any] = {"_oracle": "plugin"}
STATIC: dict[str, Any] = PLUGIN | {
    "_wider": "OpenVINO declares a number of rows; it returns as many as there are boxes left"
}

FEW = np.array([[[0, 0, 2, 2], [0, 1, 2, 2], [0, 0, 2, 3], [5, 5, 6, 6], [2, 2, 0, 0]]], "f4")
SCORES = np.array([[[0.9, 0.8, 0.7, 0.6, 0.5], [0.1, 0.95, 0.3, 0.2, 0.05]]], "f4")


def boxes(batches: int, count: int, dtype: str = "f32", seed: int = 0) -> Array:
    """Boxes with many overlaps, given by two opposite corners."""
    centre, side = (
        numbers(batches, count, 2, low=0, high=4, seed=seed),
        numbers(batches, count, 2, seed=seed + 1),
    )
    return np.concatenate([centre - side / 2, centre + side / 2], -1).astype(ElementType.parse(dtype).dtype)


def scores(batches: int, classes: int, count: int, dtype: str = "f32", seed: int = 0) -> Array:
    """Distinct scores, also in 16-bit types."""
    rng = np.random.default_rng(seed)
    ranks = np.stack([rng.permutation(count) for _ in range(batches * classes)])
    return ((ranks + 1) / 64).reshape(batches, classes, count).astype(ElementType.parse(dtype).dtype)


def f(number: float) -> Array:
    return scalar(number, "f32")


def suppress(name: str, b: Any, s: Any, *rest: Any, constant: bool = True, **attributes: Any) -> Sample:
    """A sample with constant thresholds."""
    how = PLUGIN if name.endswith(("-5", "-9")) else STATIC
    fixed = tuple(range(2, 2 + len(rest))) if constant else ()
    return case(name, b, s, *rest, _constant=fixed, **how, **attributes)


def common(name: str) -> list[Sample]:
    """Samples shared by all versions."""
    b, s = boxes(2, 20), scores(2, 3, 20)
    limits = (scalar(10), f(0.5), f(0.1))
    samples = [
        *(suppress(name, FEW, SCORES, scalar(k), f(0.45), f(0.15)) for k in (1, 2, 10)),
        *(
            suppress(name, FEW, SCORES, scalar(10), f(0.5), f(0), sort_result_descending=x)
            for x in (True, False)
        ),
        *(suppress(name, b, s, scalar(k), f(0.3), f(0.05)) for k in (1, 5, 100)),
        *(
            suppress(name, b, s, scalar(20), f(iou), f(0), sort_result_descending=False)
            for iou in (0.05, 0.9)
        ),
        suppress(name, b, s, *limits, box_encoding="corner", sort_result_descending=True),
        suppress(name, np.abs(b), s, *limits, box_encoding="center"),
        suppress(name, np.abs(b), s, *limits, box_encoding="center", sort_result_descending=False),
        suppress(name, b[:1], np.full((1, 2, 20), 0.5, "f4"), *limits),
        suppress(name, b[:1], np.full((1, 2, 20), 0.5, "f4"), *limits, sort_result_descending=False),
        suppress(name, FEW[:, [0, 0, 0]], SCORES[:, :, :3], scalar(3), f(0.5), f(0)),
        suppress(name, b, s, scalar(4, "i32"), f(0.2), f(0.2)),
        suppress(name, b, s, scalar(4), f(0.2)),
        suppress(name, b, s, scalar(4)),
        suppress(name, b, -s, scalar(4), f(0.2), f(-0.2)),
        suppress(name, b, s, scalar(4), f(0.2), f(2)),
        suppress(name, boxes(1, 60, seed=3), scores(1, 1, 60, seed=3), scalar(60), f(0.35), f(0.1)),
        suppress(name, FEW[:, :1], SCORES[:, :, :1], scalar(3), f(0.5), f(0)),
        suppress(name, boxes(2, 8, "f16"), scores(2, 1, 8, "f16"), *limits),
        suppress(name, boxes(2, 8, "bf16"), scores(2, 1, 8, "bf16"), *limits),
    ]
    if not name.endswith(("-5", "-9")):
        wide = suppress(name, FEW.astype("f8"), SCORES.astype("f8"), scalar(2), f(0.45), f(0.15))
        left = np.array([[0, 1, 1], [0, 0, 0], [0, 0, 3], [0, 1, 2]])
        samples.append(
            replace(
                wide, oracle="none", expect=(left,), differs="OpenVINO reads f64 here, and does not run it"
            )
        )
    if name != "NonMaxSuppression-1":
        samples += [suppress(name, b, s, *limits, output_type=index) for index in ("i32", "i64")]
    return samples


def softened(name: str) -> list[Sample]:
    """Further samples of versions that return scores."""
    b, s = boxes(2, 12, seed=7), scores(2, 2, 12, seed=7)
    return [
        suppress(name, b, s, scalar(12), f(0.4), f(0.05), f(0)),
        suppress(name, b, s, ints(5), np.array([0.4], "f4"), np.array([0.05], "f4"), np.array([0], "f4")),
        suppress(name, b, s, scalar(5), f(0.4), f(0.05), constant=False),
        *(
            suppress(name, b, s, scalar(k), f(1), f(0.05), f(sigma), sort_result_descending=descending)
            for k, sigma, descending in ((12, 0.5, True), (12, 0.1, False), (4, 1, True), (12, 0.05, True))
        ),
    ]


def lowered(name: str, iou: float) -> Sample:
    """Soft suppression where the third box has an IoU of 2/3 with the first."""
    high, low = 0.9, 0.7 * np.exp(-4 / 9)
    left = [(0, high), (3, 0.6)] if name == "NonMaxSuppression-5" else [(0, high), (3, 0.6), (2, low)]
    return case(
        name,
        FEW[:, [0, 3, 2]][:, [0, 2, 2, 1]],
        np.array([[[0.9, 0.7, 0, 0.6]]], "f4"),
        scalar(9),
        f(iou),
        f(0),
        f(0.5),
        _constant=(2, 3, 4, 5),
        _oracle="none",
        _differs="the plugin has no iou_threshold where it lowers scores; page and reference of version 5 have",
        _expect=(
            np.array([[0, 0, i if i != 2 else 1] for i, _ in left]),
            np.array([[0, 0, s] for _, s in left], "f4"),
            np.array([len(left)]),
        ),
    )


SAMPLES = [
    *(s for version in (1, 3, 4, 5, 9) for s in common(f"NonMaxSuppression-{version}")),
    *(s for version in (5, 9) for s in softened(f"NonMaxSuppression-{version}")),
    lowered("NonMaxSuppression-5", 0.5),
]
