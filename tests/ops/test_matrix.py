"""Matrices: what is refused and how it is said, what is inferred from little."""

from __future__ import annotations

import numpy as np
import pytest

from ir_runtime.errors import InferenceError, ValidationError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.matrix.einsum import Einsum
from ir_runtime.ops.matrix.grouped import GroupedMatMul
from ir_runtime.ops.matrix.inverse import Inverse
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


def unknown(*shapes: str) -> list[Value]:
    return [Value.unknown(ElementType.f32, PartialShape(s)) for s in shapes]


@pytest.mark.parametrize(
    ("equation", "shapes", "expected"),
    [
        ("ij,jk->ik", ("?,?", "3,4"), "?,4"),
        ("ij,jk->ik", ("...", "3,4"), "?,4"),
        ("ij,ij->ij", ("2..3,1", "?,1..8"), "2..3,1..8"),
        ("...ij,jk->...ik", ("?,2,3", "..."), "?,2,?"),
        ("...ij,jk->...ik", ("...", "3,4"), "..."),
        ("...ij->i", ("...",), "?"),
        ("ii->i", ("3,2..8",), "3"),
    ],
)
def test_einsum_of_shapes(equation: str, shapes: tuple[str, ...], expected: str) -> None:
    (found,) = Einsum(equation=equation).infer_types(*unknown(*shapes))
    assert str(found.shape) == f"[{expected}]"


@pytest.mark.parametrize(
    ("equation", "shapes", "message"),
    [
        ("ij,jk->ik", ("2,3",), "equation 'ij,jk->ik' has 2 operands, 1 are given"),
        ("ij,jk->ik", ("2,3", "4,4"), "label j stands for 3 and for 4"),
        ("ij", ("2,3,4",), "operand 0 [2,3,4] has rank 3, its subscript 'ij' covers 2 axes"),
        ("i...j", ("2",), "operand 0 [2] has rank 1, its subscript 'i...j' covers 2 axes"),
        ("ii->i", ("2,3",), "label i is repeated in operand 0 for 2 and for 3"),
        ("...i,...i", ("2,3", "4,3"), "the ellipses cover [2] and [4], which do not broadcast"),
    ],
)
def test_operands_that_do_not_fit(equation: str, shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        Einsum(equation=equation).infer_types(*unknown(*shapes))
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij->ijk", "equation 'ij->ijk': label k of the output is in no operand"),
        ("ij->ii", "equation 'ij->ii': label i is twice in the output"),
        ("i1->i", "a subscript holds letters and at most one ellipsis, found 'i1'"),
        ("...i...->i", "a subscript holds letters and at most one ellipsis, found '...i...'"),
        ("ij->i->", "a subscript holds letters and at most one ellipsis, found 'i->'"),
        ("i..->i", "a subscript holds letters and at most one ellipsis, found 'i..'"),
    ],
)
def test_equations_that_make_no_sense(equation: str, message: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Einsum(equation=equation)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("kii", [(2, 3, 3)]),  # OpenVINO keeps labels that one operand repeats
        ("dbbc,ca", [(4, 2, 2, 3), (3, 5)]),
        (" i j , j -> i ", [(2, 3), (3,)]),  # and refuses blanks
    ],
)
def test_equations_of_the_page_that_openvino_reads_otherwise(
    equation: str, shapes: list[tuple[int, ...]]
) -> None:
    data = [np.arange(1, 1 + np.prod(shape), dtype="f4").reshape(shape) for shape in shapes]
    found, expected = Einsum(equation=equation).evaluate(*data), np.asarray(np.einsum(equation, *data))
    np.testing.assert_allclose(found, expected)
    assert Einsum(equation=equation).infer_types(*map(Value.constant, data))[0].shape == expected.shape


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (("2,3",), "data must hold square matrices, found [2,3]"),
        (("?,..2,3..",), "data must hold square matrices, found [?,..2,3..]"),
        (("3",), "data must have rank 2 or more, found [3]"),
    ],
)
def test_matrices_without_inverse(shapes: tuple[str, ...], message: str) -> None:
    with pytest.raises(InferenceError) as caught:
        Inverse().infer_types(*unknown(*shapes))
    assert caught.value.message == message


def test_both_sides_of_a_square_are_known_from_one() -> None:
    assert Inverse().infer_types(*unknown("?,3"))[0].shape == [3, 3]


@pytest.mark.parametrize(
    ("a", "b", "offsets", "message"),
    [
        ("2,3,4", "2,5,4", "2", "mat_a must have rank 2 with offsets, found [2,3,4]"),
        ("3,4", "2,5,4", None, "mat_a must have rank 3 without offsets, found [3,4]"),
        ("3,4", "4,5", "2", "mat_b must have rank 3, [G, N, K], found [4,5]"),
        ("3,4", "2,4,5", "2", "mat_a [3,4] and mat_b [2,4,5] differ in their last axis"),
        ("3,4", "2,5,4", "3", "offsets has 3 groups, mat_b has 2"),
        ("3,4", "2,5,4", "1,2", "offsets must be 1-D, found [1,2]"),
        ("3,2,4", "2,5,4", None, "mat_a has 3 groups, mat_b has 2"),
    ],
)
def test_groups_that_do_not_fit(a: str, b: str, offsets: str | None, message: str) -> None:
    values = unknown(a, b)
    if offsets is not None:
        values.append(Value.unknown(ElementType.i64, PartialShape(offsets)))
    with pytest.raises(InferenceError) as caught:
        GroupedMatMul().infer_types(*values)
    assert caught.value.message == message


@pytest.mark.parametrize("ends", [[2, 1], [1, 4], [-1, 2]])
def test_offsets_must_rise(ends: list[int]) -> None:
    a, b = np.ones((3, 2), "f4"), np.ones((2, 1, 2), "f4")
    with pytest.raises(InferenceError, match="offsets must rise to 3 rows at most, found"):
        GroupedMatMul().evaluate(a, b, np.array(ends))
