"""Regions of feature maps, and scattered rows, on the NumPy backend against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer
from harness.numpy_kernels import agree, numbers, same, unknown
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends.numpy import backend
from ir_runtime.errors import IRError
from ir_runtime.ir.tensor import Value

quick = settings(max_examples=60, deadline=None)
POOLED = {"pooled_h": "2", "pooled_w": "3", "mode": "avg"}


@quick
@given(
    st.sampled_from(["asymmetric", "half_pixel_for_nn", "half_pixel"]),
    st.integers(1, 3),
    st.sampled_from([(1, 1), (7, 9), (30, 4)]),
    st.booleans(),
    st.sampled_from(["1", "0.25"]),
    st.integers(0, 99),
)
def test_means_of_points_in_regions(
    mode: str, ratio: int, lengths: tuple[int, int], special: bool, scale: str, seed: int
) -> None:
    how = POOLED | {"sampling_ratio": str(ratio), "spatial_scale": scale, "aligned_mode": mode}
    op, rng = layer("ROIAlign-9", **how), np.random.default_rng(seed)
    rois, entries = rng.uniform(-6, 40, (5, 4)).astype(np.float32), rng.integers(0, 2, 5)
    agree(op, numbers(2, 5, *lengths, special=special), np.round(rois) if seed % 2 else rois, entries)


def test_regions_of_no_map_are_refused_or_not_pooled() -> None:
    op = layer("ROIAlign-3", **POOLED, sampling_ratio="2", spatial_scale="1")
    x, rois = numbers(2, 3, 6, 6), np.array([[0, 0, 4, 4], [1, 1, 3, 3]], np.float32)
    agree(op, x, rois, np.array([1, -1]))
    kernel = backend.kernel(op, [*map(unknown, (x, rois, np.zeros(2, np.int64)))])
    assert kernel is not None
    with pytest.raises(IRError, match="batch entry 2"):
        kernel(x, rois, np.array([0, 2]))
    with pytest.raises(IRError, match="finite"):
        kernel(x, np.where(rois == 4, np.float32(np.inf), rois), np.array([0, 1]))


@pytest.mark.parametrize("changed", [{"mode": "max", "sampling_ratio": "2"}, {"sampling_ratio": "0"}])
def test_other_regions_are_left_to_the_reference(changed: dict[str, str]) -> None:
    op = layer("ROIAlign-3", **POOLED | changed, spatial_scale="1")
    x, rois = numbers(1, 3, 6, 6), np.zeros((1, 4), np.float32)
    assert backend.kernel(op, [*map(unknown, (x, rois, np.zeros(1, np.int64)))]) is None


@pytest.mark.parametrize("version", [3, 12])
@pytest.mark.parametrize(
    "places", [[4, 0, 2], [1, 1, 1], [-1, 3, -5], [[[0, 1], [2, 3]], [[1, 1], [1, 1]]], []]
)
def test_rows_are_replaced(version: int, places: object) -> None:
    data, first = numbers(5, 2, 2), np.array(places, np.int64)
    shape = (len(first), 2, 2)
    indices = first if first.ndim > 1 else np.broadcast_to(first[:, None, None], shape)
    op = layer(f"ScatterElementsUpdate-{version}")
    updates, axis = numbers(*shape, seed=1), np.array(0)
    kernel = backend.kernel(op, [*map(unknown, (data, indices, updates)), Value.constant(axis)])
    assert kernel is not None
    same(kernel(data, indices, updates, axis), op.evaluate(data, indices, updates, axis))


@pytest.mark.parametrize("place", [5, -6])
def test_rows_that_are_not_there_are_refused(place: int) -> None:
    data, indices = numbers(5, 2), np.full((1, 2), place)
    op, axis = layer("ScatterElementsUpdate-3"), np.array(0)
    kernel = backend.kernel(op, [*map(unknown, (data, indices, data[:1])), Value.constant(axis)])
    assert kernel is not None
    with pytest.raises(IRError, match=str(place)):
        kernel(data, indices, data[:1], axis)
