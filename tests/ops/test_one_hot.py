"""One-hot vectors: inference from partial knowledge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.ir.dimension import Interval
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.sequence.one_hot import OneHot1, OneHot16


def shape_of(indices: str, depth: Any, on: str = "", axis: int = -1) -> PartialShape:
    if isinstance(depth, Interval):
        classes = Value.bounded(E.i64, objects([depth], ()))
    elif isinstance(depth, int):
        classes = Value.constant(np.array(depth))
    else:
        classes = Value.unknown(E.i64, PartialShape(depth))
    values = [Value.unknown(E.f32, PartialShape(s)) for s in (on, "")]
    indexed = Value.unknown(E.i64, PartialShape(indices))
    return OneHot1(axis=axis).infer_types(indexed, classes, *values)[0].shape


@pytest.mark.parametrize(
    ("indices", "depth", "axis", "expected"),
    [
        ("...", 3, 0, "..."),
        ("?,4", 3, 0, "3,?,4"),
        ("?,4", 3, -1, "?,4,3"),
        ("2,4", "", 1, "2,?,4"),
        ("2,4", Interval(2, 5), 1, "2,2..5,4"),
        ("", 7, 0, "7"),
    ],
)
def test_inferred_from_little(indices: str, depth: Any, axis: int, expected: str) -> None:
    assert str(shape_of(indices, depth, axis=axis)) == f"[{expected}]"


def test_the_spelling_of_the_page() -> None:
    assert OneHot16.parse({"axis": "0", "negative_indices_mode": "ignore-negative"}).axis == 0
