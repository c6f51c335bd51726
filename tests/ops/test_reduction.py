"""Reductions: refused axes, and inference with unknown axes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.errors import InferenceError
from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops import registry
from ir_runtime.ops.reduction import ReduceMax, ReduceMean, ReduceSum, Reduction

EVERY = [cls for cls in registry if issubclass(cls, Reduction)]
F32, I64 = ElementType.f32, ElementType.i64


def element(cls: type[Reduction]) -> ElementType:
    return cls.inputs[0].element.default


def infer(cls: type[Reduction], data: str, axes: Any, **attributes: Any) -> PartialShape:
    value = Value.unknown(I64, PartialShape(axes)) if isinstance(axes, str) else Value.constant(axes)
    (found,) = cls(**attributes).infer_types(Value.unknown(element(cls), PartialShape(data)), value)
    return found.shape


def test_all_are_here() -> None:
    assert len(EVERY) == 9


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize(
    ("data", "axes", "message"),
    [
        ("2,3", np.array([2]), r"axis 2 is out of range for rank 2: -2 to 1 are allowed"),
        ("2,3", np.array(-3), r"axis -3 is out of range for rank 2"),
        ("?,?", np.array([0, 5]), r"axis 5 is out of range for rank 2"),
        ("", np.array([1]), r"axis 1 is out of range for rank 0: -1 to 0 are allowed"),
        ("2,3", np.array([1, 1]), r"axes \[1, 1\] name axis 1 twice"),
        ("2,3", np.array([1, -1]), r"axes \[1, -1\] name axis 1 twice"),
        ("2,3", np.array([[0, 1]]), r"axes must be a scalar or 1-D, not of shape \[1,2\]"),
        ("...", "?,?", r"axes must be a scalar or 1-D, not of shape \[\?,\?\]"),
        ("2,3", "3", r"axes has length 3, but data \[2,3\] has rank 2"),
    ],
)
def test_refused_axes(cls: type[Reduction], data: str, axes: Any, message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        infer(cls, data, axes)


@pytest.mark.parametrize("cls", EVERY)
@pytest.mark.parametrize("axes", [[2], [0, 0], [-1, 1], [-3]])
def test_axes_that_come_late_are_refused_with_the_same_words(cls: type[Reduction], axes: list[int]) -> None:
    data = np.ones((2, 3), element(cls).dtype)
    with pytest.raises(InferenceError, match=r"out of range for rank 2|name axis . twice"):
        cls().evaluate(data, np.array(axes))


@pytest.mark.parametrize(
    ("data", "axes", "keep_dims", "expected"),
    [
        ("1..3,?,4", np.array([1]), False, "1..3,4"),
        ("1..3,?,4", np.array([-2]), True, "1..3,1,4"),
        ("1..3,?,4", np.array([], np.int64), False, "1..3,?,4"),
        ("1..3,?,4", "0", True, "1..3,?,4"),
        ("1..3,?,4", "?", True, "1..3,?,1..4"),
        ("1..3,?,4", "?", False, "..."),
        ("2,6,4", "1", False, "2..6,4..6"),
        ("2,6,4", "", False, "2..6,4..6"),
        ("2,6,4", "3", False, ""),
        ("...", np.array([0]), True, "..."),
        ("...", "?", False, "..."),
    ],
)
def test_partial_shapes(data: str, axes: Any, keep_dims: bool, expected: str) -> None:
    assert infer(ReduceMax, data, axes, keep_dims=keep_dims) == PartialShape(expected)


def test_lengths_pass_through_sums() -> None:
    lengths = np.array([Dimension(1, 8), 3], object)
    data, axes = Value.bounded(I64, lengths), Value.constant(np.array([0]))
    (found,) = ReduceSum(keep_dims=True).infer_values(data, axes)
    assert found.dims() == (Dimension(4, 11),)
    (found,) = ReduceMean().infer_values(data, axes)
    assert found.data is None


def test_bounds_on_sums_wrap_around_as_the_sums_do() -> None:
    axes = Value.constant(np.array([0]))
    numbers = np.array([2**30, 2**30, Dimension(2**30 - 1, 2**30 + 1)], object)
    (found,) = ReduceSum().infer_values(Value.bounded(ElementType.i32, numbers), axes)
    (bound,) = found.numbers() or ()
    assert isinstance(bound, Interval)
    assert (bound.min, bound.max) == (None, None)


def test_the_result_of_no_axes_is_not_computed() -> None:
    data = np.array([np.nan, -1, 2**24 + 1], np.float64)
    for cls in EVERY:
        if F32 in cls.inputs[0].element.allowed:
            np.testing.assert_array_equal(cls().evaluate(data, np.array([], np.int64)), data)
