"""Numbers of the kernel language: their types, conversions and operations.

A number is either a compile-time constant, a Python number or an `np.float32`, or an LLVM value of type i1,
i32, i64, f32 or f64. Operands of different types are promoted as in NumPy: an f32 and an i64 to f64.

Integers wrap around. Quotients are rounded down. Division by 0 yields 0, as does a quotient that overflows
i64.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from ..codegen import ir
from ..codegen.ir import F32, F64, I1, I32, I64

__all__ = ["Number", "Operations", "is_number"]

Number: TypeAlias = "ir.Value | bool | int | float | np.float32"

# From narrow to wide, of integers and of floating-point numbers.
_INTEGERS, _REALS = (I1, I32, I64), (F32, F64)

_COMPARED: dict[type[ast.cmpop], tuple[str, Callable[[Any, Any], bool]]] = {
    ast.Lt: ("<", operator.lt), ast.LtE: ("<=", operator.le), ast.Gt: (">", operator.gt),
    ast.GtE: (">=", operator.ge), ast.Eq: ("==", operator.eq), ast.NotEq: ("!=", operator.ne),
}  # fmt: skip
_KNOWN: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.LShift: operator.lshift,
    ast.RShift: operator.rshift, ast.BitAnd: operator.and_, ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip
_OF_INTEGERS: dict[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.LShift: "shl", ast.RShift: "ashr", ast.BitAnd: "and_",
    ast.BitOr: "or_", ast.BitXor: "xor",
}  # fmt: skip
_OF_REALS: dict[type[ast.operator], str] = {
    ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv",
}  # fmt: skip


def is_number(x: object) -> bool:
    """Return whether an object is a number of the kernel language."""
    return isinstance(x, (ir.Value, bool, int, float, np.float32))


def _kind(x: Number) -> ir.Type:
    """Return the type of a number in a kernel."""
    if isinstance(x, ir.Value):
        kind: ir.Type = x.type
        return kind
    if isinstance(x, bool):
        return I1
    if isinstance(x, int):
        return I64
    return F32 if isinstance(x, np.float32) else F64


def _common(a: ir.Type, b: ir.Type) -> ir.Type:
    """Return the type that two types are promoted to."""
    if a == b:
        return a
    for kinds in (_INTEGERS, _REALS):
        if a in kinds and b in kinds:
            return max(a, b, key=kinds.index)
    return F64


class Operations:
    """Operations on numbers: folded for constants, otherwise written by a builder.

    Raises:
        TypeError: in all methods, if there is no such operation or conversion.
    """

    def __init__(self, builder: ir.Builder) -> None:
        self._builder = builder

    def value(self, x: Number, kind: ir.Type | None = None) -> ir.Value:
        """Return a number as an LLVM value, converted to ``kind`` unless that is ``None``."""
        kind = kind or _kind(x)
        if not isinstance(x, ir.Value):
            return _constant(kind, x)
        if x.type == kind:
            return x
        convert = self._conversion(x.type, kind)
        if convert is None:
            raise TypeError(f"a number of type {x.type} is no {kind}")
        return convert(x, kind)

    def _conversion(self, a: ir.Type, b: ir.Type) -> Callable[[ir.Value, ir.Type], ir.Value] | None:
        builder = self._builder
        if a in _INTEGERS and b in _INTEGERS and _INTEGERS.index(a) < _INTEGERS.index(b):
            return builder.zext if a == I1 else builder.sext
        if a in (I32, I64) and b in _REALS:
            return builder.sitofp
        if a in _REALS and b in _REALS:
            return builder.fpext if a == F32 else builder.fptrunc
        return None

    def common(self, a: Number, b: Number) -> ir.Type:
        """Return the type that two numbers are promoted to."""
        return _common(_kind(a), _kind(b))

    def alike(self, a: Number, b: Number) -> tuple[ir.Value, ir.Value]:
        """Return two numbers converted to a common type."""
        kind = self.common(a, b)
        return self.value(a, kind), self.value(b, kind)

    def truth(self, x: Number) -> ir.Value:
        """Return whether a number is not 0, as an i1."""
        value = self.value(x)
        if value.type == I1:
            return value
        if value.type not in _INTEGERS:
            raise TypeError(f"a number of type {value.type} is no condition")
        return self._builder.icmp_signed("!=", value, ir.Constant(value.type, 0))

    def binary(self, sign: ast.operator, a: Number, b: Number) -> Number:
        """Compute a binary operation."""
        if type(sign) not in _KNOWN:
            raise TypeError(f"{type(sign).__name__} is not supported")
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            known: Number = _KNOWN[type(sign)](a, b)
            return known
        a, b = self.alike(a, b)
        if a.type == I1 and not isinstance(sign, (ast.BitAnd, ast.BitOr, ast.BitXor)):
            a, b = self.value(a, I64), self.value(b, I64)
        if a.type in _REALS:
            name = _OF_REALS.get(type(sign))
        elif isinstance(sign, ast.FloorDiv):
            return self._quotient(a, b)
        elif isinstance(sign, ast.Mod):
            return self._remainder(a, b)
        else:
            name = _OF_INTEGERS.get(type(sign))
        if name is None:
            raise TypeError(f"{type(sign).__name__} of {a.type} is not supported")
        found: ir.Value = getattr(self._builder, name)(a, b)
        return found

    def compare(self, sign: ast.cmpop, a: Number, b: Number) -> Number:
        """Compare two numbers; NaN is unequal to everything."""
        if type(sign) not in _COMPARED:
            raise TypeError(f"{type(sign).__name__} is not supported")
        text, known = _COMPARED[type(sign)]
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            return known(a, b)
        a, b = self.alike(a, b)
        if a.type in _INTEGERS:
            return self._builder.icmp_signed(text, a, b)
        if isinstance(sign, ast.NotEq):
            return self._builder.fcmp_unordered(text, a, b)
        return self._builder.fcmp_ordered(text, a, b)

    def extreme(self, sign: ast.cmpop, a: Number, b: Number) -> Number:
        """Return the second number if it is less (or greater) than the first, else the first: Python's ``min`` and ``max``."""
        if not isinstance(a, ir.Value) and not isinstance(b, ir.Value):
            return b if self.compare(sign, b, a) else a
        a, b = self.alike(a, b)
        return self._builder.select(self.value(self.compare(sign, b, a)), b, a)

    def negative(self, x: Number) -> Number:
        """Negate a number."""
        if not isinstance(x, ir.Value):
            return -x
        if x.type in _REALS:
            return self._builder.fneg(x)
        value = self.value(x, I64) if x.type == I1 else x
        return self._builder.sub(ir.Constant(value.type, 0), value)

    def _quotient(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Divide integers, rounded down."""
        builder, zero = self._builder, ir.Constant(a.type, 0)
        if power := _power_of_two(b):
            return builder.ashr(a, ir.Constant(a.type, power.bit_length() - 1))
        impossible, b = self._possible(a, b)
        quotient, rest = builder.sdiv(a, b), builder.srem(a, b)
        rounded = builder.sub(quotient, builder.zext(self._is_above(rest, b), a.type))
        return rounded if impossible is None else builder.select(impossible, zero, rounded)

    def _remainder(self, a: ir.Value, b: ir.Value) -> ir.Value:
        """Return the remainder of a division rounded down."""
        builder, zero = self._builder, ir.Constant(a.type, 0)
        if power := _power_of_two(b):
            return builder.and_(a, ir.Constant(a.type, power - 1))
        _, b = self._possible(a, b)
        rest = builder.srem(a, b)
        return builder.add(rest, builder.select(self._is_above(rest, b), b, zero))

    def _possible(self, a: ir.Value, b: ir.Value) -> tuple[ir.Value | None, ir.Value]:
        """Return whether the quotient is undefined (``None`` if it never is), and a divisor that is safe to use."""
        if isinstance(b, ir.Constant) and b.constant not in (0, -1):
            return None, b
        builder, kind = self._builder, a.type
        least = ir.Constant(kind, -(1 << (kind.width - 1)))
        overflows = builder.and_(
            builder.icmp_signed("==", a, least), builder.icmp_signed("==", b, ir.Constant(kind, -1))
        )
        impossible = builder.or_(builder.icmp_signed("==", b, ir.Constant(kind, 0)), overflows)
        return impossible, builder.select(impossible, ir.Constant(kind, 1), b)

    def _is_above(self, rest: ir.Value, b: ir.Value) -> ir.Value:
        """Return whether a quotient rounded towards zero is greater than the exact one."""
        builder, zero = self._builder, ir.Constant(rest.type, 0)
        differs = builder.icmp_signed("<", builder.xor(rest, b), zero)
        return builder.and_(builder.icmp_signed("!=", rest, zero), differs)


def _constant(kind: ir.Type, x: Number) -> ir.Constant:
    if isinstance(kind, ir.IntType):
        if not isinstance(x, (bool, int)):
            raise TypeError(f"{x!r} is no integer")
        if x not in (range(2) if kind == I1 else range(-(1 << (kind.width - 1)), 1 << (kind.width - 1))):
            raise TypeError(f"{x!r} does not fit {kind}")
    return ir.Constant(kind, x)


def _power_of_two(divisor: ir.Value) -> int:
    """Return the divisor if it is a constant power of two, else 0."""
    known = divisor.constant if isinstance(divisor, ir.Constant) else 0
    return known if known > 0 and known.bit_count() == 1 else 0
