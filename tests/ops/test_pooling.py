"""Pooling: inference from partial shapes, and empty data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.pooling import AdaptiveAvgPool, AdaptiveMaxPool, AvgPool14, AvgPool16, MaxPool14, Pooling


def plain(*kernel: int, **changed: Any) -> dict[str, Any]:
    zeros, ones = (0,) * len(kernel), (1,) * len(kernel)
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "kernel": kernel} | changed


def shape_of(op: Pooling, data: str) -> PartialShape:
    return op.infer_types(Value.unknown(ElementType.f32, PartialShape(data)))[0].shape


@pytest.mark.parametrize(
    ("changed", "data", "expected"),
    [
        ({}, "...", "?,?,1.."),
        ({"strides": (4,)}, "1,2,..8", "1,2,1..2"),
        ({"strides": (4,), "rounding_type": "ceil"}, "1,2,5..8", "1,2,2..3"),
        ({"strides": (4,), "rounding_type": "ceil_torch"}, "1,2,5..8", "1,2,2"),
        ({"strides": (4,), "auto_pad": "same_lower"}, "1,2,5..9", "1,2,2..3"),
        ({"strides": (4,), "auto_pad": "same_lower", "rounding_type": "ceil"}, "1,2,5..9", "1,2,2..4"),
        ({"auto_pad": "same_upper"}, "1,2,3..", "1,2,3.."),
    ],
)
def test_inferred_from_little(changed: dict[str, Any], data: str, expected: str) -> None:
    assert str(shape_of(MaxPool14(**plain(3, **changed)), data)) == f"[{expected}]"


def test_intervals_contain_every_length() -> None:
    roundings, pads = ("floor", "ceil", "ceil_torch"), ("explicit", "same_upper", "valid")
    for rounding, pad, stride, kernel in itertools.product(roundings, pads, (1, 2, 4), (1, 3)):
        how = plain(kernel, strides=(stride,), rounding_type=rounding, auto_pad=pad, pads_end=(5,))
        op = MaxPool14(**how)
        for low, high in itertools.combinations(range(3, 12), 2):
            dim = shape_of(op, f"1,1,{low}..{high}")[2]
            each = [shape_of(op, f"1,1,{n}")[2].min for n in range(low, high + 1)]
            assert dim.min <= min(each)
            assert dim.max is not None
            assert max(each) <= dim.max <= max(each) + (rounding == "ceil" and pad == "same_upper")


def test_dilations_are_one_when_absent() -> None:
    data = np.arange(8, dtype="f4").reshape(1, 1, 8)
    largest = [MaxPool14(**plain(3, **how)).evaluate(data)[0] for how in ({}, {"dilations": (1,)})]
    np.testing.assert_array_equal(*largest)
    how = {"exclude_pad": True}
    means = [AvgPool16(**plain(3, **how, **more)).evaluate(data) for more in ({}, {"dilations": (1,)})]
    np.testing.assert_array_equal(*means)


def test_the_example_of_the_shape_rules() -> None:
    data = np.array([[[[-1, 2, 3], [4, 5, -6], [-7, 8, 9]]]], "f4")
    op = MaxPool14(**plain(2, 2, pads_begin=(1, 1), pads_end=(1, 1)))
    largest, indices = op.evaluate(data)
    # The page says -6, at 5, where 3 stands above it.
    assert largest.ravel().tolist() == [-1, 2, 3, 3, 4, 5, 5, 3, 4, 8, 9, 9, -7, 8, 9, 9]
    assert indices.ravel().tolist() == [0, 1, 2, 2, 3, 4, 4, 2, 3, 7, 8, 8, 6, 7, 8, 8]


def test_an_empty_batch_stays_empty() -> None:
    data = np.zeros((0, 2, 8), "f4")
    assert AvgPool14(**plain(3, exclude_pad=True)).evaluate(data).shape == (0, 2, 6)
    largest, indices = MaxPool14(**plain(3)).evaluate(data)
    assert largest.shape == indices.shape == (0, 2, 6)


def test_empty_axes_have_no_windows() -> None:
    data, how = np.zeros((1, 2, 0), "f4"), plain(3, auto_pad="same_lower", strides=(2,), dilations=(3,))
    largest, indices = MaxPool14(**how).evaluate(data)
    assert largest.shape == indices.shape == (1, 2, 0)


def test_a_kernel_as_large_as_the_data() -> None:
    data = np.ones((1, 64, 200, 200), "f4")
    assert (
        AvgPool14(**plain(200, 200, exclude_pad=True)).evaluate(data).tolist()
        == np.ones((1, 64, 1, 1)).tolist()
    )


@pytest.mark.parametrize(
    ("data", "windows", "expected"),
    [
        ("...", "i64 2", "?,?,?,?"),
        ("...", "i64 ?", "..."),
        ("1,?,4..6", "i32 ?", "1,?,?"),
        ("?,2,5", np.array([0]), "?,2,0"),
    ],
)
def test_inferred_from_little_of_adaptive_ones(data: str, windows: Any, expected: str) -> None:
    for op in (AdaptiveAvgPool(), AdaptiveMaxPool()):
        for found in op.infer_types(value(f"f32 {data}"), value(windows)):
            assert str(found.shape) == f"[{expected}]"


def test_nan_that_comes_first_stays() -> None:
    data = np.array([[[[np.nan, 1, 2], [3, 4, np.nan]]]], "f4")
    largest, places = AdaptiveMaxPool().evaluate(data, np.array([2, 1]))
    np.testing.assert_array_equal(largest.ravel(), np.array([np.nan, 4], "f4"))
    assert places.ravel().tolist() == [0, 4]
