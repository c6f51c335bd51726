"""Poolings: what is refused and how it is said, what is inferred from little, empty data."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from harness.sample import value

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.pooling.adaptive import AdaptiveAvgPool, AdaptiveMaxPool
from ir_runtime.ops.pooling.windowed import AvgPool14, AvgPool16, MaxPool1, MaxPool8, MaxPool14, Pooling


def plain(*kernel: int, **changed: Any) -> dict[str, Any]:
    zeros, ones = (0,) * len(kernel), (1,) * len(kernel)
    return {"strides": ones, "pads_begin": zeros, "pads_end": zeros, "kernel": kernel} | changed


def shape_of(op: Pooling, data: str) -> PartialShape:
    return op.infer_types(Value.unknown(ElementType.f32, PartialShape(data)))[0].shape


@pytest.mark.parametrize(
    ("op", "data", "message"),
    [
        (MaxPool1(**plain(3)), "1,2,2", "kernel of extent 3 exceeds the padded length 2 of spatial axis 0"),
        (
            MaxPool8(**plain(1, 3, dilations=(1, 4))),
            "1,2,9,..8",
            "kernel of extent 9 exceeds the padded length 8 of spatial axis 1",
        ),
        (MaxPool1(**plain(3)), "1,2,8,8", "data [1,2,8,8] has 2 spatial axes, the attributes are for 1"),
        (MaxPool1(**plain(3)), "2,8", "data must have rank 3, 4 or 5, found [2,8]"),
        (MaxPool8(**plain(3, axis=3)), "1,2,8", "axis 3 is out of range for rank 3; allowed: [-3, 2]"),
        (
            AvgPool14(**plain(2, exclude_pad=True, pads_end=(2,))),
            "1,2,8",
            "padding of 0 and 2 hides whole windows of extent 2 along spatial axis 0; "
            "with exclude-pad, less than 2 is expected",
        ),
    ],
)
def test_contradictions_are_named(op: Pooling, data: str, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        shape_of(op, data)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"kernel": (2, 2)}, "strides and kernel differ in length: [1] and [2, 2]"),
        ({"kernel": (0,)}, "attribute 'kernel'"),
        ({"dilations": (1, 1)}, "strides and dilations differ in length: [1] and [1, 1]"),
        ({"rounding_type": "ceil_torch"}, "attribute 'rounding_type'"),
        ({"index_element_type": ElementType.u8}, "index_element_type must be i64 or i32, not u8"),
    ],
)
def test_attributes_that_contradict(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        MaxPool8(**plain(2) | changed)
    assert message in str(caught.value)


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


def test_a_kernel_as_large_as_the_data() -> None:
    data = np.ones((1, 64, 200, 200), "f4")
    assert (
        AvgPool14(**plain(200, 200, exclude_pad=True)).evaluate(data).tolist()
        == np.ones((1, 64, 1, 1)).tolist()
    )


@pytest.mark.parametrize(
    ("data", "windows", "message"),
    [
        ("1,2", np.array([3]), "data must have rank 3, 4 or 5, found [1,2]"),
        ("...", np.array([3, 3, 3, 3]), "data must have rank 3, 4 or 5, found [?,?,?,?,?,?]"),
        ("1,2,5", np.array([3, 3]), "output_size has 2 numbers, data [1,2,5] has 1 spatial axes"),
        ("1,2,0", np.array([3]), "there is nothing to pool along spatial axis 0, but 3 windows"),
        ("1,2,5", np.array([-1]), "output_size asks for length -1"),
    ],
)
@pytest.mark.parametrize("op", [AdaptiveAvgPool(), AdaptiveMaxPool()])
def test_contradictions_of_adaptive_ones(op: Any, data: str, windows: Any, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        op.infer_types(value(f"f32 {data}"), value(windows))
    assert message in caught.value.message


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


def test_adaptive_indices_are_i64_or_i32() -> None:
    with pytest.raises(ValidationError, match="index_element_type must be i64 or i32, not u8"):
        AdaptiveMaxPool(index_element_type=ElementType.u8)


def test_nan_that_comes_first_stays() -> None:
    data = np.array([[[[np.nan, 1, 2], [3, 4, np.nan]]]], "f4")
    largest, places = AdaptiveMaxPool().evaluate(data, np.array([2, 1]))
    np.testing.assert_array_equal(largest.ravel(), np.array([np.nan, 4], "f4"))
    assert places.ravel().tolist() == [0, 4]
