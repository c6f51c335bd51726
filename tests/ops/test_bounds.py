"""Interval arithmetic contains the arithmetic of every number within the intervals."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest

from ir_runtime.ir.dimension import Dimension, Interval, Symbol, span
from ir_runtime.ir.element import ElementType
from ir_runtime.ops._define.bounds import (
    Number,
    absolute,
    choose,
    ends,
    equal,
    fit,
    less,
    maximum,
    minimum,
    power,
    quotient,
    remainder,
    truth,
)

FAR = 9
CLOSED = [(low, high) for low in range(-5, 6) for high in range(low, 6)]
OPEN = [(None, high) for high in (-3, 0, 4)] + [(low, None) for low in (-4, 0, 1, 3)] + [(None, None)]
ENDS = [e for e in CLOSED if e[1] - e[0] in (0, 1, 3, 7)] + OPEN


def numbers(low: int | None, high: int | None) -> range:
    """Return some numbers within the bounds."""
    return range(-FAR if low is None else low, (FAR if high is None else high) + 1)


def contains(bounds: Number, n: int) -> bool:
    low, high = ends(bounds)
    return (low is None or low <= n) and (high is None or n <= high)


def floor_mod(x: int, y: int) -> int:
    return x - y * math.floor(x / y)


BINARY: list[tuple[Callable[..., Number], Callable[[int, int], int], bool]] = [
    (maximum, max, False),
    (minimum, min, False),
    (lambda x, y: quotient(x, y), lambda x, y: x // y, True),
    (lambda x, y: quotient(x, y, floor=False), lambda x, y: math.trunc(x / y), True),
    (lambda x, y: remainder(x, y), floor_mod, True),
    (lambda x, y: remainder(x, y, floor=False), lambda x, y: int(math.fmod(x, y)), True),
    (lambda x, y: truth(equal(x, y)), lambda x, y: x == y, False),
    (lambda x, y: truth(less(x, y)), lambda x, y: x < y, False),
    (lambda x, y: choose(1, x, y), lambda x, y: x, False),
    (lambda x, y: choose(Dimension(0, 1), x, y), lambda x, y: y, False),
]
NAMES = [
    "maximum",
    "minimum",
    "floor-quotient",
    "quotient",
    "floor-remainder",
    "remainder",
    "equal",
    "less",
    "choose",
    "choose-either",
]


@pytest.mark.parametrize(("bounded", "exact", "divides"), BINARY, ids=NAMES)
def test_pairs(bounded: Callable[..., Number], exact: Callable[[int, int], int], divides: bool) -> None:
    for first, second in itertools.product(ENDS, ENDS):
        found = bounded(span(*first), span(*second))
        for x, y in itertools.product(numbers(*first), numbers(*second)):
            if not divides or y:
                assert contains(found, exact(x, y)), (
                    f"{first}, {second}: {found} excludes that of {x} and {y}"
                )


@pytest.mark.parametrize(("bounded", "exact", "divides"), BINARY[:8], ids=NAMES[:8])
def test_single_numbers_give_a_single_number(
    bounded: Callable[..., Number], exact: Callable[[int, int], int], divides: bool
) -> None:
    for x, y in itertools.product(range(-7, 8), range(-7, 8)):
        if not divides or y:
            assert bounded(Interval(x, x), y) == exact(x, y)


def test_powers_and_sizes() -> None:
    for bounds in ENDS:
        for n in numbers(*bounds):
            assert contains(absolute(span(*bounds)), abs(n))
            for low, high in ((0, 0), (1, 1), (2, 2), (3, 3), (0, 3), (1, 2), (2, 40)):
                found = power(span(*bounds), span(low, high))
                assert all(contains(found, n**exponent) for exponent in range(low, high + 1))


def test_what_is_the_same_unknown_number() -> None:
    n = Dimension.between(1, None, Symbol("n"))
    assert quotient(n, n) == 1
    assert remainder(n, n) == 0
    assert equal(n, n) is True
    assert less(n, n) is False
    assert choose(Dimension(0, 1), n, n) is n
    assert maximum(n, 1) is n
    assert minimum(n, n) is n
    assert quotient(n, 1) is n


@pytest.mark.parametrize(
    ("number", "element", "expected"),
    [
        (300, "u8", 44),
        (-1, "u8", 255),
        (200, "i8", -56),
        (2**63, "i64", -(2**63)),
        (Dimension(3, 9), "i8", Dimension(3, 9)),
        (Dimension(3, 200), "i8", Interval(-128, 127)),
        (Interval(-1, 4), "u64", Dimension()),
        (Dimension(), "i8", Interval(-128, 127)),
        (Dimension(), "u8", Dimension(0, 255)),
        (Dimension(), "i32", Dimension()),
        (Dimension(0, 1), "boolean", Dimension(0, 1)),
    ],
)
def test_numbers_in_a_type(number: Number, element: str, expected: Number) -> None:
    assert fit(number, ElementType.parse(element)) == expected
