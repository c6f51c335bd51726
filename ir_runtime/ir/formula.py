"""Counts that depend on dynamic lengths: polynomials in symbolic dimensions, such as ``2·seq·768·768``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import NamedTuple, TypeAlias

__all__ = ["Count", "Formula", "ceil", "floor", "log2", "maximum", "product", "total"]

Count: TypeAlias = "int | Formula"
"""An integer, or a formula where it depends on dynamic lengths."""

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "floor": lambda dividend, divisor: math.floor(Fraction(dividend, divisor)),
    "ceil": lambda dividend, divisor: math.ceil(Fraction(dividend, divisor)),
    "log2": lambda n: max(math.ceil(n) - 1, 1).bit_length(),
    "max": lambda *numbers: math.ceil(max(numbers)),
    "product": lambda *numbers: math.prod(numbers),
}
_ROUNDED = ("floor", "ceil")

# Products of sums that would have more terms stay unexpanded: each factor may double the number of terms.
_MOST_TERMS = 256


class _Call(NamedTuple):
    """A function applied to formulas; polynomials treat it as an unknown."""

    function: str
    arguments: tuple[Formula, ...]

    def __str__(self) -> str:
        if self.function in _ROUNDED and len(self.arguments) == 2:
            dividend, divisor = self.arguments
            return f"{self.function}({_factor_text(dividend)}/{divisor})"
        if self.function == "product":
            return "*".join(map(_factor_text, self.arguments))
        return f"{self.function}({', '.join(map(str, self.arguments))})"

    def at(self, lengths: Mapping[str, int]) -> int:
        """Return the value of the function for the given lengths."""
        return _FUNCTIONS[self.function](*(argument.exact(lengths) for argument in self.arguments))


_Unknown: TypeAlias = "str | _Call"
_Monomial: TypeAlias = tuple[_Unknown, ...]


class Formula:
    """A polynomial in symbolic dimensions, with rational coefficients.

    A product remembers its factors, and is printed as their product.

    >>> seq = Formula.symbol("seq")
    >>> 2 * seq * 768 * 768, seq * seq + 3 * seq - 1, floor(seq + 1, 2)
    (2·seq·768·768, seq² + 3·seq - 1, floor((seq+1)/2))
    >>> (2 * seq * 768).at({"seq": 4})
    6144
    """

    __slots__ = ("factors", "terms")

    def __init__(self, terms: Mapping[_Monomial, Fraction], factors: tuple[int | Formula, ...] = ()) -> None:
        self.terms: Mapping[_Monomial, Fraction] = {
            monomial: scale for monomial, scale in terms.items() if scale
        }
        self.factors: tuple[int | Formula, ...] = factors

    @classmethod
    def symbol(cls, name: str) -> Formula:
        """Return the formula of a single symbolic dimension."""
        return cls({(name,): Fraction(1)})

    @classmethod
    def _of(cls, number: int | Fraction | Formula) -> Formula:
        return number if isinstance(number, Formula) else cls({(): Fraction(number)})

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the symbolic dimensions that occur in the formula."""
        names: set[str] = set()
        for unknown in (unknown for monomial in self.terms for unknown in monomial):
            inner = unknown.arguments if isinstance(unknown, _Call) else ()
            names |= {unknown} if isinstance(unknown, str) else frozenset().union(*(f.symbols for f in inner))
        return frozenset(names)

    def at(self, lengths: Mapping[str, int]) -> int:
        """Evaluate the formula for the given lengths, rounded down.

        Raises:
            KeyError: if the length of a symbolic dimension is missing.
        """
        return math.floor(self.exact(lengths))

    def exact(self, lengths: Mapping[str, int]) -> Fraction:
        """Evaluate the formula for the given lengths, without rounding.

        Raises:
            KeyError: if the length of a symbolic dimension is missing.
        """
        return sum(
            (
                scale * math.prod(_value(u, lengths) for u in monomial)
                for monomial, scale in self.terms.items()
            ),
            Fraction(0),
        )

    def given(self, lengths: Mapping[str, int]) -> Count:
        """Substitute lengths for symbols; return an integer, rounded down, if no symbol remains.

        >>> formula = Formula.symbol("batch") * Formula.symbol("seq") + floor(Formula.symbol("seq"), 2)
        >>> formula.given({"seq": 5}), formula.given({"seq": 5, "batch": 2})
        (5·batch + 2, 12)
        """
        if self.symbols <= lengths.keys():
            return self.at(lengths)
        terms: dict[_Monomial, Fraction] = {}
        for monomial, scale in self.terms.items():
            values = [_substitute(unknown, lengths) for unknown in monomial]
            unknowns = tuple(value for value in values if not isinstance(value, int))
            coefficient = scale * math.prod(value for value in values if isinstance(value, int))
            terms[unknowns] = terms.get(unknowns, Fraction(0)) + coefficient
        return Formula(terms)

    def __add__(self, other: int | Fraction | Formula) -> Formula:
        if other == 0:
            return self
        terms = dict(self.terms)
        for monomial, scale in Formula._of(other).terms.items():
            terms[monomial] = terms.get(monomial, Fraction(0)) + scale
        return Formula(terms)

    def __sub__(self, other: int | Fraction | Formula) -> Formula:
        return self + Formula._of(other).scaled(Fraction(-1))

    def __mul__(self, other: Count) -> Count:
        return self._times(other, (*_factors(self), *_factors(other))) if other != 0 else 0

    def __rmul__(self, other: int) -> Count:
        return self._times(other, (other, *_factors(self)) if other != 1 else self.factors) if other else 0

    def scaled(self, scale: Fraction) -> Formula:
        """Return the formula multiplied by a rational number."""
        return self._times(scale, ())

    def _times(self, other: int | Fraction | Formula, factors: tuple[int | Formula, ...]) -> Formula:
        terms: dict[_Monomial, Fraction] = {}
        right = Formula._of(other)
        if _stays_unexpanded(self, right):
            arguments = (*_factors_unless_expanded(self), *_factors_unless_expanded(right))
            return Formula({(_Call("product", arguments),): Fraction(1)}, factors)
        for mine, scale in self.terms.items():
            for theirs, times in right.terms.items():
                monomial = tuple(sorted((*mine, *theirs), key=str))
                terms[monomial] = terms.get(monomial, Fraction(0)) + scale * times
        return Formula(terms, factors)

    __radd__ = __add__

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, int | Fraction | Formula):
            return NotImplemented
        return self.terms == Formula._of(other).terms

    def __hash__(self) -> int:
        return hash(frozenset(self.terms.items()))

    def __str__(self) -> str:
        """Format for shapes: ``2*height/3+1``."""
        texts = [_term(monomial, scale, "*") for monomial, scale in self.terms.items()]
        return "+".join(texts).replace("+-", "-") or "0"

    def text(self) -> str:
        """Format for costs: a product by its factors, or else a sum with the highest powers first."""
        if self.factors:
            return "·".join(map(_factor_text, self.factors))
        terms = sorted(self.terms.items(), key=lambda item: (-len(item[0]), tuple(map(str, item[0]))))
        return " + ".join(_term(m, scale, "·") for m, scale in terms).replace("+ -", "- ") or "0"

    __repr__ = text


