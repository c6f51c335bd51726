"""What samples of TopK and SearchSorted cannot say: errors, NaN, bounds of k."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer, value

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Value, objects

TOP = {"axis": "1", "mode": "max", "sort": "value"}
F = np.float32


def number(k: int | Dimension) -> Value:
    return Value.bounded(ElementType.i64, objects([k], ()))


@pytest.mark.parametrize(
    ("shape", "k", "expected"),
    [
        ("2,5", 3, "[2,3]"),
        ("2,?", 3, "[2,3]"),
        ("2,5", Dimension(2, 9), "[2,2..5]"),
        ("2,..9", Dimension.between(1), "[2,1..9]"),
        ("...", 3, "[...]"),
    ],
)
def test_how_many_are_chosen(shape: str, k: int | Dimension, expected: str) -> None:
    values, indices = layer("TopK-11", **TOP).infer(value(f"f32 {shape}"), number(k))
    assert (str(values), str(indices)) == (expected, expected)


@pytest.mark.parametrize(
    ("k", "message"),
    [
        (number(0), "k must be at least 1, not 0"),
        (number(6), "k asks for 6 elements along an axis of length 5"),
        (value("i64 1"), "k must be a scalar, not of shape [1]"),
    ],
)
def test_contradictions_of_topk(k: Value, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer("TopK-3", **TOP).infer(value("f32 2,5"), k)
    assert caught.value.message == message


def test_too_many_asked_for_at_run_time() -> None:
    with pytest.raises(InferenceError, match="k asks for 4 elements along an axis of length 3"):
        layer("TopK-3", **TOP).evaluate(np.zeros((2, 3), F), np.array(4))


def test_nan_is_largest() -> None:
    data = np.array([[1, np.nan, 2, np.nan]], F)
    values, indices = layer("TopK-11", **TOP).evaluate(data, np.array(3))
    assert indices.tolist() == [[1, 3, 2]]
    np.testing.assert_array_equal(values, [[np.nan, np.nan, 2]])
    _, indices = layer("TopK-11", **(TOP | {"mode": "min"})).evaluate(data, np.array(3))
    assert indices.tolist() == [[0, 2, 1]]


def test_attributes() -> None:
    with pytest.raises(ValidationError, match="stable asks for an order, but sort is none"):
        layer("TopK-11", **(TOP | {"sort": "none", "stable": "true"}))
    with pytest.raises(ValidationError, match="index_element_type must be i64 or i32, not u8"):
        layer("TopK-11", **TOP, index_element_type="u8")
    with pytest.raises(ValidationError, match="output_type must be i64 or i32, not f32"):
        layer("SearchSorted-15", output_type="f32")


@pytest.mark.parametrize(
    ("sequence", "values", "message"),
    [
        ("", "2", "sorted_sequence must have at least one axis"),
        ("2,5", "3,4", "values are of shape [3,4]; sorted_sequence asks for [2,?]"),
        ("2,5", "4", "values are of shape [4]; sorted_sequence asks for [2,?]"),
    ],
)
def test_contradictions_of_search(sequence: str, values: str, message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        layer("SearchSorted-15").infer(value(f"f32 {sequence}"), value(f"f32 {values}"))
    assert caught.value.message == message


def test_shape_of_search() -> None:
    search = layer("SearchSorted-15")
    assert str(search.infer(value("f32 2,?,5"), value("f32 ?,3,?"))) == "[2,3,?]"
    assert str(search.infer(value("f32 2,5"), value("f32 ..."))) == "[2,?]"
    assert str(search.infer(value("f32 5"), value("f32 ..."))) == "[...]"
    assert str(search.infer(value("f32 ..."), value("f32 2,3"))) == "[2,3]"
