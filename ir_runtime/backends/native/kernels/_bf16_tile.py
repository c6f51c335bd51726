"""GEMM tiles of bf16: sums are f32, the residual and the result f32 or bf16."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..codegen.bf16 import HAS_BF16, add_pairs, add_pairs_of_word, as_bf16, load_bf16, store_bf16
from ..codegen.language import device, instruction, routine, types
from ..codegen.target import TARGET
from ..codegen.vectors import I32, INTS, LANES, Emit, Value
from ._gemm_job import StoredTypes
from ._gemm_tile import PANEL_KINDS, TileTarget, WordProduct, panel_instruction

__all__ = ["bf16_panel", "load_lanes", "round_row", "round_rows", "widen_row"]

_Load = Callable[[Emit, Value, "Value | None"], Value]
_Store = Callable[[Emit, Value, Value, "Value | None"], None]


def load_lanes(emit: Emit, address: Value, count: Value | None) -> Value:
    """Load a vector of f32, or its first ``count`` lanes and zeros."""
    return emit.load(address) if count is None else emit.masked_access(count)[0](address)


def _store_f32(emit: Emit, value: Value, address: Value, count: Value | None) -> None:
    if count is None:
        emit.store(value, address)
    else:
        emit.masked_access(count)[1](value, address)


def _store_bf16(emit: Emit, value: Value, address: Value, count: Value | None) -> None:
    store_bf16(emit, as_bf16(emit, value), address, count)


def _store_tile(emit: Emit, sums: Sequence[Value], vectors: int, target: TileTarget) -> None:
    """Add the residual, clamp, and store, in the types of the target; with the mask in any case where it costs nothing."""
    if TARGET.vectors.has_masks:
        _store_vectors(emit, sums, [*[None] * (vectors - 1), target.last], target)
        return
    whole = emit.builder.icmp_signed("==", target.last, emit.i64(LANES))
    with emit.builder.if_else(whole) as (then, otherwise):
        with then:
            _store_vectors(emit, sums, [None] * vectors, target)
        with otherwise:
            _store_vectors(emit, sums, [*[None] * (vectors - 1), target.last], target)


def _store_vectors(
    emit: Emit, sums: Sequence[Value], counts: Sequence[Value | None], target: TileTarget
) -> None:
    """Store the first ``counts`` lanes of each vector of a row; all where that is ``None``."""
    builder, places = emit.builder, [divmod(n, len(counts)) for n in range(len(sums))]

    def address(start: Value, stride: Value, size: int, i: int, j: int) -> Value:
        return emit.at(emit.at(start, builder.mul(stride, emit.i64(i))), size * LANES * j)

    def added(size: int, load: _Load) -> list[Value]:
        return [
            emit.add(value, load(emit, address(target.other, target.apart, size, i, j), counts[j]))
            for value, (i, j) in zip(sums, places, strict=True)
        ]

    def summed() -> Sequence[Value]:
        is_rounded = _has(emit, target, StoredTypes.RESIDUAL)
        return emit.if_else(is_rounded, lambda: added(2, load_bf16), lambda: added(4, load_lanes))

    found = emit.if_else(builder.icmp_signed("!=", target.other, emit.i64(0)), summed, lambda: sums)
    low, high = emit.splat(target.low), emit.splat(target.high)
    clamped = [emit.minimum(emit.maximum(value, low), high) for value in found]

    def stored(size: int, store: _Store) -> None:
        for value, (i, j) in zip(clamped, places, strict=True):
            store(emit, value, address(target.out, target.stride, size, i, j), counts[j])

    with builder.if_else(_has(emit, target, StoredTypes.RESULT)) as (rounded, exact):
        with rounded:
            stored(2, _store_bf16)
        with exact:
            stored(4, _store_f32)


def _has(emit: Emit, target: TileTarget, type: StoredTypes) -> Value:
    """Return whether a tensor is stored in bf16."""
    assert target.types is not None
    bit = emit.builder.and_(target.types, emit.i64(type))
    return emit.builder.icmp_signed("!=", bit, emit.i64(0))


def _factor(emit: Emit, line: Value, along: Value, word: int) -> Value:
    return emit.splat(emit.load(emit.at(emit.at(line, along), 4 * word), I32))


_KINDS = (*PANEL_KINDS, types.int64, types.int64)
_panel = panel_instruction(
    WordProduct(INTS, _factor, add_pairs, _store_tile, add_pairs_of_word if HAS_BF16 else None),
    _KINDS,
)


@routine(*_KINDS)
def bf16_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float, apart: int, stored: int,
) -> None:  # fmt: skip
    """Multiply rows of bf16 by a panel of bf16.

    Args:
        vectors: of the panel; this and the next ones as for `gemm_panel`.
        rows: of the data.
        places: the table of row addresses.
        step: bytes between the tables of two taps.
        zeros: the address of a row of zeros, or 0.
        taps: byte offsets of the taps.
        count: number of taps.
        depth: words of a tap.
        panel: the packed panel.
        out: the result.
        stride: bytes between its rows.
        bias: of each column.
        bias_stride: bytes between those of two rows; 0 if all rows share one.
        other: the residual, or 0.
        last: columns of the last vector.
        low: the lower bound.
        high: the upper bound.
        apart: bytes between rows of the residual.
        stored: the `StoredTypes`.
    """
    _panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low, high, apart, stored)  # fmt: skip


@instruction(*[types.int64] * 4)
def round_row(emit: Emit, x: Value, count: Value, out: Value, stored: Value) -> None:
    """Round ``count`` numbers to bf16, and store them with zeros after them, ``stored`` in all."""
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole) as (i, _, _following):
        halves = as_bf16(emit, emit.load(emit.at(x, builder.mul(i, emit.i64(4 * LANES)))))
        store_bf16(emit, halves, emit.at(out, builder.mul(i, emit.i64(2 * LANES))))
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(stored, done)
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        load, _ = emit.masked_access(builder.sub(count, done))
        halves = as_bf16(emit, load(emit.at(x, builder.mul(done, emit.i64(4)))))
        store_bf16(emit, halves, emit.at(out, builder.mul(done, emit.i64(2))), rest)


@instruction(*[types.int64] * 3)
def widen_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Store ``count`` numbers of bf16 as f32."""
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole) as (i, _, _following):
        numbers = load_bf16(emit, emit.at(x, builder.mul(i, emit.i64(2 * LANES))))
        emit.store(numbers, emit.at(out, builder.mul(i, emit.i64(4 * LANES))))
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(count, done)
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        numbers = load_bf16(emit, emit.at(x, builder.mul(done, emit.i64(2))), rest)
        _store_f32(emit, numbers, emit.at(out, builder.mul(done, emit.i64(4))), rest)


@device
def round_rows(x: int, out: int, stride: int, rows: int, count: int) -> None:
    """Round contiguous rows of ``count`` numbers to bf16; rows of the result are ``stride`` bytes apart."""
    if stride == 2 * count:  # contiguous rows are one
        round_row(x, rows * count, out, rows * count)
    else:
        for row in range(rows):
            round_row(x + 4 * row * count, count, out + row * stride, count)
