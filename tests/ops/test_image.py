"""Image operations: inference from partial shapes, and time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.image import GridSample, I420toRGB, Interpolate4, Interpolate11, NV12toRGB, RGBtoNV12

SIZES = Interpolate11(mode="linear", shape_calculation_mode="sizes")
SCALES = Interpolate11(mode="linear", shape_calculation_mode="scales")
PILLOW = Interpolate11(mode="bilinear_pillow", shape_calculation_mode="sizes")
IMAGE = "f32 1,2,5,7"


def shapes(op: Any, *inputs: Any) -> str:
    return " ".join(str(t.shape) for t in op.infer_types(*map(value, inputs)))


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (SIZES, ("f32 ...", "i64 2", np.array([2, 3])), "[...]"),
        (SIZES, (IMAGE, "i64 2", np.array([2, 3])), "[1,2,?,?]"),
        (SIZES, (IMAGE, "i64 2", "i64 2"), "[?,?,?,?]"),
        (SIZES, ("f32 1,?,4..6", "i64 3"), "[?,?,?]"),
        (SIZES, ("f32 1,?,4..6", np.array([7]), np.array([1])), "[1,7,4..6]"),
        (SCALES, ("f32 1,?,4..6", np.float32([0.5, 2]), np.array([2, 1])), "[1,?,2..3]"),
        (SCALES, ("f32 1,?,4..6", np.float32([1]), np.array([2])), "[1,?,4..6]"),
        (NV12toRGB(), ("u8 ...",), "[?,?,?,3]"),
        (NV12toRGB(), ("u8 ?,3..9,?,1",), "[?,2..6,?,3]"),
        (NV12toRGB(), ("u8 ?,?,4,?", "u8 2,3,?,2"), "[2,6,4,3]"),
        (I420toRGB(), ("u8 ...", "u8 ?,3,?,1", "u8 1,?,2,1"), "[1,6,4,3]"),
        (RGBtoNV12(), ("u8 1,2..4,?,3",), "[1,3..6,?,1]"),
        (RGBtoNV12(single_plane=False), ("u8 1,2..4,8,?",), "[1,2..4,8,1] [1,1..2,4,2]"),
        (GridSample(), ("f32 ...", "f32 2,?,4,2"), "[2,?,?,4]"),
        (GridSample(), ("f32 ?,3,?,?", "f32 ..."), "[?,3,?,?]"),
    ],
)
def test_inferred_from_little(op: Any, inputs: tuple[Any, ...], expected: str) -> None:
    assert shapes(op, *inputs) == expected


def test_lengths_may_be_bounds() -> None:
    sizes = Value.bounded(ElementType.i64, objects([Dimension.between(2, 4), 8], (2,)))
    assert shapes(SIZES, IMAGE, sizes, np.array([3, 2])) == "[1,2,8,2..4]"


@pytest.mark.parametrize("op", [SIZES, Interpolate4(mode="cubic", shape_calculation_mode="sizes")])
def test_nothing_to_resize(op: Any) -> None:
    more = (np.float32([1]),) if isinstance(op, Interpolate4) else ()
    with pytest.raises(InferenceError, match="data has length 0 along axis 0, so it cannot be resized to 3"):
        op.evaluate(np.zeros((0, 2), "f4"), np.array([3]), *more, np.array([0]))


def test_nothing_to_sample() -> None:
    with pytest.raises(InferenceError, match=r"\[1,2,0,3\] has no pixels to sample"):
        GridSample().evaluate(np.zeros((1, 2, 0, 3), "f4"), np.zeros((1, 1, 1, 2), "f4"))


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("far", [2.0, 1e10, 1e18, 1e30])
def test_samples_far_away_are_the_outermost_pixels(mode: Any, far: float) -> None:
    grid = np.array([[[[far, -far], [-far, far]]]], "f4")
    op = GridSample(mode=mode, padding_mode="border", align_corners=True)
    found = op.evaluate(np.arange(12, dtype="f4").reshape(1, 1, 3, 4), grid)
    np.testing.assert_allclose(found.reshape(-1), [3, 8], rtol=1e-6)


@pytest.mark.parametrize("images", [1, 3, 700])
def test_images_are_sampled_each_at_its_own_points(images: int) -> None:
    rng = np.random.default_rng(images)
    data, grid = rng.standard_normal((images, 2, 3, 4)), rng.uniform(-1.5, 1.5, (images, 7, 9, 2))
    together = GridSample().evaluate(data, grid)
    for n in range(images):
        np.testing.assert_array_equal(
            together[n : n + 1], GridSample().evaluate(data[n : n + 1], grid[n : n + 1])
        )


def test_what_keeps_its_length_keeps_its_neighbours() -> None:
    """A NaN spreads along a resized axis, but not along the other."""
    data = np.zeros((4, 4), "f4")
    data[1, 1] = np.nan
    found = Interpolate11(mode="cubic", shape_calculation_mode="sizes").evaluate(data, np.array([4, 8]))
    assert np.isnan(found).any(axis=1).tolist() == [False, True, False, False]


def test_the_shape_of_padded_data() -> None:
    op = Interpolate11(
        mode="nearest",
        shape_calculation_mode="scales",
        pads_begin=(0, 1, 2),
        pads_end=(1,),
        nearest_mode="floor",
    )
    found = op.infer_types(value("f32 2,3,?"), value(np.float32([2])), value(np.array([1])))[0]
    assert found.shape == PartialShape([3, 8, Dimension.between(2)])


def test_a_height_with_all_planes_is_a_multiple_of_3() -> None:
    """If the height is bounded, the image has two thirds of the multiples within the bounds."""
    assert shapes(NV12toRGB(), "f32 1,2..5,4,1") == "[1,2..3,4,3]"
    assert shapes(NV12toRGB(), "f32 1,4..,4,1") == "[1,3..,4,3]"


@pytest.mark.parametrize("op", [SIZES, PILLOW])
def test_resized_to_nothing(op: Any) -> None:
    assert op.evaluate(np.ones((1, 4, 5), "f4"), np.array([6, 0]), np.array([1, 2])).shape == (1, 6, 0)
