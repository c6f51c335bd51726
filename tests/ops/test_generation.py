"""Range and Eye: dims inferred from partial knowledge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.generation import Eye, Range4


def number(n: Any) -> Value:
    if isinstance(n, Interval):
        return Value.bounded(E.i64, objects([n], ()))
    if isinstance(n, str):
        return Value.unknown(E.i64, PartialShape(n))
    return Value.constant(np.array(n))


def length(start: Any, stop: Any, step: Any, output: E = E.i64) -> Dimension:
    (found,) = Range4(output_type=output).infer_types(*map(number, (start, stop, step)))
    assert found.shape.rank == 1
    return found.shape[0]


@pytest.mark.parametrize(
    ("start", "stop", "step", "expected"),
    [
        (0, Dimension(1, 8), 1, Dimension(1, 8)),
        (0, Dimension(), 1, Dimension()),
        (2, Dimension(1, 8), 3, Dimension(0, 2)),
        (Interval(-3, 4), 8, 1, Dimension(4, 11)),
        (Dimension(1, 8), 0, -2, Dimension(1, 4)),
        (0, Dimension(1, 8), 1.5, Dimension(1, 8)),
        (0, "", 1, Dimension()),
        (0, 8, "", Dimension()),
        (0, 8, Interval(1, 2), Dimension()),
        ("...", 8, 1, Dimension()),
        (0.5, 8.9, 2.9, Dimension(4)),
    ],
)
def test_lengths(start: Any, stop: Any, step: Any, expected: Dimension) -> None:
    assert length(start, stop, step) == expected


def test_bounds_and_fractions_give_no_length() -> None:
    assert length(0, Dimension(1, 8), 0.5, E.f32) == length(0.5, Dimension(1, 8), 1, E.f32) == Dimension()


def test_the_length_is_the_dimension_counted_to() -> None:
    to = Dimension.between(1, None, Symbol("length"))
    assert length(0, to, 1).symbol is to.symbol


def sides(rows: Any, columns: Any, *batch: Any) -> str:
    inputs = [number(n) if not isinstance(n, list) else Value.constant(np.array(n)) for n in batch]
    (found,) = Eye(output_type=E.f32).infer_types(number(rows), number(columns), number(""), *inputs)
    return str(found.shape)


def test_sides_of_unit_matrices() -> None:
    assert sides(2, "") == "[2,?]"
    assert sides(Interval(-1, 4), "...") == "[..4,?]"
    assert sides("1", 3, [2, 5]) == "[2,5,?,3]"
    assert sides(2, 3, "2") == "[?,?,2,3]"
    assert sides(2, 3, "?") == sides(2, 3, "...") == "[...]"
