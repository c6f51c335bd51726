"""Matrix operations: refusals and their messages, inference from partial shapes."""

from __future__ import annotations

import inspect
import tracemalloc
from itertools import pairwise
from string import ascii_letters

import numpy as np
import pytest

from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.matrix import Einsum, Inverse, MatMul


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


def test_both_sides_of_a_square_are_known_from_one() -> None:
    assert Inverse().infer_types(*unknown("?,3"))[0].shape == [3, 3]


def test_einsum_refuses_lengths_of_one_label_that_differ() -> None:
    """NumPy treats length 0 as unset, and would read out of bounds."""
    with pytest.raises(InferenceError, match="occurs twice"):
        Einsum(equation="kii->ki").evaluate(np.zeros((2, 0, 3), np.float32))


@pytest.mark.parametrize(("first", "output"), [("ab", "b"), ("a...", "..."), ("a...", "b...a")])
def test_many_operands_are_multiplied_in_turn(
    first: str, output: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy would search for a contraction order in cubic time."""
    rng = np.random.default_rng(0)
    data = [rng.random((3, 4)), *(rng.random((4, 4)) + 0.5 for _ in range(29)), rng.random(4)]
    equation = f"{first}," + "bc," * 29 + f"b->{output}"
    expected = np.einsum(equation, *data, optimize="greedy")
    monkeypatch.setitem(inspect.unwrap(np.einsum).__globals__, "einsum_path", None)
    np.testing.assert_allclose(Einsum(equation=equation).evaluate(*data), expected, rtol=1e-9)


def test_labels_are_summed_after_their_last_use() -> None:
    """Keeping a label for one product longer takes 30 times as long."""
    labels = ascii_letters[:27]
    equation = ",".join(map("".join, pairwise(labels))) + f"->{labels[0]}{labels[-1]}"
    data = [np.full((30, 30), 1 / 30)] * 26
    tracemalloc.start()
    values = Einsum(equation=equation).evaluate(*data)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10 * data[0].nbytes
    np.testing.assert_allclose(values, 1 / 30)
