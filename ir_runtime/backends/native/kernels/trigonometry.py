"""Sine and cosine of f32, computed in f64: all but about one in 10^8 results are the nearest f32.

Multiples of π/2, split into three parts, are subtracted from arguments (Cody and Waite 1980); products of the
first two parts with integers of up to 26 bits are exact. The polynomials on [-π/4, π/4] are those of Cephes.
Arguments beyond 2^26 are left to NumPy.
"""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Value
from ....ops.arithmetic import Cos, Sin
from ....ops.elementwise import RealUnary
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32
from ..codegen.vectors import LANES, VECTOR, Emit
from ..threading.task import Task
from ._broadcast_rows import BroadcastJob, broadcast_kernel, broadcast_task

__all__: list[str] = []

# Time per element, in eighths of a nanosecond; the largest argument that is reduced.
STEPS = 8
MOST = float(1 << 26)

_DOUBLES, _WORDS = ir.VectorType(ir.F64, LANES), ir.VectorType(ir.I64, LANES)
# Adding this to an f64 rounds it to an integer, whose lowest bits are those of the sum.
_ROUNDING = 1.5 * 2**52
_HALF_PI = 1.570796325802803, 9.920935739593517e-10, 5.721188726109832e-18
_SINE = (
    1.58962301576546568060e-10, -2.50507477628578072866e-8, 2.75573136213857245213e-6, -1.98412698295895385996e-4,
    8.33333333332211858878e-3, -1.66666666666666307295e-1, 1.0,
)  # fmt: skip
_COSINE = (
    -1.13585365213876817300e-11, 2.08757008419747316778e-9, -2.75573141792967388112e-7, 2.48015872888517045348e-5,
    -1.38888888888730564116e-3, 4.16666666666665929218e-2, -0.5, 1.0,
)  # fmt: skip


def _double(x: float) -> ir.Value:
    return ir.Constant(_DOUBLES, [x] * LANES)


def _word(n: int) -> ir.Value:
    return ir.Constant(_WORDS, [n] * LANES)


def _polynomial(emit: Emit, square: ir.Value, terms: tuple[float, ...]) -> ir.Value:
    builder, total = emit.builder, _double(terms[0])
    for term in terms[1:]:
        total = builder.fadd(builder.fmul(total, square), _double(term))
    return total


def _sine_with_phase(emit: Emit, x: ir.Value, quarters: int) -> ir.Value:
    """Return ``sin(x + quarters * π/2)`` of a vector of f32."""
    builder = emit.builder
    x = builder.fpext(x, _DOUBLES)
    sum = builder.fadd(builder.fmul(x, _double(2 / np.pi)), _double(_ROUNDING))
    turns, rest = builder.fsub(sum, _double(_ROUNDING)), x
    for part in _HALF_PI:
        rest = builder.fsub(rest, builder.fmul(turns, _double(part)))
    quarter = builder.add(builder.bitcast(sum, _WORDS), _word(quarters))
    square = builder.fmul(rest, rest)
    sine = builder.fmul(rest, _polynomial(emit, square, _SINE))
    is_odd = builder.icmp_unsigned("!=", builder.and_(quarter, _word(1)), _word(0))
    result = builder.select(is_odd, _polynomial(emit, square, _COSINE), sine)
    sign = builder.shl(builder.and_(quarter, _word(2)), _word(62))
    result = builder.bitcast(builder.xor(builder.bitcast(result, _WORDS), sign), _DOUBLES)
    return builder.fptrunc(result, VECTOR)


@instruction(types.int64, types.int64, types.int64, types.int64)
def _store_sines(emit: Emit, x: ir.Value, count: ir.Value, out: ir.Value, is_cosine: ir.Value) -> None:
    """Store the sines or cosines of ``count`` elements."""

    def branch(quarters: int) -> None:
        for offset, load, store in emit.vectors(count):
            store(_sine_with_phase(emit, load(emit.at(x, offset)), quarters), emit.at(out, offset))

    emit.switch(is_cosine, {0: lambda: branch(0), 1: lambda: branch(1)})


def _task(name: str, is_cosine: int) -> Task:
    """Return the task for sine or cosine; elements beyond `MOST` are counted as refused."""

    def rotate_row(job: BroadcastJob, out: int, x: int, _b: int, _c: int, count: int) -> None:
        _store_sines(x, count, out, is_cosine)
        for place in range(count):
            element = load_f32(x, place)
            if element > MOST or element < -MOST:
                fetch_add(job + 8 * BroadcastJob.refused)

    return broadcast_task(name, device(rotate_row))


SINE, COSINE = _task("_sine", 0), _task("_cosine", 1)


@backend.accelerates(Sin, Cos)
def trigonometry(op: RealUnary, data: Value) -> Kernel | None:
    """Return a Sin or Cos kernel for f32."""
    if not is_f32(data):
        return None
    task = SINE if isinstance(op, Sin) else COSINE
    return broadcast_kernel(task, data.element.dtype, op.evaluate, steps=STEPS, refuses=True)