def _stays_unexpanded(left: Formula, right: Formula) -> bool:
    """Return whether the product has too many terms to expand, or an operand contains an unexpanded product."""
    fewer, more = sorted((len(left.terms), len(right.terms)))
    if more < 2:
        return False
    return (fewer > 1 and fewer * more > _MOST_TERMS) or any(
        isinstance(unknown, _Call) and unknown.function == "product"
        for formula in (left, right)
        for monomial in formula.terms
        for unknown in monomial
    )


def _factors_unless_expanded(formula: Formula) -> tuple[Formula, ...]:
    """Return the factors of an unexpanded product, or the formula itself as the only factor."""
    if len(formula.terms) == 1:
        monomial, scale = _only(formula)
        if scale == 1 and len(monomial) == 1 and isinstance(call := monomial[0], _Call):
            return call.arguments if call.function == "product" else (formula,)
    return (formula,)


def _value(unknown: _Unknown, lengths: Mapping[str, int]) -> int:
    return lengths[unknown] if isinstance(unknown, str) else unknown.at(lengths)


def _substitute(unknown: _Unknown, lengths: Mapping[str, int]) -> int | _Unknown:
    """Substitute lengths into an unknown; return an integer if no symbol remains."""
    if isinstance(unknown, str):
        return lengths.get(unknown, unknown)
    if all(argument.symbols <= lengths.keys() for argument in unknown.arguments):
        return unknown.at(lengths)
    return _Call(unknown.function, tuple(Formula._of(f.given(lengths)) for f in unknown.arguments))


