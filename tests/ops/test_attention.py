"""Attention: inference from partial shapes."""

from __future__ import annotations

import numpy as np
import pytest

from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.sequence.attention import ScaledDotProductAttention as Attention


def shape_of(*shapes: str, mask: E = E.f32, causal: bool = False) -> PartialShape:
    types = (E.f32, E.f32, E.f32, mask, E.f32)
    values = [Value.unknown(e, PartialShape(s)) for e, s in zip(types, shapes, strict=False)]
    return Attention(causal=causal).infer_types(*values)[0].shape


@pytest.mark.parametrize(
    ("shapes", "expected"),
    [
        (("?,?,?",) * 3, "?,?,?"),
        (("1,?,4", "1,3,4", "1,3,2"), "1,?,2"),
        (("1,?,4", "1,3,4", "1,3,2", "1,5,3"), "1,5,2"),
        (("1,2,4", "..8,3,4", "1,3,2"), "..8,2,2"),
        (("1,2,4", "1,3,4", "..."), "..."),
        (("1,2,4", "1,3,4", "1,3,2", "..."), "..."),
        (("1,2,4", "1,3,4", "1,3,2", ""), "1,2,2"),
    ],
)
def test_inferred_from_little(shapes: tuple[str, ...], expected: str) -> None:
    assert str(shape_of(*shapes)) == f"[{expected}]"


def test_the_mask_has_the_type_of_the_query() -> None:
    shapes = ("1,2,4", "1,3,4", "1,3,2", "1,2,3")
    assert shape_of(*shapes, mask=E.boolean) == [1, 2, 2]
    with pytest.raises(InferenceError, match="attention_mask is f16; f32, as query, or boolean"):
        shape_of(*shapes, mask=E.f16)
    assert shape_of(*shapes[:3], "7,8,9", mask=E.f16, causal=True) == [1, 2, 2]


def test_causality_is_aligned_at_the_first_query() -> None:
    queries, keys = np.zeros((1, 2, 1), "f4"), np.zeros((1, 3, 1), "f4")
    values = np.array([[[1], [3], [100]]], "f4")
    assert Attention(causal=True).evaluate(queries, keys, values).tolist() == [[[1], [2]]]
