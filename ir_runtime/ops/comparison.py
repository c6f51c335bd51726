"""Elementwise comparisons, and tests for NaN and infinity."""

from __future__ import annotations

import numpy as np

from ..ir.tensor import Array
from ._define.bounds import Number, equal, less, truth
from ._define.operation import T_ANY, T_BOOLEAN, T_FLOAT, Input, Output, attr, op
from .elementwise import Binary, Unary


class Comparison(Binary):
    """Base of elementwise comparisons. With NaN, only NotEqual is true."""

    decisions = (
        "NaN is unequal to all numbers, itself included: only NotEqual holds, as in OpenVINO; the pages do not say",
    )

    a = Input(T_ANY, "left-hand side")
    b = Input(T_ANY, "right-hand side")
    output = Output(T_BOOLEAN.default, "the result for each pair of elements")


@op("Equal-1")
class Equal(Comparison):
    """Whether elements of ``a`` and ``b`` are equal."""

    ufunc = np.equal

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(equal(x, y))


@op("NotEqual-1", spec="comparison/notequal-1")
class NotEqual(Comparison):
    """Whether elements of ``a`` and ``b`` differ."""

    ufunc = np.not_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(equal(x, y))


@op("Greater-1")
class Greater(Comparison):
    """Whether elements of ``a`` are greater than those of ``b``."""

    ufunc = np.greater

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(less(y, x))


@op("GreaterEqual-1")
class GreaterEqual(Comparison):
    """Whether elements of ``a`` are greater than or equal to those of ``b``."""

    ufunc = np.greater_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(less(x, y))


@op("Less-1")
class Less(Comparison):
    """Whether elements of ``a`` are less than those of ``b``."""

    ufunc = np.less

    def bounds(self, x: Number, y: Number) -> Number:
        return truth(less(x, y))


@op("LessEqual-1", spec="comparison/lessequal-1")
class LessEqual(Comparison):
    """Whether elements of ``a`` are less than or equal to those of ``b``."""

    ufunc = np.less_equal

    def bounds(self, x: Number, y: Number) -> Number:
        return 1 - truth(less(y, x))


class UnaryPredicate(Unary):
    """Base of tests on single elements."""

    data = Input(T_FLOAT, "elements to test")
    output = Output(T_BOOLEAN.default, "the result for each element")


@op("IsFinite-10", spec="comparison/isfinite-10")
class IsFinite(UnaryPredicate):
    """Whether elements of ``data`` are finite: neither infinite nor NaN."""

    ufunc = np.isfinite


@op("IsInf-10", spec="comparison/isinf-10")
class IsInf(UnaryPredicate):
    """Whether elements of ``data`` are infinite."""

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
    """Whether elements of ``data`` are NaN."""

    ufunc = np.isnan
