"""TopK and SearchSorted, beyond samples: NaN, bounds of k."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer, value

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


def test_nan_is_largest() -> None:
    data = np.array([[1, np.nan, 2, np.nan]], F)
    values, indices = layer("TopK-11", **TOP).evaluate(data, np.array(3))
    assert indices.tolist() == [[1, 3, 2]]
    np.testing.assert_array_equal(values, [[np.nan, np.nan, 2]])
    _, indices = layer("TopK-11", **(TOP | {"mode": "min"})).evaluate(data, np.array(3))
    assert indices.tolist() == [[0, 2, 1]]


def test_shape_of_search() -> None:
    search = layer("SearchSorted-15")
    assert str(search.infer(value("f32 2,?,5"), value("f32 ?,3,?"))) == "[2,3,?]"
    assert str(search.infer(value("f32 2,5"), value("f32 ..."))) == "[2,?]"
    assert str(search.infer(value("f32 5"), value("f32 ..."))) == "[...]"
    assert str(search.infer(value("f32 ..."), value("f32 2,3"))) == "[2,3]"
