"""What is known about a tensor before it is computed."""

from __future__ import annotations

import numpy as np

from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value, objects


def test_constants() -> None:
    value = Value.constant(np.array([[1, 2]]))
    assert (str(value.type), value.ints(), value.count) == ("i64[1,2]", (1, 2), 2)
    known = value.known()
    assert known is not None
    np.testing.assert_array_equal(known, [[1, 2]])


def test_intervals_become_numbers_once_none_is_open() -> None:
    open_ = Value.bounded(ElementType.i64, objects([Dimension(1, 3), 4], (2,)))
    assert open_.known() is None
    assert open_.ints() is None
    assert open_.numbers() == (Dimension(1, 3), 4)
    closed = Value.bounded(ElementType.i32, objects([Dimension(3), 4], (2,)))
    assert closed.ints() == (3, 4)
    known = closed.known()
    assert known is not None
    assert known.dtype == np.int32


def test_lengths_cannot_be_negative() -> None:
    value = Value.bounded(ElementType.i64, objects([Interval(-3, 5), 4], (2,)))
    assert value.dims() == (Dimension(0, 5), 4)


def test_floats_are_no_lengths() -> None:
    value = Value.constant(np.float32([1, 2]))
    assert value.numbers() is None
    assert value.dims() is None
    assert value.symbolic() is None
    assert value.known() is not None


def test_counts() -> None:
    for shape, count in (("2,3", 6), ("", 1), ("2,0", 0)):
        assert Value.unknown(ElementType.f32, PartialShape(shape)).count == count
    assert Value.unknown(ElementType.f32, PartialShape("2..3,4")).count == Dimension(8, 12)
    assert Value.unknown(ElementType.f32, PartialShape("...")).count == Dimension()


def test_join() -> None:
    one, other = (
        TensorType(ElementType.f32, PartialShape([2, 3])),
        TensorType(ElementType.f32, PartialShape([2, 5])),
    )
    assert str(one.join(other)) == "f32[2,3..5]"
    assert str(one.join(TensorType(ElementType.f16, PartialShape([2])))) == "dynamic[...]"
