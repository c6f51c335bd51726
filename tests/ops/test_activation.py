"""Activations: refused inputs and attributes, bounds on integers, extreme integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.ir.dimension import Dimension, Interval
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value, objects
from ir_runtime.ops import Op
from ir_runtime.ops.activation import Clamp, Identity, PReLU, ReLU, Selu, SoftMax, Swish


def infer(op: Op, *shapes: str) -> PartialShape:
    (found,) = op.infer_types(*(Value.unknown(ElementType.f32, PartialShape(s)) for s in shapes))
    return found.shape


@pytest.mark.parametrize(
    ("op", "shapes", "expected"),
    [
        (SoftMax(axis=1), ("...",), "..."),
        (SoftMax(axis=1), ("1..3,?",), "1..3,?"),
        (PReLU(), ("?,1..3", "?"), "?,1..3"),
        (PReLU(), ("...", "3"), "..."),
        (PReLU(), ("2,3,4", "..."), "2,3,4"),
        (PReLU(), ("2,?,4", "3"), "2,?,4"),
        (PReLU(), ("", "1"), ""),
        (Selu(), ("?,3", "?", "..."), "?,3"),
        (Swish(), ("?,3", "..."), "?,3"),
        (Swish(), ("?,3",), "?,3"),
    ],
)
def test_partial_shapes(op: Op, shapes: tuple[str, ...], expected: str) -> None:
    assert infer(op, *shapes) == PartialShape(expected)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (ReLU(), (Dimension(0, 3), Dimension(2, 8), 0, Dimension())),
        (Clamp(min=-1.5, max=4.9), (Interval(-1, 3), Dimension(2, 4), -1, Interval(-1, 4))),
        (
            Clamp(min=-np.inf, max=np.inf),
            (Interval(-5, 3), Dimension(2, 8), -7, Interval(-(2**63), 2**63 - 1)),
        ),
        (Identity(), (Interval(-5, 3), Dimension(2, 8), -7, Interval())),
    ],
)
def test_bounds_on_integers(op: Op, expected: Any) -> None:
    known = objects([Interval(-5, 3), Dimension(2, 8), -7, Interval()], (4,))
    (found,) = op.infer_values(Value.bounded(ElementType.i64, known))
    bounds = [(n.min, n.max) if isinstance(n, Interval) else (n, n) for n in found.numbers() or ()]
    wanted = [(n.min, n.max) if isinstance(n, Interval) else (n, n) for n in expected]
    assert bounds == wanted


def test_clamping_bounds_that_lie_outside_the_type() -> None:
    known = objects([Dimension(1, 3), 7], (2,))
    (found,) = Clamp(min=-1000, max=-500).infer_values(Value.bounded(ElementType.u8, known))
    assert found.ints() == (0, 0)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_clamping_integers_at_the_ends_of_their_type(dtype: type) -> None:
    ends = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    np.testing.assert_array_equal(Clamp(min=-1e30, max=1e30).evaluate(ends), ends)
    np.testing.assert_array_equal(Clamp(min=-np.inf, max=np.inf).evaluate(ends), ends)
    np.testing.assert_array_equal(Clamp(min=1e30, max=2e30).evaluate(ends), [ends[1], ends[1]])


def test_clamping_where_no_integer_lies_between_the_bounds() -> None:
    # By the page's formula, the upper bound wins; so in the plugin, while the reference gives either.
    found = Clamp(min=1.2, max=1.8).evaluate(np.arange(5, dtype=np.int32))
    np.testing.assert_array_equal(found, [1, 1, 1, 1, 1])
