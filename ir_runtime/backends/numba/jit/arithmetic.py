"""Operations on numbers for which numba emits branches and slots, which LLVM takes long to remove; the results are the same.

Quotients are rounded down; where numba would give 0 instead of an error, so do these: for a divisor of 0, and for the quotient
that no i64 can hold.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence

from llvmlite import ir
from numba.core import datamodel, errors, imputils, types, typing

__all__ = ["ARITHMETIC", "EXTREMES"]

ARITHMETIC = imputils.Registry("arithmetic of kernels")
"""How these operations are lowered."""

_Lowering = Callable[[object, ir.IRBuilder, typing.templates.Signature, Sequence[ir.Value]], ir.Value]
_I64 = ir.IntType(64)
_ZERO, _ONE, _LEAST = ir.Constant(_I64, 0), ir.Constant(_I64, 1), ir.Constant(_I64, -(2**63))


class _Extreme(types.Callable, types.Dummy):
    """The type of ``min`` or ``max`` of two numbers."""

    def get_call_type(
        self, context: typing.Context, args: Sequence[types.Type], kws: object
    ) -> typing.templates.Signature:
        """Return the signature of a call."""
        kind = context.unify_types(*map(types.unliteral, args)) if len(args) == 2 and not kws else None
        if not isinstance(kind, types.Number):
            raise errors.TypingError(f"{self.name} expected two numbers, got {args}")
        return typing.signature(kind, kind, kind)

    def get_call_signatures(self) -> tuple[list[typing.templates.Signature], bool]:
        """Return no signatures, for numba's messages."""
        return [], True

    def get_impl_key(self, sig: typing.templates.Signature) -> str:
        """Return the key under which the call is lowered."""
        return str(self.name)


datamodel.register_default(_Extreme)(datamodel.models.OpaqueModel)
EXTREMES = {min: _Extreme("min"), max: _Extreme("max")}
"""The types of the functions of Python: the first argument is returned unless the second one is less, or greater."""


def _chosen(comparison: str) -> _Lowering:
    def lower(
        context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
    ) -> ir.Value:
        compare = builder.icmp_signed if isinstance(sig.return_type, types.Integer) else builder.fcmp_ordered
        return builder.select(compare(comparison, args[1], args[0]), args[1], args[0])

    return lower


def _quotient(
    context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
) -> ir.Value:
    number, divisor = args
    if power := _power_of_two(divisor):
        return builder.ashr(number, ir.Constant(_I64, power.bit_length() - 1))
    is_possible, divisor = _possible(builder, number, divisor)
    quotient, rest = builder.sdiv(number, divisor), builder.srem(number, divisor)
    rounded = builder.sub(quotient, builder.zext(_is_above(builder, rest, divisor), _I64))
    return rounded if is_possible is None else builder.select(is_possible, rounded, _ZERO)


def _remainder(
    context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
) -> ir.Value:
    number, divisor = args
    if power := _power_of_two(divisor):
        return builder.and_(number, ir.Constant(_I64, power - 1))
    _, divisor = _possible(builder, number, divisor)
    rest = builder.srem(number, divisor)
    return builder.add(rest, builder.select(_is_above(builder, rest, divisor), divisor, _ZERO))


def _power_of_two(divisor: ir.Value) -> int:
    """Return the divisor if it is known and a power of two, else 0."""
    known = divisor.constant if isinstance(divisor, ir.Constant) and isinstance(divisor.constant, int) else 0
    return known if known > 0 and known.bit_count() == 1 else 0


def _possible(builder: ir.IRBuilder, number: ir.Value, divisor: ir.Value) -> tuple[ir.Value | None, ir.Value]:
    """Return whether the processor can divide, ``None`` if it always can, and a divisor, else 1: remainders are 0 then."""
    if isinstance(divisor, ir.Constant) and divisor.constant not in (0, -1):
        return None, divisor
    overflows = builder.and_(
        builder.icmp_signed("==", number, _LEAST),
        builder.icmp_signed("==", divisor, ir.Constant(_I64, -1)),
    )
    is_impossible = builder.or_(builder.icmp_signed("==", divisor, _ZERO), overflows)
    return builder.not_(is_impossible), builder.select(is_impossible, _ONE, divisor)


def _is_above(builder: ir.IRBuilder, rest: ir.Value, divisor: ir.Value) -> ir.Value:
    """Return whether a quotient that is rounded towards zero is above the exact one."""
    differs = builder.icmp_signed("<", builder.xor(rest, divisor), _ZERO)
    return builder.and_(builder.icmp_signed("!=", rest, _ZERO), differs)


for _kind in (types.int64, types.float32, types.float64):
    ARITHMETIC.lower("min", _kind, _kind)(_chosen("<"))
    ARITHMETIC.lower("max", _kind, _kind)(_chosen(">"))
for _operators, _lower in (
    ((operator.floordiv, operator.ifloordiv), _quotient),
    ((operator.mod, operator.imod), _remainder),
):
    for _operator in _operators:
        ARITHMETIC.lower(_operator, types.int64, types.int64)(_lower)
