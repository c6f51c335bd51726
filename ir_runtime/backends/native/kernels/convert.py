"""Conversions between element types, bit-identical to `ops.conversion.convert`."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial

import numpy as np

from ....ir.element import ElementType
from ....ir.tensor import Array, Value
from ....ops.type import Convert
from ... import Kernel
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.bf16 import round_bf16
from ..codegen.language import device, instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import (
    F64S,
    I8S,
    I64S,
    INTS,
    LANES,
    VECTOR,
    Emit,
    constant_lanes,
    load_typed,
    splat_bits,
    store_typed,
)
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import is_recording
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task

__all__: list[str] = []


class Kind(IntEnum):
    """Element types of conversions; `BOOLEAN` is only a target, since boolean data is read as u8."""

    F32 = 0
    F16 = 1
    BF16 = 2
    F64 = 3
    U8 = 4
    I8 = 5
    I32 = 6
    I64 = 7
    BOOLEAN = 8


_HALVES, _I16S = ir.VectorType(ir.F16, LANES), ir.VectorType(ir.I16, LANES)
_STORED = {
    Kind.F32: VECTOR, Kind.F16: _HALVES, Kind.BF16: _I16S, Kind.F64: F64S, Kind.U8: I8S, Kind.I8: I8S,
    Kind.I32: INTS, Kind.I64: I64S, Kind.BOOLEAN: I8S,
}  # fmt: skip
_REALS, _INTEGERS = (Kind.F16, Kind.BF16, Kind.F64), (Kind.U8, Kind.I8, Kind.I32, Kind.I64)
# On targets without f16 instructions, LLVM would call library functions.
_HAS_F16 = TARGET.vectors.name == "neon" or TARGET.has("f16c")


def _to_f32(kind: Kind, emit: Emit, x: Register) -> Register:
    """Convert f16, bf16 or f64 to f32."""
    if kind is Kind.BF16:
        return emit.builder.bitcast(emit.builder.shl(emit.builder.zext(x, INTS), splat_bits(16)), VECTOR)
    return emit.builder.fptrunc(x, VECTOR) if kind is Kind.F64 else emit.builder.fpext(x, VECTOR)


def _from_f32(kind: Kind, emit: Emit, x: Register) -> Register:
    """Convert f32 to f16, bf16 or f64."""
    if kind is Kind.BF16:
        return round_bf16(emit, x)
    return emit.builder.fpext(x, F64S) if kind is Kind.F64 else emit.builder.fptrunc(x, _HALVES)


def _truncate(kind: Kind, emit: Emit, x: Register) -> Register:
    """Convert f32 to an integer type: truncate to i64, or else i32, then drop the high bits.

    Values out of range of i64 or i32, and NaN, become its lowest integer.
    """
    builder = emit.builder
    bits, integers = (64, I64S) if kind is Kind.I64 else (32, INTS)
    limit = 2.0 ** (bits - 1)
    fits = builder.and_(
        builder.fcmp_ordered(">=", x, emit.constant(-limit)),
        builder.fcmp_ordered("<", x, emit.constant(limit)),
    )
    whole = builder.fptosi(builder.select(fits, x, emit.constant(0)), integers)
    whole = builder.select(fits, whole, constant_lanes(integers, -(1 << (bits - 1))))
    return whole if integers == _STORED[kind] else builder.trunc(whole, _STORED[kind])


def _integer_to_f32(kind: Kind, emit: Emit, x: Register) -> Register:
    """Convert integers to f32."""
    return emit.builder.uitofp(x, VECTOR) if kind is Kind.U8 else emit.builder.sitofp(x, VECTOR)


def _resize(source: Kind, target: Kind, emit: Emit, x: Register) -> Register:
    """Convert between integer types, wrapping around."""
    before, after = (_STORED[kind].element.width for kind in (source, target))
    if before == after:
        return x
    if before > after:
        return emit.builder.trunc(x, _STORED[target])
    widen = emit.builder.zext if source is Kind.U8 else emit.builder.sext
    return widen(x, _STORED[target])


def _to_boolean(kind: Kind, emit: Emit, x: Register) -> Register:
    """Return 1 in nonzero lanes, including NaN, else 0."""
    zero = ir.Constant(_STORED[kind], None)
    compare = emit.builder.fcmp_unordered if kind is Kind.F32 else emit.builder.icmp_unsigned
    return emit.builder.zext(compare("!=", x, zero), I8S)


def _formulas() -> dict[tuple[Kind, Kind], Callable[[Emit, Register], Register]]:
    """Return a function that converts a vector, for each supported pair of source and target."""
    formulas: dict[tuple[Kind, Kind], Callable[[Emit, Register], Register]] = {}
    for real in _REALS:
        formulas[real, Kind.F32] = partial(_to_f32, real)
        formulas[Kind.F32, real] = partial(_from_f32, real)
    for kind in _INTEGERS:
        formulas[Kind.F32, kind] = partial(_truncate, kind)
        formulas[kind, Kind.F32] = partial(_integer_to_f32, kind)
        for target in _INTEGERS:
            if target is not kind:
                formulas[kind, target] = partial(_resize, kind, target)
    for kind in (Kind.F32, *_INTEGERS):
        formulas[kind, Kind.BOOLEAN] = partial(_to_boolean, kind)
    return {pair: formula for pair, formula in formulas.items() if _HAS_F16 or Kind.F16 not in pair}


_FORMULAS = _formulas()
_KINDS = {
    ElementType.f32: Kind.F32, ElementType.f16: Kind.F16, ElementType.bf16: Kind.BF16, ElementType.f64: Kind.F64,
    ElementType.u8: Kind.U8, ElementType.i8: Kind.I8, ElementType.i32: Kind.I32, ElementType.i64: Kind.I64,
    ElementType.boolean: Kind.BOOLEAN,
}  # fmt: skip


def _index(source: Kind, target: Kind) -> int:
    return source * len(Kind) + target


def _pairs() -> dict[tuple[ElementType, ElementType], int]:
    pairs = {}
    for a, source in _KINDS.items():
        stored = Kind.U8 if source is Kind.BOOLEAN else source
        for b, target in _KINDS.items():
            if a is not b and (stored, target) in _FORMULAS:
                pairs[a, b] = _index(stored, target)
    return pairs


PAIRS = _pairs()
"""The index of each supported conversion, by source and target type."""


@instruction(*[types.int64] * 4)
def convert_elements(emit: Emit, pair: Register, x: Register, count: Register, out: Register) -> None:
    """Convert ``count`` contiguous elements; ``pair`` is a value of `PAIRS`."""

    def go(source: Kind, target: Kind) -> None:
        for index, _, mask in emit.masked_strips(count):
            value = load_typed(emit, _STORED[source], x, index, mask)
            store_typed(emit, _FORMULAS[source, target](emit, value), out, index, mask)

    emit.switch(pair, {_index(*kinds): partial(go, *kinds) for kinds in _FORMULAS})


# Data with fewer elements is left to NumPy, unless a run is recorded.
MIN_SIZE = 1 << 10


@device
def _convert_row(job: BroadcastJob, out: int, x: int, _b: int, _c: int, count: int) -> None:
    convert_elements(job.code, x, count, out)


CONVERT = broadcast_task("_convert", _convert_row)
"""Convert the elements of A."""


@backend.accelerates(Convert)
def convert(op: Convert, data: Value) -> Kernel | None:
    """Return a Convert kernel for the pairs of types in `PAIRS`, or ``None`` for other pairs.

    It leaves small arrays and arrays with gaps or broadcast axes to NumPy, but in a recorded run it converts small arrays
    itself, so that the replay continues.
    """
    pair = PAIRS.get((data.element, op.destination_type))
    if pair is None:
        return None
    evaluate = partial(_convert_distinct, op.evaluate)
    by_task = broadcast_kernel(CONVERT, op.destination_type.dtype, evaluate, pair, MIN_SIZE).run

    def kernel(x: Array) -> Array | tuple[Array, ...]:
        if x.size < MIN_SIZE and not is_recording():
            return evaluate(x)
        return by_task(x) if x.size < MIN_SIZE or _is_dense(x) else evaluate(x)

    return Kernel(kernel, accepts=any_lengths, replay=replayed(alone=False))


def _is_dense(x: Array) -> bool:
    """Return whether an array is contiguous after some permutation of its axes."""
    if x.flags.c_contiguous:
        return True
    order = sorted(range(x.ndim), key=lambda axis: -x.strides[axis])
    return bool(x.transpose(order).flags.c_contiguous)


def _convert_distinct(evaluate: Callable[[Array], Array], x: Array) -> Array:
    """Return ``evaluate(x)``, evaluated only once along broadcast axes."""
    if 0 not in x.strides or not x.size:
        return evaluate(x)
    distinct = tuple(slice(None if stride else 1) for stride in x.strides)
    return np.broadcast_to(evaluate(x[distinct]), x.shape)
