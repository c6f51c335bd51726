"""Formulas of dynamic dims: large products and sums stay linear in the number of their parts."""

from __future__ import annotations

import math

import pytest
from fuzz.test_floods import lines_run

from ir_runtime.ir.formula import Count, Formula, product, total

N, M = Formula.symbol("n"), Formula.symbol("m")


@pytest.mark.parametrize(
    ("factors", "text", "expanded"),
    [
        ((3, N, 1, 5), "3·n·5", "15*n"),
        ((2, 3, N), "6·n", "6*n"),
        ((N + 1,), "n + 1", "n+1"),
        ((2, N + 1, M), "2·(n+1)·m", "2*m*n+2*m"),
        ((M, N + 1, N - 1), "m·(n+1)·(n-1)", "m*n²-m"),
        ((N, 0, M), "0", "0"),
        ((4, 5), "20", "20"),
    ],
)
def test_products_show_their_factors(factors: tuple[Count, ...], text: str, expanded: str) -> None:
    found = product(factors)
    assert (repr(found), str(found)) == (text, expanded)


@pytest.mark.parametrize(
    ("terms", "text"),
    [
        ((1, 2), "3"),
        ((0, N), "n"),
        ((1, 2, N, M), "n+3+m"),
        ((N, -1 * N), "0"),
        ((product([2, N, M]), 0), "2*m*n"),
    ],
)
def test_sums_show_their_terms_in_order(terms: tuple[Count, ...], text: str) -> None:
    assert str(total(terms)) == text


def test_products_of_many_sums_are_not_expanded() -> None:
    names = [f"n{i}" for i in range(60)]
    found = product([Formula.symbol(name) + 1 for name in names])
    assert isinstance(found, Formula)
    assert len(found.terms) == 1
    assert len(str(found)) < 4000
    assert found.symbols == set(names)
    assert found.at({name: i for i, name in enumerate(names)}) == math.factorial(60)


def test_sums_of_many_terms_take_work_in_proportion() -> None:
    def work(count: int) -> None:
        total(Formula.symbol(f"n{i}") for i in range(count))

    few, many = (lines_run(lambda count=count: work(count)) for count in (100, 400))  # type: ignore[misc]
    assert many < 6 * few