def _factors(number: Count) -> tuple[Count, ...]:
    if isinstance(number, Formula):
        return number.factors or (number,)
    return () if number == 1 else (number,)


def _factor_text(factor: int | Formula) -> str:
    text = str(factor)
    simple = isinstance(factor, int) or (len(factor.terms) == 1 and "/" not in _term(*_only(factor), "*"))
    return text if simple else f"({text})"


def _only(formula: Formula) -> tuple[_Monomial, Fraction]:
    return next(iter(formula.terms.items()))


def _term(monomial: _Monomial, scale: Fraction, times: str) -> str:
    powers = {unknown: monomial.count(unknown) for unknown in monomial}
    parts = [f"{u}{str(n).translate(_SUPERSCRIPTS) if n > 1 else ''}" for u, n in powers.items()]
    parts = parts if parts and scale.numerator in (1, -1) else [str(abs(scale.numerator)), *parts]
    sign = "-" if scale < 0 else ""
    return f"{sign}{times.join(parts)}" + ("" if scale.denominator == 1 else f"/{scale.denominator}")


def _call(function: str, *numbers: Count) -> Count:
    if all(isinstance(number, int) for number in numbers):
        return _FUNCTIONS[function](*numbers)
    return Formula({(_Call(function, tuple(map(Formula._of, numbers))),): Fraction(1)})


def floor(dividend: Count, divisor: int) -> Count:
    """Return ``dividend / divisor``, rounded down."""
    return _call("floor", dividend, divisor)


def ceil(dividend: Count, divisor: int) -> Count:
    """Return ``dividend / divisor``, rounded up."""
    return _call("ceil", dividend, divisor)


def log2(number: Count) -> Count:
    """Return the binary logarithm, rounded up to an integer of at least 1.

    >>> log2(8), log2(9), log2(Formula.symbol("n"))
    (3, 4, log2(n))
    """
    return _call("log2", number)


def maximum(numbers: Iterable[Count]) -> Count:
    """Return the maximum of the counts, of which there is at least one.

    >>> maximum([2, 5]), maximum([Formula.symbol("n"), 5])
    (5, max(n, 5))
    """
    distinct = tuple(dict.fromkeys(numbers))
    return distinct[0] if len(distinct) == 1 else _call("max", *distinct)


def product(numbers: Iterable[Count]) -> Count:
    """Return the product of the counts.

    >>> product([3, Formula.symbol("n"), 1, 5])
    3·n·5
    """
    every = list(numbers)
    if any(number == 0 for number in every):
        return 0
    before = list(itertools.takewhile(lambda number: isinstance(number, int), every))
    whole, rest = math.prod(before), every[len(before) :]
    if not rest:
        return whole
    head = Formula._of(rest[0])
    factors = [whole, *_factors(head)] if whole != 1 else [*head.factors]
    for number in rest[1:]:
        factors = [*(factors or [head]), *_factors(number)]
    simple: list[_Unknown] = []
    scale, sums = Fraction(1), []
    for number in map(Formula._of, every):
        if len(number.terms) > 1:
            sums.append(number)
            continue
        monomial, times = _only(number)
        simple += monomial
        scale *= times
    result = Formula({(): Fraction(1)})
    for factor in sums:
        result = result._times(factor, ())
    result = Formula({tuple(sorted(simple, key=str)): scale})._times(result, ())
    return Formula(result.terms, tuple(factors))


def total(numbers: Iterable[Count]) -> Count:
    """Return the sum of the counts, an integer if no term depends on a dynamic length."""
    nonzero = [number for number in numbers if number != 0]
    before = list(itertools.takewhile(lambda number: isinstance(number, int), nonzero))
    rest = nonzero[len(before) :]
    if not rest:
        return sum(before)
    if len(nonzero) == 1:
        return nonzero[0]
    terms: dict[_Monomial, Fraction] = {}
    for number in (rest[0], *before, *rest[1:]):  # integers are written after the first symbol
        for monomial, scale in Formula._of(number).terms.items():
            terms[monomial] = terms.get(monomial, Fraction(0)) + scale
    return Formula(terms)
