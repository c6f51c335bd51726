"""Logical operations on booleans."""

from __future__ import annotations

import numpy as np

from ._define.bounds import UNDECIDED, Number, maximum, minimum
from ._define.operation import T_BOOLEAN, Input, Output, op
from .elementwise import Binary, Unary


class Logical(Binary):
    """Base of elementwise logic on two operands."""

    a = Input(T_BOOLEAN, "first operand")
    b = Input(T_BOOLEAN, "second operand")
    output = Output(T_BOOLEAN, "the result for each pair of elements")


@op("LogicalAnd-1")
class LogicalAnd(Logical):
    """Whether both ``a`` and ``b`` are true."""

    ufunc = np.logical_and

    def bounds(self, x: Number, y: Number) -> Number:
        return minimum(x, y)


@op("LogicalOr-1")
class LogicalOr(Logical):
    """Whether ``a`` or ``b`` is true, or both are."""

    ufunc = np.logical_or

    def bounds(self, x: Number, y: Number) -> Number:
        return maximum(x, y)


# OpenVINO writes this operation as opset2, and reads it as opset1, too.
@op("LogicalXor-1")
class LogicalXor(Logical):
    """Whether exactly one of ``a`` and ``b`` is true."""

    ufunc = np.logical_xor

    def bounds(self, x: Number, y: Number) -> Number:
        return UNDECIDED


@op("Xor-1", spec="logical/logical-xor-1", until=1)
class Xor(LogicalXor):
    """Whether exactly one of ``a`` and ``b`` is true; an older name of LogicalXor."""


@op("LogicalNot-1")
class LogicalNot(Unary):
    """Whether ``data`` is false."""

    data = Input(T_BOOLEAN, "booleans")
    output = Output(T_BOOLEAN, "the negated elements")

    ufunc = np.logical_not

    def bounds(self, x: Number) -> Number:
        return 1 - x
