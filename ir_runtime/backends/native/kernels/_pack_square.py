"""Squares of numbers that are transposed in registers on their way into panels."""

from __future__ import annotations

from ..codegen import ir
from ..codegen.language import instruction, types
from ..codegen.vectors import INTS, LANES, Emit, Value

__all__ = ["pack_square"]


def _transposed(emit: Emit, vectors: list[Value]) -> list[Value]:
    """Transpose a square of vectors by interleaving halves repeatedly."""
    count = len(vectors)
    lanes = [lane for pair in zip(range(count), range(count, 2 * count), strict=True) for lane in pair]
    low, high = (ir.Constant(INTS, part) for part in (lanes[:count], lanes[count:]))
    for _ in range(count.bit_length() - 1):
        pairs = list(zip(vectors[: count // 2], vectors[count // 2 :], strict=True))
        vectors = [emit.builder.shuffle_vector(x, y, mask) for x, y in pairs for mask in (low, high)]
    return vectors


@instruction(*[types.int64] * 5)
def pack_square(
    emit: Emit, target: Value, apart: Value, source: Value, by_column: Value, factors: Value
) -> None:
    """Pack `LANES` columns of `LANES` rows that are contiguous."""
    scale = emit.load(factors)
    places = [emit.at(source, emit.builder.mul(by_column, emit.i64(i))) for i in range(LANES)]
    for i, row in enumerate(_transposed(emit, [emit.load(place) for place in places])):
        emit.store(emit.multiply(row, scale), emit.at(target, emit.builder.mul(apart, emit.i64(i))))
