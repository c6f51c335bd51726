"""IoU and non-maximum suppression against plain loops over boxes."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from ir_runtime.ir.tensor import Array
from ir_runtime.ops.kernels.boxes import as_float, decode_deltas, descending, greedy_nms, iou, soft_nms
from ir_runtime.ops.sort.suppression import rotated_iou, rotated_nms


def boxes(count: int, seed: int = 0) -> Array:
    rng = np.random.default_rng(seed)
    low = rng.uniform(0, 6, (count, 2))
    return np.concatenate([low, low + rng.uniform(0, 4, (count, 2))], axis=1)


def overlap(a: Array, b: Array, extra: float) -> float:
    """Return the intersection over union of two boxes."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    if width < 0 or height < 0:
        return 0
    shared = (width + extra) * (height + extra)
    area_a, area_b = ((c[2] - c[0] + extra) * (c[3] - c[1] + extra) for c in (a, b))
    return float(shared / (area_a + area_b - shared))


@pytest.mark.parametrize("extra", [0, 1])
def test_overlaps(extra: float) -> None:
    found = iou((b := boxes(12))[:, None], b[None], extra)
    np.testing.assert_allclose(found, [[overlap(a, c, extra) for c in b] for a in b])


@pytest.mark.parametrize("threshold", [0.0, 0.2, 0.5, 1.0])
@pytest.mark.parametrize("extra", [0, 1])
def test_greedy(threshold: float, extra: float) -> None:
    b, kept = boxes(60, 3), []
    for i, box in enumerate(b):
        if all(overlap(box, b[k], extra) <= threshold for k in kept):
            kept.append(i)
    assert greedy_nms(b, threshold, extra=extra).tolist() == kept
    assert greedy_nms(b, threshold, 3, extra=extra).tolist() == kept[:3]


@pytest.mark.parametrize("most", [0, 1, 70, 200, 2000])
@pytest.mark.parametrize("threshold", [0.0, 0.02, 0.6])
def test_few_of_many_boxes(most: int, threshold: float) -> None:
    """Boxes kept last suppress later candidates."""
    b = boxes(900, 5)
    np.testing.assert_array_equal(greedy_nms(b, threshold, most), greedy_nms(b, threshold)[:most])


@pytest.mark.parametrize("extra", [0, 1])
def test_empty_and_infinite_boxes_and_nan_suppress_nothing(extra: float) -> None:
    b = boxes(300, 4).astype(np.float32)
    b[::7, 2:], b[1::7, 2], b[2::7, 3], b[3::7, 2] = b[::7, :2], b[1::7, 0] - 3, np.nan, np.inf
    kept: list[int] = []
    with np.errstate(all="ignore"):
        for i in range(len(b)):
            if not (iou(b[i], b[kept], extra) > np.float32(0.3)).any():
                kept.append(i)
        assert greedy_nms(b, 0.3, extra=extra).tolist() == kept


def test_a_threshold_met() -> None:
    b = np.array([[0, 0, 2, 2], [0, 1, 2, 2], [5, 5, 6, 6]], np.float32)
    assert iou(b[0], b[1]) == 0.5
    assert greedy_nms(b, 0.5).tolist() == [0, 1, 2]
    assert greedy_nms(b, 0.5, inclusive=True).tolist() == [0, 2]
    assert greedy_nms(b, 0.5, 0).tolist() == []
    # 0.5 is also a threshold that shrinks no more.
    assert greedy_nms(b, 0.5, eta=0.5).tolist() == [0, 1, 2]
    assert greedy_nms(b, 0.5, eta=0.5, inclusive=True).tolist() == [0, 2]


def test_empty_boxes_have_no_overlap() -> None:
    b = np.ones((2, 4), np.float32)
    assert iou(b[0], b[1]) == 0
    assert greedy_nms(b, 0).tolist() == [0, 1]
    assert greedy_nms(b, 0, inclusive=True).tolist() == [0], "an overlap of 0 reaches the threshold"


def test_boxes_left_of_the_origin_overlap_as_others_do() -> None:
    b = boxes(300, 3)
    for by in (3, 20):
        assert greedy_nms(b - by, 0.2).tolist() == greedy_nms(b, 0.2).tolist()


def test_the_last_box_may_come_late() -> None:
    b = np.array([[0, 0, 2, 2]] * 400 + [[5, 5, 6, 6]] * 2, np.float32)
    assert greedy_nms(b, 0.5, 2).tolist() == [0, 400]
    assert greedy_nms(b, 0.5, 1).tolist() == [0]


def test_a_threshold_that_adapts_itself() -> None:
    b = np.array([[0, 0, 10, 10], [0, 0, 10, 6.5], [20, 0, 30, 10], [20, 0, 30, 6.5]], np.float64)
    assert greedy_nms(b, 0.7).tolist() == [0, 1, 2, 3]
    # 0.7, then 0.56, 0.448 and no less.
    assert greedy_nms(b, 0.7, eta=0.8).tolist() == [0, 2]


