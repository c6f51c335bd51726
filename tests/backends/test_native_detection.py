"""Detection in the fast backends against the reference: resized maps, regions, and non-maximum suppression.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends import native
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native.kernels import nms as suppression
from ir_runtime.backends.native.threading import parallel
from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

quick = settings(max_examples=8 if AGAIN in os.environ else 40, deadline=None)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30], np.float32)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers, with the kernel for many boxes."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        if request.param > 1:
            patch.setattr(suppression, "MAX_SMALL", 0)
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        with at_most(request.param), native.backend.around():
            yield


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.from_dtype(x.dtype), PartialShape.dynamic(x.ndim))


def listed(found: Any) -> list[Array]:
    return list(found) if isinstance(found, tuple) else [found]


def maps(*shape: int, special: bool) -> Array:
    rng = np.random.default_rng(shape)
    x = rng.standard_normal(shape).astype(np.float32)
    if special:
        x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 30)] = rng.choice(SPECIAL)
    return x


@quick
@given(
    st.sampled_from([4, 11]), st.sampled_from(["nearest", "linear", "linear_onnx", "cubic"]),
    st.sampled_from(["half_pixel", "asymmetric", "align_corners"]),
    st.sampled_from(["round_prefer_floor", "ceil", "simple"]), st.booleans(), st.booleans(),
    st.sampled_from([1, 3, 16, 33, 65]), st.sampled_from([(1, 1), (5, 7), (8, 3)]),
    st.sampled_from([(1, 1), (5, 7), (3, 9), (10, 14), (1, 2)]), st.booleans(),
)  # fmt: skip
def test_resized_maps(
    version: int, mode: str, coordinates: str, nearest: str, antialias: bool, by_size: bool, channels: int,
    before: tuple[int, int], after: tuple[int, int], special: bool,
) -> None:  # fmt: skip
    op = layer(
        f"Interpolate-{version}", mode=mode, coordinate_transformation_mode=coordinates, nearest_mode=nearest,
        antialias=str(antialias).lower(), shape_calculation_mode="sizes" if by_size else "scales",
    )  # fmt: skip
    sizes, scales = np.array(after), (np.array(after) / before).astype(np.float32)
    targets = [sizes, scales] if version == 4 else [sizes if by_size else scales]
    x, others = maps(2, channels, *before, special=special), [*targets, np.array([2, 3])]
    wanted = op.evaluate(x, *others)
    stored = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    known = Value.unknown(ElementType.f32, PartialShape("?,?,?,?"))
    run = native.backend.kernel(op, [known, *map(unknown, others)])
    assert run is not None
    for data in (x, stored):
        data.setflags(write=False)
        (found,) = listed(run(data, *others))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
    (image,) = listed(run(stored.transpose(0, 2, 3, 1), *targets, np.array([1, 2])))
    np.testing.assert_allclose(image.transpose(0, 3, 1, 2), wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("axes", [[1, 2], [1], [2]])
def test_images_have_a_resize_kernel(axes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Channels-last images, as preprocessing resizes them, have kernels."""
    op = layer("Interpolate-11", mode="linear", shape_calculation_mode="sizes")
    x, inputs = maps(1, 20, 18, 3, special=False), [np.array([7] * len(axes)), np.array(axes)]
    wanted = op.evaluate(x, *inputs)
    monkeypatch.delattr(type(op), "evaluate")
    run = native.backend.kernel(
        op, [Value.unknown(ElementType.f32, PartialShape(x.shape)), *map(unknown, inputs)]
    )
    assert run is not None
    (found,) = listed(run(x, *inputs))
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_planes_have_a_resize_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    op = layer("Interpolate-11", mode="linear_onnx", shape_calculation_mode="sizes")
    x, inputs = maps(2, 5, 9, 8, special=False), [np.array([18, 7]), np.array([2, 3])]
    wanted = op.evaluate(x, *inputs)
    monkeypatch.delattr(type(op), "evaluate")
    known = Value.unknown(ElementType.f32, PartialShape(x.shape))
    run = native.backend.kernel(op, [known, *map(unknown, inputs)])
    assert run is not None
    (found,) = listed(run(x, *inputs))
    assert found.flags.c_contiguous
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_resized_maps_stay_channels_last() -> None:
    x = maps(1, 6, 7, 20, special=False).transpose(0, 3, 1, 2)
    op = layer("Interpolate-11", mode="nearest", shape_calculation_mode="scales")
    inputs = [np.array([2, 3], np.float32), np.array([2, 3])]
    known = Value.unknown(ElementType.f32, PartialShape("1,20,6,7"))
    run = native.backend.kernel(op, [known, *map(unknown, inputs)])
    assert run is not None
    (found,) = listed(run(x, *inputs))
    assert found.transpose(0, 2, 3, 1).flags.c_contiguous


