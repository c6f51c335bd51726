"""Dimensions and intervals: arithmetic is sound, comparisons have OpenVINO's semantics."""

from __future__ import annotations

import operator
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime.ir.dimension import Dimension, Interval, Symbol

bounds = st.none() | st.integers(-20, 20)


@st.composite
def intervals(draw: st.DrawFn) -> tuple[Interval, int]:
    """Draw an interval, and a number in it."""
    number = draw(st.integers(-20, 20))
    low = draw(st.none() | st.integers(-25, number))
    high = draw(st.none() | st.integers(number, 25))
    return Interval(low, high), number


@st.composite
def lengths(draw: st.DrawFn) -> tuple[Dimension, int]:
    """Draw a dimension, and a length that it allows."""
    number = draw(st.integers(0, 20))
    high = draw(st.none() | st.integers(number, 25))
    return Dimension.between(draw(st.integers(0, number)), high), number


def holds(interval: Interval | int, number: int) -> bool:
    if not isinstance(interval, Interval):
        return interval == number
    return (interval.min is None or interval.min <= number) and (
        interval.max is None or number <= interval.max
    )


@pytest.mark.parametrize("apply", [operator.add, operator.sub, operator.mul], ids=["+", "-", "*"])
@given(a=intervals(), b=intervals() | lengths())
def test_arithmetic_contains_the_truth(
    apply: Callable[..., Interval], a: tuple[Interval, int], b: tuple[Interval, int]
) -> None:
    truth = apply(a[1], b[1])
    assert holds(apply(a[0], b[0]), truth)
    assert holds(apply(a[0], b[1]), truth)
    assert holds(apply(a[1], b[0]), truth)


@given(a=intervals(), divisor=st.integers(1, 7))
def test_division_contains_the_truth(a: tuple[Interval, int], divisor: int) -> None:
    assert holds(a[0] // divisor, a[1] // divisor)
    assert holds(-a[0], -a[1])


@pytest.mark.parametrize("divisor", [0, -1, Dimension(2), 1.5])
def test_division_by_what_is_not_a_positive_number_is_unknown(divisor: object) -> None:
    with pytest.raises(TypeError):
        Dimension(4, 8) // divisor  # type: ignore[operator]


@given(a=lengths(), b=lengths())
def test_merge_and_join(a: tuple[Dimension, int], b: tuple[Dimension, int]) -> None:
    merged, joined = a[0].merge(b[0]), a[0].join(b[0])
    assert joined.contains(a[1])
    assert joined.contains(b[1])
    assert (merged is None) is not a[0].compatible(b[0])
    for number in range(30):
        both = a[0].contains(number) and b[0].contains(number)
        assert both is (merged is not None and merged.contains(number))


@given(a=lengths(), b=lengths())
def test_refinement(a: tuple[Dimension, int], b: tuple[Dimension, int]) -> None:
    refines = all(b[0].contains(n) for n in range(60) if a[0].contains(n))
    assert a[0].refines(b[0]) is refines
    assert b[0].relaxes(a[0]) is refines


def test_what_cannot_be_negative_is_a_dimension() -> None:
    assert isinstance(Dimension(2, 8) + 1, Dimension)
    assert isinstance(Dimension(2, 8) * 2, Dimension)
    assert not isinstance(Dimension(2, 8) - 5, Dimension)
    assert isinstance(Dimension(2, 8) - 2, Dimension)


def test_equal_symbols_cancel() -> None:
    batch = Symbol("batch")
    one, same, other = (Dimension.between(1, 9, s) for s in (batch, batch, Symbol("batch")))
    assert one - same == 0
    assert (one - other).is_dynamic
    assert one != other
    assert one == same
    assert one + 0 is one
    assert one * 1 is one


@pytest.mark.parametrize(
    ("given", "low", "high"),
    [(3, 3, 3), (0, 0, 0), (-1, 0, None), ("?", 0, None), ("-1", 0, None), ("1..8", 1, 8), ("..8", 0, 8),
     ("2..", 2, None), (" 1 .. 8 ", 1, 8), ("7", 7, 7), ((1, 8), 1, 8), ([2, -1], 2, None),
     (np.int64(4), 4, 4), (Interval(-3, 5), 0, 5), (Interval(None, None), 0, None), (Dimension(2, 3), 2, 3)],
)  # fmt: skip
def test_spellings(given: object, low: int, high: int | None) -> None:
    dimension = Dimension.of(given)  # type: ignore[arg-type]
    assert (dimension.min, dimension.max) == (low, high)


@pytest.mark.parametrize("given", ["", "x", "1..x", "5..2", "-2", "1.5", "-3..4", (5, 2)])
def test_what_is_no_length(given: object) -> None:
    with pytest.raises(ValueError):
        Dimension.of(given)  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [1.5, 2.0, None, object()])
def test_lengths_are_whole_numbers(given: object) -> None:
    with pytest.raises(TypeError):
        Dimension.of(given)  # type: ignore[arg-type]


def test_a_dimension_of_one_length_is_a_number() -> None:
    seven = Dimension(7)
    assert seven == 7
    assert hash(seven) == hash(7)
    assert list(range(10))[seven] == 7
    assert np.zeros(seven).shape == (7,)  # type: ignore[call-overload]
    assert seven.get_length() == 7


def test_a_length_that_is_not_known_says_so() -> None:
    with pytest.raises(ir.InputError, match=r"the length is not known, only that it is 1\.\.8"):
        Dimension(1, 8).get_length()
    with pytest.raises(TypeError):
        range(Dimension())  # type: ignore[call-overload]
