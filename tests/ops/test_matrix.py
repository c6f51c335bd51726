"""Matrices: what is refused and how it is said, what is inferred from little."""

from __future__ import annotations

import pytest

from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.matrix.matmul import MatMul


def product(a: str, b: str, **attributes: bool) -> PartialShape:
    values = (Value.unknown(ElementType.f32, PartialShape(s)) for s in (a, b))
    (found,) = MatMul(**attributes).infer_types(*values)
    return found.shape


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("...", "3,4", "..."),
        ("3", "...", "..."),
        ("?", "3,4", "4"),
        ("?,?,2,3", "5,1,3,4", "5,?,2,4"),
        ("1..4,2,3", "2..5,3,4", "2..5,2,4"),
        ("?,2,3..4", "4..5,3", "?,2,3"),
        ("2,1..3,2,3", "1..3,3,2", "2,1..3,2,2"),
        ("2..4,3", "?,..3", "2..4,..3"),
    ],
)
def test_product_of_shapes(a: str, b: str, expected: str) -> None:
    assert str(product(a, b)) == f"[{expected}]"


@pytest.mark.parametrize(
    ("a", "b", "transposed", "message"),
    [
        ("2,3", "4,2", {}, "a [2,3] has 3 columns, b [4,2] has 4 rows"),
        ("2,3", "2,4", {"transpose_b": True}, "a [2,3] has 3 columns, b [2,4] transposed has 4 rows"),
        ("3", "4", {"transpose_b": True}, "a [3] has 3 columns, b [4] has 4 rows"),
        ("2,2,3", "3,3,2", {}, "the batches of a [2,2,3] and b [3,3,2] do not broadcast"),
        ("2..4,2,3", "5,3,2", {}, "the batches of a [2..4,2,3] and b [5,3,2] do not broadcast"),
        ("", "3", {}, "a is a scalar; a rank of at least 1 is expected"),
        ("...", "", {}, "b is a scalar; a rank of at least 1 is expected"),
    ],
)
def test_contradictions_are_named(a: str, b: str, transposed: dict[str, bool], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        product(a, b, **transposed)
    assert caught.value.message == message
