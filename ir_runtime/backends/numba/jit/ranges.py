"""``range`` in kernels: with the meaning of Python's, and lowered to what LLVM takes little time to optimise.

Numba counts the values before the loop, by a division, and raises an error if the step is 0. Here, the type says what
is known of the step, so that most loops compare their value with the end.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir
from numba.core import datamodel, errors, imputils, types, typing

__all__ = ["RANGE", "RANGES"]

RANGES = imputils.Registry("ranges of kernels")
"""How ranges are lowered."""


class _Steps(types.SimpleIterableType):
    """A range of i64 with a known step, or ``None``."""

    def __init__(self, step: int | None) -> None:
        super().__init__(f"range(step={step})", _Position(step))


class _Position(types.SimpleIteratorType):
    """An iterator over such a range."""

    def __init__(self, step: int | None) -> None:
        self.step = step
        super().__init__(f"position(step={step})", types.int64)


@datamodel.register_default(_Steps)
class _StepsModel(datamodel.models.StructModel):
    def __init__(self, manager: datamodel.DataModelManager, kind: _Steps) -> None:
        members = [(name, types.int64) for name in ("start", "stop", "step")]
        super().__init__(manager, kind, members)


@datamodel.register_default(_Position)
class _PositionModel(datamodel.models.StructModel):
    """The next value, what it is compared with, and the step; without a known step, how many remain, and the size of the step."""

    def __init__(self, manager: datamodel.DataModelManager, kind: _Position) -> None:
        changing = types.EphemeralPointer(types.int64)
        members = [("value", changing), ("stop", types.int64), ("step", types.int64)]
        super().__init__(manager, kind, [*members, ("left", changing), ("size", types.int64)])


class _Range(types.Callable, types.Dummy):
    """The type of ``range`` itself."""

    def get_call_type(
        self, context: typing.Context, args: Sequence[types.Type], kws: object
    ) -> typing.templates.Signature:
        """Return the signature of a call; the type of its result has the step, where that is known."""
        if kws or not 1 <= len(args) <= 3 or not all(isinstance(arg, types.Integer) for arg in args):
            raise errors.TypingError(f"range expected one to three integers, got {args}")
        known = 1 if len(args) < 3 else getattr(args[2], "literal_value", None)
        return typing.signature(_Steps(known or None), *[types.int64] * len(args))

    def get_call_signatures(self) -> tuple[list[typing.templates.Signature], bool]:
        """Return no signatures, for numba's messages."""
        return [], True

    def get_impl_key(self, sig: typing.templates.Signature) -> type[_Range]:
        """Return the key under which the call is lowered."""
        return _Range


datamodel.register_default(_Range)(datamodel.models.OpaqueModel)
RANGE = _Range("range")


def _range(
    context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
) -> ir.Value:
    start = (ir.Constant(args[0].type, 0),) if len(args) == 1 else ()
    step = () if len(args) == 3 else (ir.Constant(args[0].type, 1),)
    return _struct(context, builder, sig.return_type, *start, *args, *step)


def _begin(
    context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
) -> ir.Value:
    start, stop, step = (builder.extract_value(args[0], place) for place in range(3))
    if sig.return_type.step is not None:
        return _struct(context, builder, sig.return_type, _slot(builder, start), stop, step)
    distance, size = _distance(builder, start, stop, step)
    left = _slot(builder, distance)
    return _struct(context, builder, sig.return_type, _slot(builder, start), stop, step, left, size)


def _slot(builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
    """Store a value on the stack; return its address."""
    with builder.goto_entry_block():
        place = builder.alloca(value.type)
    builder.store(value, place)
    return place


def _struct(context: object, builder: ir.IRBuilder, kind: types.Type, *members: ir.Value) -> ir.Value:
    """Return the value of a type whose first members these are."""
    found = ir.Constant(context.get_value_type(kind), ir.Undefined)  # type: ignore[attr-defined]
    for place, member in enumerate(members):
        found = builder.insert_value(found, member, place)
    return found


def _distance(
    builder: ir.IRBuilder, start: ir.Value, stop: ir.Value, step: ir.Value
) -> tuple[ir.Value, ir.Value]:
    """Return how far it is to the end in the direction of a step, and the size of the step; a step of 0 goes nowhere."""
    zero = ir.Constant(step.type, 0)
    rises, falls = builder.icmp_signed(">", step, zero), builder.icmp_signed("<", step, zero)
    down = builder.select(falls, builder.sub(start, stop), zero)
    distance = builder.select(rises, builder.sub(stop, start), down)
    return distance, builder.select(rises, step, builder.neg(step))


def _next(
    context: object, builder: ir.IRBuilder, sig: typing.templates.Signature, args: Sequence[ir.Value]
) -> ir.Value:
    """Return the next value, and whether there is one."""
    place, stop, step, left, size = (builder.extract_value(args[0], member) for member in range(5))
    known, value = sig.args[0].step, builder.load(place)
    if known is None:
        rest = builder.load(left)
        is_valid = builder.icmp_signed(">", rest, ir.Constant(rest.type, 0))
    else:
        is_valid = builder.icmp_signed("<" if known > 0 else ">", value, stop)
    with builder.if_then(is_valid):
        builder.store(builder.add(value, step, flags=["nsw"]), place)
        if known is None:
            builder.store(builder.sub(rest, size, flags=["nsw"]), left)
    return _struct(context, builder, sig.return_type, value, is_valid)


for _count in (1, 2, 3):
    RANGES.lower(_Range, *[types.int64] * _count)(_range)
RANGES.lower("getiter", _Steps)(_begin)
RANGES.lower("iternext", _Position)(_next)
