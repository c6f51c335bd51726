"""Element-wise arithmetic and reductions: refusals, and propagation through shape arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.files import Writer
from harness.oracle import Ours, read

from ir_runtime.errors import ExecutionError, InferenceError, ValidationError
from ir_runtime.ir.dimension import Dimension, Interval, Symbol
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value, objects
from ir_runtime.ops import Op, registry


def make(name: str, **attributes: str) -> Op:
    cls = registry.resolve(name)
    assert cls is not None
    return cls.parse(attributes)


def tensor(shape: str, element: str = "f32") -> Value:
    return Value.unknown(ElementType.parse(element), PartialShape(shape))


def known(*numbers: Any, element: str = "i64") -> Value:
    return Value.bounded(ElementType.parse(element), objects(numbers, (len(numbers),)))


def contents(name: str, *inputs: Value, **attributes: str) -> Any:
    (found,) = make(name, **attributes).infer_values(*inputs)
    return None if found.data is None else found.data.tolist()


@pytest.mark.parametrize(
    ("a", "b", "rule", "message"),
    [
        ("2,3", "3", "none", "a [2,3] and b [3] differ, and auto_broadcast is none"),
        ("2,3", "2", "numpy", "a [2,3] and b [2] do not broadcast"),
        ("2,3", "2,3,4", "pdpd", "b [2,3,4] does not fit into a [2,3]"),
        ("2,3", "3", "pdpd", "b [3] does not fit into a [2,3]"),
        ("1,3", "2,3", "pdpd", "b [2,3] does not fit into a [1,3]"),
    ],
)
@pytest.mark.parametrize("name", ["Add", "Equal", "LogicalAnd", "BitwiseAnd"])
def test_shapes_that_do_not_go_together(name: str, a: str, b: str, rule: str, message: str) -> None:
    element = {"LogicalAnd": "boolean", "BitwiseAnd": "i32"}.get(name, "f32")
    with pytest.raises(InferenceError) as caught:
        make(name, auto_broadcast=rule).infer_types(tensor(a, element), tensor(b, element))
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("a", "b", "rule", "expected"),
    [
        ("?,3", "?", "numpy", "?,3"),
        ("2..4,1", "5", "numpy", "2..4,5"),
        ("...", "3", "numpy", "..."),
        ("?,3", "2,?", "none", "2,3"),
        ("?,3,4", "?,3", "pdpd", "?,3,4"),
        ("?,3,4", "2,?", "pdpd", "2,3,4"),
        ("2,3", "...", "pdpd", "2,3"),
        ("2,3", "2,3,1,1", "pdpd", "2,3"),
    ],
)
def test_partial_shapes(a: str, b: str, rule: str, expected: str) -> None:
    (found,) = make("Add", auto_broadcast=rule).infer_types(tensor(a), tensor(b))
    assert str(found.shape) == f"[{expected}]"


@pytest.mark.parametrize("name", ["Maximum", "Minimum", "Power", "Mod", "FloorMod", "SquaredDifference"])
def test_pdpd_where_pages_do_not_list_it(name: str) -> None:
    """OpenVINO reads it there, too: the axes of b align with the first axes of a."""
    found = make(name, auto_broadcast="pdpd").evaluate(np.full((2, 3), 7.0), np.array([2.0, 3.0]))
    rows = make(name).evaluate(np.full((2, 3), 7.0), np.array([[2.0], [3.0]]))
    np.testing.assert_array_equal(found, rows)
    with pytest.raises(ValidationError, match="must be one of none, numpy, pdpd, not 'pddp'"):
        make(name, auto_broadcast="pddp")


@pytest.mark.parametrize("name", ["Divide", "Mod", "FloorMod"])
def test_whole_numbers_cannot_be_divided_by_zero(name: str) -> None:
    with pytest.raises(ExecutionError, match="b holds a 0"):
        make(name).evaluate(np.array([1, 2]), np.array([1, 0]))
    empty = make(name).evaluate(np.zeros((2, 0), int), np.array([0]))
    assert empty.shape == (2, 0)
    (unknown,) = make(name).infer_values(known(1, 2), known(1, 0))
    assert unknown.data is None


def test_axis_of_sums() -> None:
    with pytest.raises(InferenceError, match="axis 2 is out of range for rank 2"):
        make("CumSum").infer_types(tensor("2,3"), Value.constant(np.array(2)))
    found = make("CumSum").evaluate(np.array([1, 2, 3]))  # without an axis, which OpenVINO cannot read
    np.testing.assert_array_equal(found, [1, 3, 6])


@pytest.mark.parametrize(
    ("ids", "count", "expected"),
    [
        (known(0, 0, 2), None, "3,?"),
        (known(0, 0, Dimension(2, 5)), None, "3..6,?"),
        (known(0, 1, 1), tensor("", "i64"), "?,?"),
        (tensor("3", "i64"), Value.constant(np.array(7)), "7,?"),
        (tensor("3", "i64"), None, "?,?"),
        (known(), None, "0,?"),
    ],
)
def test_number_of_segments(ids: Value, count: Value | None, expected: str) -> None:
    inputs = [tensor("?,?"), ids] + ([] if count is None else [count])
    (found,) = make("SegmentMax", fill_mode="LOWEST").infer_types(*inputs)
    assert str(found.shape) == f"[{expected}]"


D = Dimension
N = Dimension.between(1, None, Symbol("n"))


@pytest.mark.parametrize(
    ("name", "a", "b", "expected"),
    [
        ("Add", (N, D(1, 8), 3), (0, 2, -5), [N, D(3, 10), -2]),
        ("Subtract", (N, D(1, 8)), (N, 2), [0, Interval(-1, 6)]),
        ("Multiply", (N, D(1, 8), D()), (1, 4, 0), [N, D(4, 32), 0]),
        ("Divide", (D(1, 9), N, D(8, 64)), (2, N, D(2, 4)), [D(0, 4), 1, D(2, 32)]),
        ("FloorMod", (D(0, 9), N, D(3, 5)), (4, N, 8), [D(0, 3), 0, D(3, 5)]),
        ("Mod", (D(0, 9), Interval(-9, 2)), (4, 4), [D(0, 3), Interval(-3, 2)]),
        ("Maximum", (N, D(0, 8)), (1, 4), [N, D(4, 8)]),
        ("Minimum", (N, D(0, 8)), (0, 4), [0, D(0, 4)]),
        ("Power", (D(2, 3), N), (2, 1), [D(4, 9), N]),
        ("SquaredDifference", (D(2, 4),), (3,), [D(0, 1)]),
        ("BitwiseAnd", (D(0, 9), Interval(-3, 6)), (3, 15), [D(0, 3), D(0, 15)]),
        ("BitwiseLeftShift", (D(1, 4),), (3,), [D(8, 32)]),
        ("BitwiseRightShift", (D(1, 40),), (3,), [D(0, 5)]),
        ("BitwiseOr", (D(1, 4), 4), (3, 1), [Interval(), Interval()]),
        ("Equal", (N, D(5, 9), D(5, 9), 4), (N, -1, 7, 4), [1, 0, D(0, 1), 1]),
        ("NotEqual", (N, D(5, 9)), (N, -1), [0, 1]),
        ("Less", (D(1, 4), D(1, 4), D(1, 4)), (5, 1, 3), [1, 0, D(0, 1)]),
        ("LessEqual", (D(1, 4), D(1, 4)), (4, 0), [1, 0]),
        ("Greater", (D(1, 4), D(1, 4)), (0, 4), [1, 0]),
        ("GreaterEqual", (D(1, 4), N), (1, N), [1, 1]),
    ],
)
def test_bounds_of_pairs(name: str, a: tuple[Any, ...], b: tuple[Any, ...], expected: list[Any]) -> None:
    assert contents(name, known(*a), known(*b)) == expected


@pytest.mark.parametrize(
    ("name", "x", "expected"),
    [
        ("Abs", (Interval(-3, 2), Interval(-3, -1), N), [D(0, 3), D(1, 3), N]),
        ("Negative", (D(1, 3),), [Interval(-3, -1)]),
        ("Sign", (D(0, 3), N, Interval(None, -1)), [D(0, 1), 1, -1]),
        ("Floor", (N,), [N]),
        ("Ceiling", (D(0, 3),), [D(0, 3)]),
        ("Round", (D(0, 3),), [D(0, 3)]),
        ("Sqrt", (D(5, 13), D(9, 9), Interval(-1, 4)), [D(2, 4), 3, Interval()]),
        ("Sin", (D(0, 3),), [Interval()]),
    ],
)
def test_bounds_of_numbers(name: str, x: tuple[Any, ...], expected: list[Any]) -> None:
    assert contents(name, known(*x, D(0, 7)))[: len(x)] == expected


def test_bounds_that_leave_their_type_are_those_of_the_type() -> None:
    small = known(D(1, 100), 100, element="i8")
    assert contents("Add", small, small) == [Interval(-128, 127), -56]
    assert contents("Subtract", known(D(1, 9), element="u8"), known(3, element="u8")) == [D(0, 255)]


def test_bounds_broadcast() -> None:
    row, column = known(D(1, 2), 3), Value.bounded(ElementType.i64, objects((1, D(0, 5)), (2, 1)))
    (found,) = make("Add").infer_values(row, column)
    assert found.shape == [2, 2]
    assert found.numbers() == (D(2, 3), 4, D(1, 7), D(3, 8))
    (found,) = make("Multiply", auto_broadcast="pdpd").infer_values(column, row)
    assert found.numbers() == (D(1, 2), D(0, 15))


def test_shapes_pass_through_arithmetic() -> None:
    """ShapeOf, Gather, Multiply, Divide, Maximum, Concat, Reshape, as exporters write them."""
    w = Writer()
    i64 = TensorType(ElementType.i64, PartialShape([1]))
    data = w.parameter(
        ElementType.f32, "1..8, 64, ?, 6", TensorType(ElementType.f32, PartialShape("?,64,?,6"))
    )
    shape = TensorType(ElementType.i64, PartialShape([4]))
    shape_of = w.layer(
        "ShapeOf",
        "opset3",
        {"output_type": "i64"},
        [(data, 0)],
        [shape],
        [TensorType(ElementType.f32, PartialShape("?,64,?,6"))],
    )
    zero = w.constant(np.array(0))
    scalar = TensorType(ElementType.i64, PartialShape([]))

    def constant(n: int) -> tuple[int, TensorType]:
        return w.constant(np.array([n])), i64

    def dim(i: int) -> tuple[int, int]:
        index = w.constant(np.array([i]))
        return w.layer(
            "Gather",
            "opset8",
            {"batch_dims": "0"},
            [(shape_of, 1), (index, 0), (zero, 0)],
            [i64],
            [shape, i64, scalar],
        ), 3

    def pair(type: str, a: tuple[int, int], n: int) -> tuple[int, int]:
        b = w.constant(np.array([n]))
        return w.layer(type, "opset1", {"auto_broadcast": "numpy"}, [a, (b, 0)], [i64], [i64, i64]), 2

    dims = [
        dim(0),
        pair("Divide", pair("Multiply", dim(1), 2), 16),
        pair("FloorMod", pair("Add", dim(1), 1), 9),
        pair("Maximum", pair("Subtract", dim(3), 7), 8),
        pair("Minimum", pair("Power", dim(3), 2), 6),
    ]
    target = w.layer(
        "Concat", "opset1", {"axis": "0"}, dims, [TensorType(ElementType.i64, PartialShape([5]))], [i64] * 5
    )
    ones = w.constant(np.ones(1, np.float32))
    spread = w.layer(
        "Broadcast",
        "opset3",
        {"mode": "numpy"},
        [(ones, 0), (target, 5)],
        [TensorType(ElementType.f32, PartialShape("?,8,2,8,6"))],
        [TensorType(ElementType.f32, PartialShape([1])), TensorType(ElementType.i64, PartialShape([5]))],
    )
    w.layer(
        "Result", "opset1", {}, [(spread, 2)], inputs=[TensorType(ElementType.f32, PartialShape("?,8,2,8,6"))]
    )
    ours = Ours(w.xml(), w.weights)
    (found,) = ours.types()
    assert str(found.shape) == "[1..8,8,2,8,6]"
    theirs = PartialShape(str(read(w.xml(), w.weights).outputs[0].get_partial_shape()))
    assert found.shape.refines(theirs)
