"""Select, NonZero, Bucketize and the like: refusals, and partial knowledge of results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.errors import ValidationError
from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops.condition import Bucketize, NonZero, Select
from ir_runtime.ops.logical import LogicalAnd, LogicalNot, LogicalOr, LogicalXor

D = Dimension
TRUE, FALSE, MAYBE = 1, 0, D(0, 1)


def tensor(shape: str, element: str = "f32") -> Value:
    return Value.unknown(ElementType.parse(element), PartialShape(shape))


def known(*numbers: Any, element: str = "i64") -> Value:
    return Value.bounded(ElementType.parse(element), objects(numbers, (len(numbers),)))


def test_the_condition_decides_what_is_known() -> None:
    condition = known(TRUE, FALSE, MAYBE, element="boolean")
    (found,) = Select().infer_values(condition, known(D(1, 8), 2, 3), known(4, D(5, 6), 9))
    assert found.numbers() == (D(1, 8), D(5, 6), D(3, 9))


def test_what_is_not_picked_may_be_unknown() -> None:
    condition = Value.constant(np.array([True, False]))
    (found,) = Select().infer_values(condition, known(7, 8), tensor("2", "i64"))
    assert found.numbers() == (7, Interval())
    (found,) = Select().infer_values(tensor("2", "boolean"), known(7, 8), known(7, 9))
    assert found.numbers() == (7, D(8, 9))


def test_choices_broadcast() -> None:
    (found,) = Select().infer_values(
        known(TRUE, MAYBE, element="boolean"), known(D(2, 3)), Value.constant(np.array(1))
    )
    assert found.numbers() == (D(2, 3), D(1, 3))
    (found,) = Select(auto_broadcast="pdpd").infer_values(
        tensor("2", "boolean"), tensor("2,3", "i64"), tensor("...", "i64")
    )
    assert found.shape == [2, 3]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (LogicalAnd(), (TRUE, FALSE, FALSE, FALSE, MAYBE, FALSE)),
        (LogicalOr(), (TRUE, TRUE, FALSE, TRUE, MAYBE, MAYBE)),
    ],
)
def test_undecided_truth(op: Any, expected: tuple[Any, ...]) -> None:
    a = known(TRUE, TRUE, FALSE, TRUE, MAYBE, MAYBE, element="boolean")
    b = known(TRUE, FALSE, FALSE, FALSE, MAYBE, FALSE, element="boolean")
    (found,) = op.infer_values(a, b)
    assert found.numbers() == expected
    (found,) = LogicalNot().infer_values(a)
    assert found.numbers() == (FALSE, FALSE, TRUE, FALSE, MAYBE, MAYBE)
    (found,) = LogicalXor().infer_values(a, b)
    assert MAYBE in (found.numbers() or ())


@pytest.mark.parametrize(
    ("shape", "expected"),
    [("2,3", "2,..6"), ("2,?", "2,?"), ("...", "?,?"), ("", "..1,..1"), ("1..2,3,0", "3,0")],
)
def test_how_much_may_be_found(shape: str, expected: str) -> None:
    (found,) = NonZero().infer_types(tensor(shape))
    assert str(found.shape) == f"[{expected}]"


@pytest.mark.parametrize("cls", [NonZero, Bucketize])
def test_types_of_indices(cls: Any) -> None:
    with pytest.raises(ValidationError, match="'output_type' must be i64 or i32, not f32"):
        cls.parse({"output_type": "f32"})
