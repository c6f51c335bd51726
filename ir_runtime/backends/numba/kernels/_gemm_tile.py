"""GEMM micro-kernels: tiles of some rows by some vectors of columns, with accumulators in registers.

The rows of the left operand are given by a table of addresses (an indirection buffer), so windows of a convolution are
rows, too, one tap after the other. The right operand is packed in panels, in the order in which it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from llvmlite import ir

from ..codegen.language import Instruction, instruction, routine, types
from ..codegen.target import TARGET
from ..codegen.vectors import I32, I64, LANES, Emit, Load, Store, Value

__all__ = ["ROW_MULTIPLE", "SINGLE", "TALL", "WIDE", "emit_tiles", "gemm_panel"]

WIDE, TALL, SINGLE = TARGET.wide[1], TARGET.tall[1], 1
"""Vectors of the three kinds of panels; tall and single ones are the same on some targets."""

_WIDE_ROWS, _TALL_ROWS = TARGET.wide[0], TARGET.tall[0]

ROW_MULTIPLE = {"avx512": 42, "avx2": 12, "neon": 12, "plain": 8}[TARGET.name]
"""A number of rows that is a multiple of the rows of each tile."""


def _micro_kernel(  # noqa: PLR0913 (values in registers)
    emit: Emit, rows: int, vectors: int, places: Value, step: Value, zeros: Value, taps: Value, count: Value,
    depth: Value, panel: Value, out: Value, stride: Value, bias: Value, other: Value, last: Value, low: Value,
    high: Value,
) -> None:  # fmt: skip
    """Emit one tile.

    Args:
        emit: the emitter.
        rows: of the tile.
        vectors: of the tile.
        places: the table of row addresses.
        step: bytes between the tables of two taps, 0 if they share one.
        zeros: the address of a row of zeros: taps with no other row are skipped; 0 if none is.
        taps: byte offsets of the taps.
        count: number of taps.
        depth: elements of a tap.
        panel: the packed right operand.
        out: the result.
        stride: bytes between its rows.
        bias: of each column.
        other: the residual, in the layout of the result, or 0.
        last: columns of the last vector.
        low: the lower bound.
        high: the upper bound.
    """
    start = [emit.load(emit.at(bias, 4 * LANES * j)) for j in range(vectors)] * rows
    sums = _accumulate(emit, rows, vectors, start, places, step, zeros, taps, count, depth, panel)
    bounds = emit.splat(low), emit.splat(high)
    whole = emit.builder.icmp_signed("==", last, emit.i64(LANES))
    plain: tuple[Load, Store] = emit.load, emit.store
    with emit.builder.if_else(whole) as (then, otherwise):
        with then:
            _store_tile(emit, sums, [plain] * vectors, out, stride, other, bounds)
        with otherwise:
            access = [*[plain] * (vectors - 1), emit.masked_access(last)]
            _store_tile(emit, sums, access, out, stride, other, bounds)


def _accumulate(  # noqa: PLR0913 (values in registers)
    emit: Emit, rows: int, vectors: int, start: Sequence[Value], places: Value, step: Value, zeros: Value,
    taps: Value, count: Value, depth: Value, panel: Value,
) -> list[Value]:  # fmt: skip
    builder = emit.builder
    size = builder.mul(depth, emit.i64(4 * LANES * vectors))
    with emit.loop(count, [panel, *start]) as (tap, (weights, *before), following):
        offset = emit.load(emit.at(taps, builder.mul(tap, emit.i64(8))), I64)
        table = emit.at(places, builder.mul(tap, step))
        lines = [emit.at(emit.load(emit.at(table, 8 * i), I64), offset) for i in range(rows)]
        (length,) = emit.if_else(
            builder.icmp_signed("!=", zeros, emit.i64(0)),
            lambda: [builder.select(_is_any_other(emit, rows, table, zeros), depth, emit.i64(0))],
            lambda: [depth],
        )
        with emit.loop(length, [weights, *before]) as (k, (place, *sums), after):
            columns = [emit.load(emit.at(place, 4 * LANES * j)) for j in range(vectors)]
            along = builder.mul(k, emit.i64(4))
            for i in range(rows):
                factor = emit.splat(emit.load(emit.at(lines[i], along), start[0].type.element))
                for j in range(vectors):
                    n = i * vectors + j
                    sums[n] = emit.fma(factor, columns[j], sums[n])
            after += [emit.at(place, 4 * LANES * vectors), *sums]
        following += [emit.at(weights, size), *after[1:]]
    return following[1:]


def _is_any_other(emit: Emit, rows: int, table: Value, zeros: Value) -> Value:
    """Return whether any of some addresses is not ``zeros``."""
    kind, builder = ir.VectorType(I64, rows), emit.builder
    first = builder.insert_element(ir.Constant(kind, ir.Undefined), zeros, ir.Constant(I32, 0))
    order = ir.Constant(ir.VectorType(I32, rows), [0] * rows)
    same = builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), order)
    others = builder.bitcast(builder.icmp_signed("!=", emit.load(table, kind), same), ir.IntType(rows))
    return builder.icmp_unsigned("!=", others, ir.Constant(ir.IntType(rows), 0))


def _store_tile(
    emit: Emit, sums: Sequence[Value], access: Sequence[tuple[Load, Store]], out: Value, stride: Value,
    other: Value, bounds: tuple[Value, Value],
) -> None:  # fmt: skip
    """Add the residual, clamp, and store."""
    builder, vectors = emit.builder, len(access)
    steps = [builder.mul(stride, emit.i64(i)) for i in range(len(sums) // vectors)]

    def added() -> list[Value]:
        return [
            emit.add(sums[i * vectors + j], load(emit.at(emit.at(other, step), 4 * LANES * j)))
            for i, step in enumerate(steps)
            for j, (load, _) in enumerate(access)
        ]

    found = emit.if_else(builder.icmp_signed("!=", other, emit.i64(0)), added, lambda: sums)
    for i, step in enumerate(steps):
        for j, (_, store) in enumerate(access):
            value = emit.minimum(emit.maximum(found[i * vectors + j], bounds[0]), bounds[1])
            store(value, emit.at(emit.at(out, step), 4 * LANES * j))


def emit_tiles(
    emit: Emit, longest: int, rows: Value, state: list[Value], tile: Callable[[int, list[Value]], list[Value]]
) -> None:
    """Emit loops over all rows, of the longest tiles first, then of shorter ones.

    Args:
        emit: the emitter.
        longest: rows of the longest tile.
        rows: how many there are.
        state: the addresses of the first rows.
        tile: emits a tile of some rows at some addresses, and returns the addresses after it.
    """
    builder = emit.builder
    for size in (longest, *(n for n in (8, 4, 2, 1) if n < longest)):
        times = builder.sdiv(rows, emit.i64(size))
        with emit.loop(times, state) as (_, addresses, following):
            following += tile(size, addresses)
        state = following
        rows = builder.sub(rows, builder.mul(times, emit.i64(size)))


def _panel_instruction(longest: int, vectors: int) -> Instruction:
    """Return the instruction for all rows by one panel: the longest tiles first, then shorter ones.

    Arguments as those of a tile, with the number of rows first, and the row stride of the residual.
    """

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, rows: Value, places: Value, step: Value, zeros: Value, taps: Value, count: Value, depth: Value,
        panel: Value, out: Value, stride: Value, bias: Value, other: Value, apart: Value, last: Value, low: Value,
        high: Value,
    ) -> None:  # fmt: skip
        def tile(size: int, addresses: list[Value]) -> list[Value]:
            place, target, more = addresses
            _micro_kernel(
                emit, size, vectors, place, step, zeros, taps, count, depth, panel, target, stride, bias, more, last, low,
                high,
            )  # fmt: skip
            further = [emit.builder.mul(emit.i64(size), n) for n in (stride, apart)]
            return [emit.at(place, 8 * size), emit.at(target, further[0]), emit.at(more, further[1])]

        emit_tiles(emit, longest, rows, [places, out, other], tile)

    write.__name__ = f"panel_{vectors}"
    return instruction(*[types.int64] * 14, types.float32, types.float32)(write)


_wide, _tall, _single = (
    _panel_instruction(_WIDE_ROWS, WIDE),
    _panel_instruction(_TALL_ROWS, TALL),
    _panel_instruction(_TALL_ROWS, SINGLE),
)


@routine(*[types.int64] * 14, types.float32, types.float32)
def gemm_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply rows by a panel of ``vectors`` vectors; other parameters as those of a tile."""
    apart = stride if other != 0 else 0
    if vectors == WIDE:
        _wide(rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high)  # fmt: skip
    elif vectors == TALL and TALL != SINGLE:  # machine code for both is the same where both are one vector
        _tall(rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high)  # fmt: skip
    else:
        _single(rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high)  # fmt: skip