def test_soft_suppression_as_a_loop() -> None:
    b, scores = boxes(30, 5), np.random.default_rng(6).uniform(0, 1, 30)
    left, current, kept, final = list(range(30)), scores.copy(), [], []
    while left and current[left].max() > 0.05:
        best = max(left, key=lambda i: current[i])
        left.remove(best)
        kept.append(best)
        final.append(current[best])
        for i in left:
            current[i] *= np.exp(-0.5 * overlap(b[best], b[i], 0) ** 2 / 0.3)
    places, lowered = soft_nms(b, scores, 0.3, 30, above=0.05)
    assert places.tolist() == kept
    np.testing.assert_allclose(lowered, final)


def test_soft_suppression_at_its_bounds() -> None:
    b = np.array([[0, 0, 2, 2], [0, 1, 2, 2], [5, 5, 6, 6]], np.float64)
    scores = np.array([1, 0.75, 0.5])
    places, lowered = soft_nms(b, scores, 0.5, 3, above=0)
    assert places.tolist() == [0, 1, 2]
    assert soft_nms(b, scores, 0.5, 2, above=0)[0].tolist() == [0, 1]
    assert soft_nms(b, scores, 0.5, 3, above=0.5)[0].tolist() == [0, 1], "a score that is no more"
    assert soft_nms(b, scores, 0.5, 3, above=1)[0].tolist() == []
    assert soft_nms(b, scores, 0.5, 3, above=lowered[1])[0].tolist() == [0], "a lowered score that is no more"
    assert soft_nms(b, scores, 0.5, 3, above=0, cut=0.5)[0].tolist() == [0, 2], "an overlap that is no less"


def test_boxes_are_computed_in_f32_unless_they_are_f64() -> None:
    kinds = {kind: as_float(np.ones(1, kind)).dtype for kind in ("f2", "f4", "f8")}
    assert kinds == {"f2": np.float32, "f4": np.float32, "f8": np.float64}


def test_the_best_come_first_and_equal_ones_in_order() -> None:
    scores = np.array([1, 3, 2, 3, 0, 2.0])
    assert descending(scores).tolist() == [1, 3, 2, 5, 0, 4]
    assert descending(scores, 1, 3).tolist() == [1, 3, 2]
    assert descending(scores, 1).tolist() == [1, 3, 2, 5], "only scores above 1"
    assert descending(scores, most=0).tolist() == descending(scores, 1, 0).tolist() == []


def test_deltas_of_nothing_change_nothing() -> None:
    b = boxes(5)
    for extra in (0, 1):
        np.testing.assert_allclose(decode_deltas(b, np.zeros_like(b), extra), b)
    doubled = decode_deltas(b, np.array([0, 0, np.log(2), 9.0]), largest=np.log(2))
    np.testing.assert_allclose(doubled[:, 2:] - doubled[:, :2], 2 * (b[:, 2:] - b[:, :2]))


def test_many_boxes() -> None:
    low = np.random.default_rng(0).uniform(0, 1000, (10_000, 2)).astype(np.float32)
    b = np.concatenate([low, low + 20], axis=1)
    kept = greedy_nms(b, 0.5)
    assert 5000 < len(kept) < 8000
    assert (iou(b[kept[:300], None], b[kept[:300]]) > 0.5).sum() == 300  # each its own only


def area(a: Array, b: Array, steps: int = 400) -> float:
    """Return the overlap of two rotated boxes, by counting points."""
    grid = (np.arange(steps) + 0.5) / steps * 12 - 6
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    hits = []
    for x, y, width, height, angle in (a, b):
        moved = points - (x, y)
        along = moved @ (np.cos(angle), np.sin(angle))
        across = moved @ (-np.sin(angle), np.cos(angle))
        hits.append((np.abs(along) <= width / 2) & (np.abs(across) <= height / 2))
    return float((hits[0] & hits[1]).sum() / (hits[0] | hits[1]).sum())


def test_rotated_overlaps() -> None:
    rng = np.random.default_rng(1)
    b = np.concatenate(
        [rng.uniform(-1, 1, (25, 2)), rng.uniform(1, 5, (25, 2)), rng.uniform(-4, 4, (25, 1))], 1
    )
    for first, second in pairwise(b):
        assert abs(rotated_iou(first, second[None])[0] - area(first, second)) < 0.01


@pytest.mark.parametrize("angle", [0, 0.5, np.pi / 2, np.pi, -3])
def test_rotated_boxes_that_share_edges(angle: float) -> None:
    box = np.array([3, 4, 2, 2, angle])
    others = np.array(
        [
            [3, 4, 2, 2, angle],
            [3, 4, 2, 2, angle + np.pi / 2],
            [3, 4, 1, 1, angle],
            [90, 4, 2, 2, 0],
            [3, 4, 0, 2, 0],
        ]
    )
    np.testing.assert_allclose(rotated_iou(box, others), [1, 1, 0.25, 0, 0], atol=1e-9)
    assert rotated_nms(others, 0.9, 9).tolist() == [0, 2, 3, 4]
