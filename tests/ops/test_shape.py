"""Shape operations, beyond samples: errors, strings, and dims that differ at run time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.files import model_of
from harness.layers import bounded
from harness.oracle import answer, read
from harness.sample import case, ints, numbers, value

from ir_runtime.errors import ValidationError
from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value, objects

PLAIN, COPYING = {"special_zero": False}, {"special_zero": True}

INFERRED: list[tuple[str, dict[str, Any], tuple[Any, ...], str]] = [
    ("Reshape-1", PLAIN, ("f32 2,3", "i64 2"), "[?,?]"),
    ("Reshape-1", PLAIN, ("f32 2,3", "i64 1"), "[6]"),
    ("Reshape-1", PLAIN, ("f32 2,3", "i64 ?"), "[...]"),
    ("Reshape-1", PLAIN, ("f32 ...", [2, -1]), "[2,?]"),
    ("Reshape-1", COPYING, ("f32 ...", [0, 5]), "[?,5]"),
    ("Reshape-1", COPYING, ("f32 ?,?", [0, 0]), "[?,?]"),
    ("Reshape-1", PLAIN, ("f32 2..3,4", [-1, 2]), "[4..6,2]"),
    ("Reshape-1", PLAIN, ("f32 1..3,4", [-1, 3]), "[2..4,3]"),
    ("Reshape-1", PLAIN, ("f32 2,3", bounded(Interval(2), -1)), "[2..,1..3]"),
    ("Reshape-1", PLAIN, ("f32 2,3", bounded(3, Interval(-1, 9))), "[3,2]"),
    ("Reshape-1", PLAIN, ("f32 2,3", bounded(Interval(-2, 2), Interval(-1, 2))), "[..6,..6]"),
    ("Reshape-1", PLAIN, ("f32 2,6", bounded(3, Interval(0), -1)), "[3,?,..4]"),
    ("Reshape-1", PLAIN, ("f32 5,0,3", bounded(Dimension(6, 8), Interval(-1, 0), -1)), "[6..8,0,1]"),
    ("Reshape-1", PLAIN, ("f32 5,?", bounded(0, -1)), "[0,1]"),
    ("Reshape-1", PLAIN, ("f32 ?,3", bounded(0, Interval(-1, 1))), "[0,..1]"),
    ("Reshape-1", COPYING, ("f32 0,3", bounded(Interval(-1, 0), Interval(-1, 2))), "[..3,..3]"),
    ("Reshape-1", COPYING, ("f32 0,3", bounded(Dimension(0, 2), -1)), "[..2,..3]"),
    ("Reshape-1", COPYING, ("f32 0,3", bounded(Interval(-1, 0), -1)), "[0,..3]"),
    ("Squeeze-1", {}, ("f32 1,?,3",), "[...]"),
    ("Squeeze-1", {}, ("f32 1,2..,3",), "[2..,3]"),
    ("Squeeze-1", {}, ("f32 1,?,3", [0, 1]), "[3]"),
    ("Squeeze-1", {}, ("f32 1,?,3", "i64"), "[?,?]"),
    ("Squeeze-1", {}, ("f32 1,?,3", "i64 2"), "[...]"),
    ("Squeeze-1", {}, ("f32 2,4,3", "i64 2"), "[2,4,3]"),
    ("Squeeze-15", {"allow_axis_skip": True}, ("f32 1,?,3", [0, 1]), "[...]"),
    ("Squeeze-15", {"allow_axis_skip": True}, ("f32 1,?,3", [0]), "[?,3]"),
    ("Squeeze-15", {"allow_axis_skip": True}, ("f32 1,?,3", "i64 1"), "[...]"),
    ("Squeeze-15", {"allow_axis_skip": False}, ("f32 1,?,3", "i64 1"), "[?,?]"),
    ("Unsqueeze-1", {}, ("f32 1,?", "i64 1"), "[?,?,?]"),
    ("Unsqueeze-1", {}, ("f32 1,?", "i64 2"), "[...]"),
    ("Unsqueeze-1", {}, ("f32 ...", [0]), "[...]"),
    ("ShapeOf-3", {}, ("f32 ?,2",), "[2]"),
    ("ShapeOf-3", {}, ("f32 ...",), "[?]"),
]


@pytest.mark.parametrize(("name", "attributes", "inputs", "wanted"), INFERRED)
def test_shapes_known_in_part(name: str, attributes: Any, inputs: tuple[Any, ...], wanted: str) -> None:
    (found,) = case(name, **attributes).layer().infer_types(*map(value, inputs))
    assert str(found.shape) == wanted


def test_shape_of_gives_i32_or_i64() -> None:
    with pytest.raises(ValidationError, match="'output_type' must be i64 or i32, not u8"):
        case("ShapeOf-3", output_type="u8").layer()
    (found,) = case("ShapeOf-3").layer().infer_types(value("f32 2"))
    assert found.element is ElementType.i64


def test_shape_of_keeps_symbols() -> None:
    length = Dimension.between(1, 8, Symbol("batch"))
    data = Value.unknown(ElementType.f32, PartialShape([length, 3]))
    (found,) = case("ShapeOf-3", output_type="i32").layer().infer_values(data)
    assert found.numbers() == (length, 3)


@pytest.mark.parametrize("name", ["Squeeze-1", "Squeeze-15"])
def test_axes_not_of_length_1_stay(name: str) -> None:
    """As specified for version 15, although the inferred rank may then be wrong."""
    sample = case(name, numbers(2, 1, 3), ints(0, 1))
    (wanted,) = answer(read(*model_of(sample)), sample.inputs)
    np.testing.assert_array_equal(sample.layer().evaluate(*sample.inputs), wanted, strict=True)


def test_a_number_that_may_be_minus_one_stands_for_what_is_left() -> None:
    shape = Value.bounded(ElementType.i64, objects([Interval(-1, 4), 3], (2,)))
    (found,) = case("Reshape-1", special_zero=False).layer().infer_types(value("f32 ?,3"), shape)
    assert str(found.shape) == "[?,3]"


def test_a_length_that_may_be_zero_may_be_copied() -> None:
    shape = Value.bounded(ElementType.i64, objects([Dimension(0, 4), Dimension(1, 4)], (2,)))
    (found,) = case("Reshape-1", special_zero=True).layer().infer_types(value("f32 ..9,?"), shape)
    assert str(found.shape) == "[..9,1..4]"


def test_contents_pass_through_shapes_that_are_certain() -> None:
    numbers = Value.bounded(ElementType.i64, objects([Dimension(2, 4), 3], (2,)))
    (found,) = case("Reshape-1", special_zero=False).layer().infer_values(numbers, value("i64 1"))
    assert found.type == TensorType(ElementType.i64, PartialShape([2]))
    assert found.numbers() == (Dimension(2, 4), 3)


def test_strings_are_reshaped() -> None:
    words = np.array([["a", "bc"]], object)
    layers = (
        ("Reshape-1", {"special_zero": False}, ints(2)),
        ("Squeeze-1", {}, ints(0)),
        ("Unsqueeze-1", {}, ints(0)),
    )
    for name, attributes, given in layers:
        (found,) = case(name, **attributes).layer().infer_values(value(words), value(given))
        assert found.element is ElementType.string
        assert list(found.data.flat) == ["a", "bc"]
