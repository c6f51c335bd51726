"""Regions of feature maps, sampling, and scattered rows on the NumPy backend against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.kernels import agree, numbers, same, unknown
from harness.layers import deformable_layer, layer
from hypothesis import given, settings
from hypothesis import strategies as st

from ir_runtime.backends.numpy import backend
from ir_runtime.backends.numpy.kernels import deformable_convolution, regions
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


@pytest.mark.parametrize("scale", ["nan", "1e38"])
def test_regions_that_scaling_makes_infinite_are_refused(scale: str) -> None:
    op = layer("ROIAlign-9", **POOLED, sampling_ratio="2", spatial_scale=scale)
    x, rois = numbers(1, 3, 1, 1), np.array([[0, 0, 4, 4]], np.float32)
    kernel = backend.kernel(op, [*map(unknown, (x, rois, np.zeros(1, np.int64)))])
    assert kernel is not None
    with np.errstate(all="ignore"), pytest.raises(IRError, match="a finite size is expected"):
        kernel(x, rois, np.zeros(1, np.int64))


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


@quick
@given(
    st.booleans(),
    st.sampled_from([(1, 1), (7, 9), (30, 4)]),
    st.sampled_from([(1, 1), (2, 3), (7, 7)]),
    st.sampled_from([1, 3, 40]),
    st.booleans(),
    st.sampled_from(["1", "0.25"]),
    st.integers(0, 99),
)
def test_bins_of_regions(
    largest: bool,
    lengths: tuple[int, int],
    bins: tuple[int, int],
    channels: int,
    special: bool,
    scale: str,
    seed: int,
) -> None:
    """Regions partly or fully outside the image, inverted ones, and none after the first -1."""
    size, how = bins[0], {"spatial_scale": scale}
    if largest:
        op = layer("ROIPooling-1", pooled_h=str(size), pooled_w=str(bins[1]), method="max", **how)
    else:
        op = layer("PSROIPooling-1", output_dim=str(channels), group_size=str(size), mode="average", **how)
    rng = np.random.default_rng(seed)
    x = numbers(2, channels if largest else channels * size * size, *lengths, special=special)
    rois = rng.uniform(-6, 40, (90, 5)).astype(np.float32)
    rois[:, 0] = rng.integers(0, 2, 90)
    if largest and seed % 2:
        rois[70, 0] = -1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(regions, "MAX_PARTIAL", 1 << 10 + seed % 9)
        agree(op, x, np.round(rois) if seed % 3 else rois)


@pytest.mark.parametrize("name", ["ROIPooling-1", "PSROIPooling-1"])
def test_bins_of_no_region_of_no_map_and_of_regions_that_are_nowhere(name: str) -> None:
    how = {"pooled_h": "2", "pooled_w": "2"} if name[0] == "R" else {"output_dim": "1", "group_size": "2"}
    op, x = layer(name, spatial_scale="1", **how), numbers(2, 4, 5, 5)
    none = np.zeros((0, 5), np.float32)
    agree(op, x, none)
    kernel = backend.kernel(op, [unknown(x, dynamic=True), unknown(none, dynamic=True)])
    assert kernel is not None
    same(kernel(x[:, :, :0], none), op.evaluate(x[:, :, :0], none))
    for wrong in ([3, 0, 0, 1, 1], [0, 0, np.nan, 1, 1]):
        with pytest.raises(IRError):
            kernel(x, np.array([wrong], np.float32))


@quick
@given(
    st.sampled_from(["1", "8", "8 with zeros"]),
    st.booleans(),
    st.sampled_from([1, 3]),
    st.sampled_from([1, 3, 17]),
    st.sampled_from([(1, 1), (3, 2)]),
    st.tuples(st.integers(1, 2), st.integers(1, 2)),
    st.integers(0, 2),
    st.booleans(),
    st.integers(0, 99),
)
def test_deformable_convolutions(
    version: str, has_mask: bool, parts: int, channels: int, kernel: tuple[int, int], steps: tuple[int, int],
    pads: int, whole: bool, seed: int,
) -> None:  # fmt: skip
    op: Any = deformable_layer(version, steps, pads, parts)
    rng, wide = np.random.default_rng(seed), parts * channels
    x, w = numbers(2, wide, 9, 13, seed=seed), numbers(5, wide, *kernel)
    out, elements = op.windows((9, 13), kernel), parts * kernel[0] * kernel[1]
    offsets = rng.uniform(-5, 5, (2, 2 * elements, *out)).astype(np.float32)
    offsets.flat[::17] = rng.choice([np.nan, np.inf, -np.inf, 1e30, -0.0])
    inputs = [np.round(offsets) if whole else offsets, w]
    if has_mask and version != "1":
        inputs.append(numbers(2, elements, *out, seed=seed))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deformable_convolution, "PATCHES", 1 << 10 + seed % 12)
        agree(op, x, *inputs)


@pytest.mark.parametrize("special", [np.nan, np.inf])
def test_what_deformable_convolutions_do_not_see_is_not_multiplied(special: float) -> None:
    op: Any = layer(
        "DeformableConvolution-8", strides="1,1", dilations="1,1", pads_begin="0,0", pads_end="0,0"
    )
    x = numbers(1, 2, 6, 6)
    x[0, :, 0, 0] = special
    offsets = np.zeros((1, 2, 6, 6), np.float32)
    offsets[..., 0, 0], offsets[0, 0, 2, 2] = 50, -1.5
    agree(op, x, offsets, numbers(3, 2, 1, 1), np.ones((1, 1, 6, 6), np.float32))


@pytest.mark.parametrize("name", ["EmbeddingBagPackedSum-3", "EmbeddingBagPacked-15"])
@pytest.mark.parametrize("shape", [(6,), (6, 19), (6, 3, 4)])
@pytest.mark.parametrize("type_", [np.int32, np.int64])
def test_packed_bags(name: str, shape: tuple[int, ...], type_: type) -> None:
    op, table, rng = layer(name), numbers(*shape), np.random.default_rng(0)
    kernel = backend.kernel(op, [unknown(table), unknown(np.zeros((1, 1), type_), dynamic=True)])
    assert kernel is not None
    for count, each in ((5, 4), (1, 1), (0, 3)):
        indices = rng.integers(0, 6, (count, each)).astype(type_)
        same(kernel(table, indices), op.evaluate(table, indices))
    for wrong in (6, -1):
        with pytest.raises(IRError, match=str(wrong)):
            kernel(table, np.array([[0, wrong]], type_))
