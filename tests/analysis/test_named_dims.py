"""Formulas of inner lengths are those that made them, or none."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import cast

import pytest

from ir_runtime.analysis.constraints.constraint import Constraint, Constraints, Dim, Trial
from ir_runtime.analysis.constraints.probing import Probe
from ir_runtime.analysis.named_dims import symbolic_dims
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.graph import Port
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import TensorType, Value

Length = Callable[[int, int, int], int]
DIMS = {Dim(0, axis): name for axis, name in enumerate("abc")}
PORT = Port(1, 0)
# Far from each other, and of all remainders.
POINTS = [(12, 5, 2), (31, 5, 2), (48, 17, 3), (61, 11, 7), (122, 42, 4), (247, 29, 10), (13, 88, 6)]

FORMS: dict[str, Length] = {
    "7": lambda a, b, c: 7,
    "a": lambda a, b, c: a,
    "b+3": lambda a, b, c: b + 3,
    "a-1": lambda a, b, c: a - 1,
    "3*a+1": lambda a, b, c: 3 * a + 1,
    **{f"floor(a/{n})": lambda a, b, c, n=n: a // n for n in (2, 3, 5, 8)},  # type: ignore[misc]
    **{f"ceil(a/{n})": lambda a, b, c, n=n: -(-a // n) for n in (2, 3, 5, 8)},  # type: ignore[misc]
    "floor((a-1)/2)": lambda a, b, c: (a - 1) // 2,
    "floor((a-3)/4)": lambda a, b, c: (a - 3) // 4,
    "floor((a+5)/4)": lambda a, b, c: (a + 5) // 4,
    "floor((b+7)/3)": lambda a, b, c: (b + 7) // 3,
    "a+b": lambda a, b, c: a + b,
    "a+c-2": lambda a, b, c: a + c - 2,
    "a+b+c+1": lambda a, b, c: a + b + c + 1,
    "a*b": lambda a, b, c: a * b,
    "5*b*c": lambda a, b, c: 5 * b * c,
    "a*b*c": lambda a, b, c: a * b * c,
}
NO_FORMS: dict[str, Length] = {
    "square": lambda a, b, c: a * a,
    "root": lambda a, b, c: math.isqrt(a),
    "less": lambda a, b, c: 500 - a,
    "lesser": lambda a, b, c: min(a, b),
    "cut off at 0": lambda a, b, c: max(20 - a, 0),
    "rounded sum": lambda a, b, c: (a + b) // 2,
}


class Answers:
    """Answers for an oracle: the lengths of one shape at each point."""

    def __init__(self, *lengths: Length) -> None:
        self._lengths = lengths

    def values(self, point: Mapping[Dim, int]) -> dict[Port, Value]:
        shape = PartialShape([length(*point.values()) for length in self._lengths])
        return {PORT: Value(TensorType(ElementType.f32, shape))}


def formulas(
    *lengths: Length, points: Sequence[Sequence[int]] = POINTS, found: tuple[Constraint, ...] = ()
) -> dict[int, str]:
    trials = tuple(Trial(dict(zip(DIMS, point, strict=True)), True) for point in points)
    named = symbolic_dims(
        cast(Probe, Answers(*lengths)), Constraints(found=found, symbols=DIMS, accepted=trials)
    )
    assert {port for port, _ in named} <= {PORT}
    return {axis: str(formula) for (_, axis), formula in named.items()}


@pytest.mark.parametrize("text", FORMS)
def test_a_formula_is_found(text: str) -> None:
    assert formulas(FORMS[text]) == {0: text}


@pytest.mark.parametrize("name", NO_FORMS)
def test_what_has_no_simple_formula_gets_none(name: str) -> None:
    assert formulas(NO_FORMS[name]) == {}


def test_each_axis_has_its_own() -> None:
    lengths = FORMS["a*b"], NO_FORMS["square"], FORMS["7"], FORMS["floor(a/3)"], FORMS["a*b"]
    assert formulas(*lengths) == {0: "a*b", 2: "7", 3: "floor(a/3)", 4: "a*b"}


def test_quotients_without_a_rest_are_not_rounded() -> None:
    points = [(6 * a, b, c) for a, b, c in POINTS]
    assert formulas(lambda a, b, c: a // 3, points=points) == {0: "a/3"}
    assert formulas(lambda a, b, c: 2 * a // 3 + 1, points=points) == {0: "2*a/3+1"}
    assert formulas(lambda a, b, c: a * b // 6, points=points) == {0: "a*b/6"}


def test_a_divisor_must_be_the_only_one() -> None:
    """Of 9, 30 and 31, the eighth and the ninth are the same, rounded down."""
    points = [(n, *others) for n, (_, *others) in zip((9, 9, 30, 30, 30, 31, 31), POINTS, strict=True)]
    assert formulas(lambda a, b, c: a // 8, points=points) == {}
    assert formulas(lambda a, b, c: a // 8, points=[*points, (72, 1, 1)]) == {0: "floor(a/8)"}


@pytest.mark.parametrize("count", [4, 5])
def test_a_few_points_say_nothing(count: int) -> None:
    assert formulas(FORMS["a"], points=POINTS[1 : 1 + count]) == ({0: "a"} if count == 5 else {})


def test_a_length_of_two_values_says_nothing() -> None:
    points = [(a, b, 2 + index % 2) for index, (a, b, _) in enumerate(POINTS)]
    assert formulas(FORMS["a"], points=points) == {}
    fixed = Constraint("fixed", ("c",), "c = 2", 2)
    assert formulas(FORMS["a"], lambda a, b, c: c, points=points, found=(fixed,)) == {0: "a"}


def test_a_length_of_three_values_is_enough() -> None:
    points = [(a, b, 2 + index % 3) for index, (a, b, _) in enumerate(POINTS)]
    assert formulas(lambda a, b, c: 3 * c + 1, points=points) == {0: "3*c+1"}


@pytest.mark.parametrize("unknown", ["...", "?,?,?", "?,?"])
def test_lengths_that_are_unknown_at_a_point_have_no_formula(unknown: str) -> None:
    class Unsure(Answers):
        def values(self, point: Mapping[Dim, int]) -> dict[Port, Value]:
            sure = super().values(point)
            shape = PartialShape(unknown) if [*point.values()] == [*POINTS[2]] else sure[PORT].shape
            return {PORT: Value(TensorType(ElementType.f32, shape)), Port(2, 0): sure[PORT]}

    trials = tuple(Trial(dict(zip(DIMS, point, strict=True)), True) for point in POINTS)
    named = symbolic_dims(
        cast(Probe, Unsure(FORMS["a"], FORMS["b+3"])), Constraints(symbols=DIMS, accepted=trials)
    )
    assert {place: str(formula) for place, formula in named.items()} == {
        (Port(2, 0), 0): "a",
        (Port(2, 0), 1): "b+3",
    }
