"""FakeQuantize of rows of f32, by the operations of the reference in its order: results have the same bits."""

from __future__ import annotations

from ...common.fake_quantize import QuantizeParameter as P
from ..codegen.language import instruction, types
from ..codegen.target import TARGET
from ..codegen.vectors import Emit, Value
from ._row_functions import emit_rows

__all__ = ["fake_quantize"]


def _quantized(emit: Emit, x: Value, p: list[Value]) -> Value:
    """Return the value of the level that is nearest to ``x``; NaN stays NaN."""
    builder = emit.builder
    share = _quotient(emit, emit.subtract(x, p[P.LOW]), p[P.WIDTH], p[P.PER_WIDTH], 2)
    level = emit.round(emit.multiply(share, p[P.STEPS]))
    share = _quotient(emit, level, p[P.STEPS], p[P.PER_STEP], 1)
    product = emit.fence(emit.multiply(share, p[P.SPAN]))  # rounded before the sum
    inside = emit.add(product, p[P.FIRST])
    beyond = builder.select(builder.fcmp_ordered(">", x, p[P.TOP]), p[P.LAST], inside)
    return builder.select(builder.fcmp_ordered("<=", x, p[P.BOTTOM]), p[P.FIRST], beyond)


def _quotient(emit: Emit, a: Value, b: Value, reciprocal: Value, corrections: int) -> Value:
    """Return ``a / b``, correctly rounded, from the correctly rounded reciprocal of ``b``.

    With FMA, a correction of a quotient that is nearly right is exact (Markstein 1990, "Computation of elementary functions
    on the IBM RISC System/6000 processor"), and takes a fraction of a division. One suffices for integers of 16 bits, as
    no quotient of two is near enough to the middle between two f32.
    """
    if not TARGET.vectors.has_fma:
        return emit.divide(a, b)
    minus, quotient = emit.builder.fneg(b), emit.multiply(a, reciprocal)
    for _ in range(corrections):
        quotient = emit.fma(emit.fma(minus, quotient, a), reciprocal, quotient)
    return quotient


@instruction(*[types.int64] * 9)
def fake_quantize(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: Value, x: Value, stride: Value, parameters: Value, plane: Value, apart: Value, single: Value,
    rows: Value, count: Value,
) -> None:  # fmt: skip
    """Quantize rows of ``count`` f32, ``stride`` bytes apart in ``x`` and ``out``.

    ``parameters`` has each `QuantizeParameter`, ``plane`` bytes from one to the next: a row of numbers, or, if
    ``single``, one number for each row. Those of two rows are ``apart`` bytes from each other.
    """
    emit_rows(emit, (out, x, stride, parameters, plane, apart, single, rows, count), len(P), _quantized)
