"""Comparisons of pairs of elements, and questions about single ones."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array
from ._define.bounds import Number, equal, less, truth
from ._define.operation import T_ANY, T_BOOLEAN, T_FLOAT, Input, Output, attr, op
from .elementwise import Binary, Unary


class Comparison(Binary):
    """A question about pairs of elements. With NaN, only NotEqual holds."""

    decisions = (
        "NaN is unequal to all numbers, itself included: only NotEqual holds, as in OpenVINO; the pages do not say",
    )

    a = Input(T_ANY, "left-hand side")
    b = Input(T_ANY, "right-hand side")
    output = Output(T_BOOLEAN.default, "whether it holds, for each pair of elements")


@op("Equal-1")
class Equal(Comparison):
    """Whether ``a`` and ``b`` are equal."""

    ufunc = np.equal

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(equal(x, y))


@op("NotEqual-1", spec="comparison/notequal-1")
class NotEqual(Comparison):
    """Whether ``a`` and ``b`` differ."""

    ufunc = np.not_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(equal(x, y))


@op("Greater-1")
class Greater(Comparison):
    """Whether ``a`` is larger than ``b``."""

    ufunc = np.greater

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(less(y, x))


@op("GreaterEqual-1")
class GreaterEqual(Comparison):
    """Whether ``a`` is at least ``b``."""

    ufunc = np.greater_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(less(x, y))


@op("Less-1")
class Less(Comparison):
    """Whether ``a`` is smaller than ``b``."""

    ufunc = np.less

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(less(x, y))


@op("LessEqual-1", spec="comparison/lessequal-1")
class LessEqual(Comparison):
    """Whether ``a`` is at most ``b``."""

    ufunc = np.less_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(less(y, x))


class UnaryPredicate(Unary):
    """A question about single numbers."""

    data = Input(T_FLOAT, "numbers to look at")
    output = Output(T_BOOLEAN.default, "whether it holds, for each of them")


@op("IsFinite-10", spec="comparison/isfinite-10")
class IsFinite(UnaryPredicate):
    """Whether ``data`` is neither infinite nor NaN."""

    ufunc = np.isfinite


@op("IsInf-10", spec="comparison/isinf-10")
class IsInf(UnaryPredicate):
    """Whether ``data`` is infinite: positive, negative or either."""

    detect_negative: bool = attr(True, doc="whether negative infinity counts")
    detect_positive: bool = attr(True, doc="whether positive infinity counts")

    def evaluate(self, data: Array) -> Array:
        result = np.zeros(data.shape, bool)
        if self.detect_negative:
            result |= data == -np.inf
        if self.detect_positive:
            result |= data == np.inf
        return result


@op("IsNaN-10", spec="comparison/isnan-10")
class IsNaN(UnaryPredicate):
    """Whether ``data`` is not a number."""

    ufunc = np.isnan