@quick
@given(
    st.sampled_from(["", "asymmetric", "half_pixel_for_nn", "half_pixel"]), st.integers(0, 2),
    st.integers(1, 3), st.integers(1, 4), st.sampled_from([1, 5, 40]), st.sampled_from([(1, 1), (7, 9)]),
    st.booleans(), st.booleans(), st.sampled_from([1, 0.25]), st.integers(0, 99),
)  # fmt: skip
def test_roi_align(
    mode: str, ratio: int, tall: int, wide: int, channels: int, lengths: tuple[int, int], special: bool,
    round_numbers: bool, scale: float, seed: int,
) -> None:  # fmt: skip
    op = layer(
        "ROIAlign-9" if mode else "ROIAlign-3", mode="avg", sampling_ratio=str(ratio), pooled_h=str(tall),
        pooled_w=str(wide), spatial_scale=str(scale), **({"aligned_mode": mode} if mode else {}),
    )  # fmt: skip
    rng = np.random.default_rng(seed)
    x = maps(2, channels, *lengths, special=special)
    corners = rng.uniform(-6, 14, (5, 4)).astype(np.float32)
    rois, entries = np.round(corners) if round_numbers else corners, rng.integers(0, 2, 5)
    wanted = op.evaluate(x, rois, entries)
    run = native.backend.kernel(op, [*map(unknown, (x, rois, entries))])
    assert run is not None
    for data in (x, np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)):
        (found,) = listed(run(data, rois, entries))
        assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_invalid_and_empty_regions() -> None:
    how = {"pooled_h": "2", "pooled_w": "2", "sampling_ratio": "0", "spatial_scale": "1", "mode": "avg"}
    op, x = layer("ROIAlign-9", aligned_mode="half_pixel", **how), maps(2, 3, 6, 6, special=False)
    rois = np.array([[0, 0, 4, 4], [5, 0, 2, 4], [1, 1, 3, 3]], np.float32)
    run = native.backend.kernel(op, [*map(unknown, (x, rois, np.zeros(3, np.int64)))])
    assert run is not None
    for entries in ([0, 1, 0], [1, -1, 0]):
        (found,) = listed(run(x, rois, np.array(entries)))
        np.testing.assert_allclose(found, op.evaluate(x, rois, np.array(entries)), rtol=1e-5, atol=1e-6)
        assert found[0].any()
        assert not found[1].any()
    for wrong in (rois, rois * np.array([1, 1, np.inf, 1], np.float32)):
        with pytest.raises(InferenceError, match=r"batch entry 2|finite"):
            run(x, wrong, np.array([0, 1, 2]))
    assert (
        native.backend.kernel(layer("ROIAlign-3", **how | {"mode": "max"}), [*map(unknown, (x, rois, rois))])
        is None
    )


@pytest.mark.parametrize("scale", ["nan", "1e38"])
def test_infinite_scaled_regions_are_refused(scale: str) -> None:
    how = {"pooled_h": "2", "pooled_w": "2", "sampling_ratio": "2", "mode": "avg"}
    op, x = layer("ROIAlign-9", spatial_scale=scale, **how), maps(1, 3, 6, 6, special=False)
    rois = np.array([[0, 0, 4, 4]], np.float32)
    run = native.backend.kernel(op, [*map(unknown, (x, rois, np.zeros(1, np.int64)))])
    assert run is not None
    with pytest.raises(InferenceError, match="a finite size is expected"):
        run(x, rois, np.zeros(1, np.int64))


def agree(op: Any, *inputs: Array) -> int:
    """Require results identical to the reference; return the number of rows."""
    wanted = listed(op.evaluate(*inputs))
    run = native.backend.kernel(op, [*map(unknown, inputs)])
    assert run is not None
    for ours, theirs in zip(listed(run(*inputs)), wanted, strict=True):
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
        np.testing.assert_array_equal(ours, theirs)
    return len(wanted[0])


