"""Quotients and remainders of integers."""

from __future__ import annotations

from functools import partial

from ....ir.element import ElementType
from ....ir.tensor import Value
from ....ops.arithmetic import Divide, Division, FloorMod, Mod
from ... import Kernel
from .._backend import backend
from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add
from ..codegen.vectors import F64S, I64, I64S, INTS, LANES, Emit, constant_lanes, load_lanes, store_typed
from ..codegen.vectors import Value as Register
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task

__all__: list[str] = []

FLOOR_DIVIDE, TRUNCATE_DIVIDE, FLOOR_MOD, MOD = range(4)
# The rounded f64 quotient of integers with at most this many bits is an integer only if the exact quotient is.
_BITS = 52
_WORD = ir.IntType(LANES)


@instruction(*[types.int64] * 7, returns=types.int64)
def divide_rows(
    emit: Emit, code: Register, size: Register, singles: Register, a: Register, b: Register, count: Register, out: Register
) -> Register:  # fmt: skip
    """Divide rows of integers of ``size`` bytes; return the number of vectors that contain a zero divisor.

    ``code`` selects quotient or remainder, as in `_code`. ``singles`` has a bit for each operand that is one element
    for the whole row, A's the lowest. Division by 0 gives the result of division by 1.
    """
    builder = emit.builder
    zeros = emit.stack_words(1)

    def go(code: int, kind: ir.VectorType, single: int) -> None:
        for index, _, mask in emit.masked_strips(count):
            x, y = (
                _operand(emit, kind, address, index, mask, bool(single >> place & 1))
                for place, address in enumerate((a, b))
            )
            is_zero = builder.icmp_signed("==", y, ir.Constant(y.type, None))
            zero_lanes = is_zero if mask is None else builder.and_(is_zero, mask)
            any_zero = builder.icmp_unsigned("!=", builder.bitcast(zero_lanes, _WORD), ir.Constant(_WORD, 0))
            emit.store(builder.add(emit.load(zeros, I64), builder.zext(any_zero, I64)), zeros)
            y = builder.select(is_zero, constant_lanes(I64S, 1), y)
            result = _divide_lanes(emit, code, x, y, is_wide=kind == I64S)
            store_typed(emit, result if kind == I64S else builder.trunc(result, kind), out, index, mask)

    branches = {
        (code * 4 + single) * 16 + width: partial(go, code, kind, single)
        for code in range(4) for width, kind in ((4, INTS), (8, I64S)) for single in range(4)
    }  # fmt: skip
    variant = builder.add(builder.mul(code, emit.i64(4)), builder.and_(singles, emit.i64(3)))
    emit.switch(builder.add(builder.mul(variant, emit.i64(16)), size), branches)
    return emit.load(zeros, I64)


def _operand(
    emit: Emit, kind: ir.VectorType, address: Register, index: Register, mask: Register | None, single: bool
) -> Register:
    """Load a vector of integers as i64."""
    loaded = load_lanes(emit, kind, address, index, mask, single)
    return loaded if kind == I64S else emit.builder.sext(loaded, I64S)


def _divide_lanes(emit: Emit, code: int, x: Register, y: Register, is_wide: bool) -> Register:
    """Compute quotients or remainders in f64, or lane by lane in i64 if an integer exceeds `_BITS`."""
    if not is_wide:
        return _divide_as_f64(emit, code, x, y)
    builder = emit.builder
    above = [builder.ashr(n, constant_lanes(I64S, _BITS)) for n in (x, y)]
    # 0 or -1 if all high bits equal the sign.
    large = [
        builder.icmp_unsigned(">", builder.add(n, constant_lanes(I64S, 1)), constant_lanes(I64S, 1))
        for n in above
    ]
    any_large = builder.icmp_unsigned(
        "!=", builder.bitcast(builder.or_(*large), _WORD), ir.Constant(_WORD, 0)
    )
    (result,) = emit.if_else(
        any_large, lambda: [_divide_one_by_one(emit, code, x, y)], lambda: [_divide_as_f64(emit, code, x, y)]
    )
    return result


def _divide_as_f64(emit: Emit, code: int, x: Register, y: Register) -> Register:
    builder = emit.builder
    real = builder.fdiv(builder.sitofp(x, F64S), builder.sitofp(y, F64S))
    return _correct(emit, code, x, y, builder.fptosi(real, I64S))


def _correct(emit: Emit, code: int, x: Register, y: Register, quotient: Register) -> Register:
    """Convert a quotient rounded toward zero to the quotient or remainder that ``code`` selects."""
    builder = emit.builder
    if code == TRUNCATE_DIVIDE:
        return quotient
    rest = builder.sub(x, builder.mul(quotient, y))
    if code == MOD:
        return rest
    zero = ir.Constant(rest.type, None)
    differs = builder.icmp_signed("<", builder.xor(rest, y), zero)
    is_above = builder.and_(differs, builder.icmp_signed("!=", rest, zero))
    if code == FLOOR_DIVIDE:
        return builder.sub(quotient, builder.zext(is_above, quotient.type))
    return builder.add(rest, builder.select(is_above, y, zero))


def _divide_one_by_one(emit: Emit, code: int, x: Register, y: Register) -> Register:
    """Divide lane by lane; divisors of -1 negate instead, as -2^63 / -1 would trap rather than wrap around.

    The loop over lanes is not unrolled: it costs little next to a division, and is emitted for each kind of operands.
    """
    builder, one = emit.builder, constant_lanes(I64S, 1)
    is_minus = builder.icmp_signed("==", y, constant_lanes(I64S, -1))
    divisors = builder.select(is_minus, one, y)
    with emit.loop(emit.i64(LANES), [x]) as (lane, (mixed,), following):
        a, b = builder.extract_element(mixed, lane), builder.extract_element(divisors, lane)
        following.append(builder.insert_element(mixed, builder.sdiv(a, b), lane))
    (quotients,) = following
    negative = builder.sub(ir.Constant(I64S, None), x)
    return _correct(emit, code, x, y, builder.select(is_minus, negative, quotients))


# Smaller results are left to NumPy, unless a run is recorded. Time per element, in eighths of a nanosecond.
MIN_SIZE, STEPS = 1 << 9, 2


@device
def _divide_row(job: BroadcastJob, out: int, a: int, b: int, c: int, count: int) -> None:
    zeros = divide_rows(job.code, job.size, job.singles, a, b, count, out)
    if zeros != 0:
        fetch_add(job + 8 * BroadcastJob.refused)


DIVIDE = broadcast_task("_divide", _divide_row)
"""Divide the integers A by B; count rows with a zero divisor as refused."""


@backend.accelerates(Divide, Mod, FloorMod)
def divide(op: Division, a: Value, b: Value) -> Kernel | None:
    """Return a Divide, Mod or FloorMod kernel for i32 and i64 that broadcast as in NumPy."""
    if a.element is not b.element or a.element not in (ElementType.i32, ElementType.i64):
        return None
    if op.auto_broadcast != "numpy":
        return None
    return broadcast_kernel(DIVIDE, a.element.dtype, op.evaluate, _code(op), MIN_SIZE, STEPS, refuses=True)


def _code(op: Division) -> int:
    if isinstance(op, Divide):
        return FLOOR_DIVIDE if op.m_pythondiv else TRUNCATE_DIVIDE
    return MOD if isinstance(op, Mod) else FLOOR_MOD