def detections(
    batch: int, classes: int, count: int, seed: int, special: bool, round_numbers: bool
) -> tuple[Array, Array]:
    """Return boxes with large and small overlaps, and scores with many ties."""
    rng = np.random.default_rng(seed)
    boxes = rng.integers(0, 40, (batch, count, 4)) if round_numbers else rng.uniform(0, 20, (batch, count, 4))
    found = boxes.astype(np.float32), rng.integers(-2, 9, (batch, classes, count)).astype(np.float32) / 8
    for array in found:
        if special and array.size:
            array.reshape(-1)[rng.integers(0, array.size, 1 + array.size // 10)] = rng.choice(SPECIAL)
    return found


@quick
@given(
    st.sampled_from([1, 3, 4, 5, 9]), st.sampled_from(["corner", "center"]), st.booleans(), st.integers(1, 2),
    st.integers(1, 3), st.sampled_from([1, 7, 40, 300]), st.sampled_from([0, 1, 5, 1000]),
    st.sampled_from([0.0, 0.1, 0.5, 1.0]), st.sampled_from([0.0, 0.3, -1.0]), st.booleans(), st.booleans(),
    st.integers(0, 99),
)  # fmt: skip
def test_non_max_suppression(
    version: int, encoding: str, ordered: bool, batch: int, classes: int, count: int, limit: int, iou: float,
    above: float, special: bool, round_numbers: bool, seed: int,
) -> None:  # fmt: skip
    op = layer(
        f"NonMaxSuppression-{version}", box_encoding=encoding, sort_result_descending=str(ordered).lower()
    )
    found = detections(batch, classes, count, seed, special, round_numbers)
    agree(op, *found, np.array(limit), np.array(iou, np.float32), np.array(above, np.float32))


@quick
@given(
    st.sampled_from([8, 9]), st.integers(1, 2), st.integers(1, 3), st.sampled_from([1, 7, 40, 300]),
    st.sampled_from(["-1", "0", "5"]), st.sampled_from(["-1", "0", "9"]), st.sampled_from(["-1", "1"]),
    st.sampled_from(["0.1", "0.5", "1"]), st.sampled_from(["0", "0.25", "-1"]), st.sampled_from(["none", "score", "classid"]),
    st.booleans(), st.booleans(), st.integers(0, 99),
)  # fmt: skip
def test_multiclass_suppression(
    version: int, batch: int, classes: int, count: int, each: str, most: str, background: str, iou: str, above: str,
    order: str, special: bool, round_numbers: bool, seed: int,
) -> None:  # fmt: skip
    op = layer(
        f"MulticlassNms-{version}", iou_threshold=iou, score_threshold=above, nms_top_k=each, keep_top_k=most,
        background_class=background, sort_result_type=order, sort_result_across_batch=str(seed % 2 > 0).lower(),
    )  # fmt: skip
    agree(op, *detections(batch, classes, count, seed, special, round_numbers))


def test_no_boxes_or_candidates() -> None:
    op, limits = (
        layer("NonMaxSuppression-9"),
        (np.array([9]), np.array([0.5], np.float32), np.array([2], np.float32)),
    )
    assert agree(op, *detections(1, 3, 0, 0, False, True), *limits) == 0
    assert agree(op, *detections(2, 3, 20, 0, False, True), *limits) == 0


def test_optional_inputs_and_soft_suppression() -> None:
    boxes, scores = detections(2, 2, 30, 5, False, False)
    numbers = [np.array(20), *(np.array(x, np.float32) for x in (0.5, 0.1, 0.3))]
    for version in (5, 9):
        for count in range(len(numbers) + 1):
            left = agree(layer(f"NonMaxSuppression-{version}"), boxes, scores, *numbers[:count])
            assert bool(left) == bool(count)


def test_candidates_sorted_without_integer_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    boxes, scores = detections(2, 5, 100, 3, True, False)
    usual = suppression.Candidates.select(boxes, scores, -0.5)
    monkeypatch.setattr(suppression, "FREE_BITS", 0)
    found = suppression.Candidates.select(boxes, scores, -0.5)
    assert len(found.rows) > 500
    np.testing.assert_array_equal(found.rows, usual.rows)
    np.testing.assert_array_equal(found.places, usual.places)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
