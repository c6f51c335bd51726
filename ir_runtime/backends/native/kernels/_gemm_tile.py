"""GEMM micro-kernels: tiles of several rows by several vectors of columns, with accumulators in registers.

A table of addresses (an indirection buffer) locates the rows of the left operand, so the windows of a convolution are
rows too: their taps (contiguous pieces) are read one after the other. The right operand is packed in panels, in the order
in which it is read. Both are read as 32-bit words: one f32 or two bf16. Sums are f32; the residual and the result may be
bf16.

With few rows, reading the right operand limits the speed, so f32 rows may be multiplied by bf16 columns. Widening these
takes as long as the products of one row.

The records that GEMM kernels read, such as `GemmJob`, are also defined here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import IntFlag
from functools import partial
from typing import Annotated, Any, NamedTuple

import numpy as np

from ..codegen import ir
from ..codegen.bf16 import (
    HAS_BF16,
    add_pairs,
    add_pairs_of_word,
    as_bf16,
    high_of_pairs,
    load_bf16,
    low_of_pairs,
    store_bf16,
)
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, device, instruction, routine, types
from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, I64, INTS, LANES, VECTOR, Emit, Load, Store, Value
from ._epilogue import EpilogueField

__all__ = [
    "bf16_panel",
    "emit_tiles",
    "gemm_panel",
    "GemmJob",
    "load_lanes",
    "OutputLines",
    "round_row",
    "round_rows",
    "ROW_MULTIPLE",
    "SINGLE",
    "StoredTypes",
    "TALL",
    "WIDE",
    "WIDE_ROWS",
    "widen_row",
    "widened_panel",
    "WindowRecord",
]


class GemmJob(Descriptor):
    """Parameters of a `gemm_task`.

    ``depth`` counts the 32-bit words of a tap. ``residual_stride`` (the bytes between rows of the residual) and
    ``types`` (a `StoredTypes`) are read only by kernels with bf16 results. ``lines`` is the address of `OutputLines`, 0
    if result rows are equally spaced; ``copied`` is the address of `CopiedLines`, 0 if windows are not copied. A panel
    is processed in parts of ``part_taps`` taps.
    """

    rows: i64
    chunk: i64
    panels: i64
    by_panel: i64
    taps: i64
    depth: i64
    layout: i64
    row_stride: i64
    table: i64
    weights: i64
    bias: i64
    tap_offsets: i64
    out_stride: i64
    epilogue: EpilogueField
    zeros: i64
    skips_zeros: i64
    windows: i64
    residual_stride: i64
    types: i64
    lines: i64
    copied: i64
    part_taps: i64


class OutputLines(Descriptor):
    """The placement of a product in a result with several lines per line of data, as in transposed convolution.

    The columns of the product are divided into groups, and each group is stored in a line of its own.

    Args:
        width: the number of product rows in a line of data.
        height: the number of lines in a plane of data.
        columns: the number of columns in a group.
        pitch: the columns from one result row to the next.
        planes: the number of result planes per plane of data.
        lines: the number of result lines per line of data.
        group_lines: the number of groups per result plane; the groups are ``[planes, group_lines]``.
    """

    width: i64
    height: i64
    columns: i64
    pitch: i64
    planes: i64
    lines: i64
    group_lines: i64


class StoredTypes(IntFlag):
    """Flags of the tensors stored in bf16; without its flag, a tensor is f32."""

    RESULT = 1
    RESIDUAL = 2


Axes = Annotated[int, (np.int64, (3,))]


class WindowRecord(Descriptor):
    """The geometry of `Windows` in the layout that kernels read, always with three spatial axes."""

    lengths: Axes
    out: Axes
    strides: Axes
    pads: Axes
    kernel: Axes
    dilations: Axes
    element: i64
    image: i64


WIDE, TALL, SINGLE = TARGET.vectors.wide[1], TARGET.vectors.tall[1], 1
"""The numbers of vectors per row of the three kinds of panels; on some targets, tall and single panels are the same."""

WIDE_ROWS, _TALL_ROWS = TARGET.vectors.wide[0], TARGET.vectors.tall[0]

MAX_ADDRESSES = 12
"""The number of row addresses that fit in registers. It limits the rows of a tile of one vector, which loads a word for
each product."""

# Words of a row that a tile multiplies per iteration, by the vectors of a panel.
_UNROLL = {SINGLE: 8, TALL: 4, WIDE: 1}

ROW_MULTIPLE = {"avx512": 42, "avx2": 12, "neon": 12, "plain": 8}[TARGET.vectors.name]
"""A common multiple of the row counts of all tiles."""

# Rows of the longest tiles, by the vectors of a panel.
_LONGEST = {SINGLE: min(_TALL_ROWS, MAX_ADDRESSES), TALL: _TALL_ROWS, WIDE: WIDE_ROWS}

PANEL_KINDS = (*[types.int64] * 15, types.float32, types.float32)
"""The parameter types of `gemm_panel`."""


class TileTarget(NamedTuple):
    """The destination of a tile.

    Args:
        out: the address of the result.
        stride: the bytes between result rows.
        other: the address of the residual, or 0.
        apart: the bytes between residual rows.
        last: the number of columns of the last vector.
        low: the lower bound of the result.
        high: the upper bound of the result.
        types: the `StoredTypes`; ``None`` if the result and the residual are always f32.
    """

    out: Value
    stride: Value
    other: Value
    apart: Value
    last: Value
    low: Value
    high: Value
    types: Value | None = None


class WordProduct(NamedTuple):
    """The operations of a micro-kernel on 32-bit words of its operands.

    Args:
        vector: the type of a vector of column words.
        factor: loads a word of a row and broadcasts it to all lanes; takes the row's address, a byte offset, and an
            index of a word relative to it.
        add: adds the products of a broadcast word and a vector of column words to an f32 vector.
        store: adds the residual to the sums of a tile, clamps, and stores them; takes the vectors per row.
        add_word: like ``factor`` followed by ``add``, but reads the word as a memory operand; ``None`` if that is
            slower.
    """

    vector: ir.Type
    factor: Callable[[Emit, Value, Value, int], Any]
    add: Callable[[Emit, Value, Any, Value], Value]
    store: Callable[[Emit, Sequence[Value], int, TileTarget], None]
    add_word: Callable[[Emit, Value, Value, Value, int, Value], Value] | None = None


def _factor(emit: Emit, line: Value, along: Value, word: int) -> Value:
    return emit.splat(emit.load(emit.at(emit.at(line, along), 4 * word), F32))


def _micro_kernel(  # noqa: PLR0913 (values in registers)
    emit: Emit, product: WordProduct, rows: int, vectors: int, places: Value, step: Value, zeros: Value, taps: Value, count: Value,
    depth: Value, panel: Value, bias: Value, bias_stride: Value, target: TileTarget,
) -> None:  # fmt: skip
    """Emit the product of one tile.

    Args:
        emit: the code emitter.
        product: the operations on words.
        rows: the number of rows of the tile.
        vectors: the number of vectors per row.
        places: the table of row addresses.
        step: the bytes between the tables of two taps; 0 if they share one.
        zeros: the address of a row of zeros: taps whose rows all point there are skipped; 0 to skip none.
        taps: the byte offset of each tap.
        count: the number of taps.
        depth: the words of a tap.
        panel: the packed right operand.
        bias: the bias of each column, or partial sums; added last, to keep the precision of small products.
        bias_stride: the bytes between the biases of two rows; 0 if all rows share them.
        target: the destination of the result.
    """
    sums = _accumulate(emit, product, rows, vectors, places, step, zeros, taps, count, depth, panel)
    sides = [emit.at(bias, emit.builder.mul(bias_stride, emit.i64(i))) for i in range(rows)]
    biases = [emit.load(emit.at(side, 4 * LANES * j)) for side in sides for j in range(vectors)]
    product.store(emit, [*map(emit.add, sums, biases)], vectors, target)


def _accumulate(  # noqa: PLR0913 (values in registers)
    emit: Emit, product: WordProduct, rows: int, vectors: int, places: Value, step: Value, zeros: Value, taps: Value,
    count: Value, depth: Value, panel: Value,
) -> list[Value]:  # fmt: skip
    builder, start = emit.builder, [ir.Constant(VECTOR, None)] * (rows * vectors)
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
        after = _accumulate_tap(emit, product, lines, length, [weights, *before], vectors)
        following += [emit.at(weights, size), *after[1:]]
    return following[1:]


def _accumulate_tap(
    emit: Emit, product: WordProduct, lines: Sequence[Value], length: Value, state: Sequence[Value], vectors:
    int,
) -> list[Value]:  # fmt: skip
    """Add the products of a tap to ``state``: the address of the weights, which is advanced, and the sums.

    A narrow tile multiplies several words per iteration: the addresses of its rows do not fit in registers, and
    reloading one for each product would take as long as the products.
    """
    builder, unroll = emit.builder, _UNROLL[vectors]
    turns = builder.sdiv(length, emit.i64(unroll))
    with emit.loop(turns, state) as (turn, now, after):
        after += _products(
            emit, product, lines, builder.mul(turn, emit.i64(4 * unroll)), now, vectors, unroll
        )
    if unroll == 1:
        return after
    done = builder.mul(turns, emit.i64(unroll))
    with emit.loop(builder.sub(length, done), after) as (k, now, rest):
        along = builder.mul(builder.add(done, k), emit.i64(4))
        rest += _products(emit, product, lines, along, now, vectors, 1)
    return rest


def _products(
    emit: Emit, product: WordProduct, lines: Sequence[Value], along: Value, state: Sequence[Value], vectors: int, count: int
) -> list[Value]:  # fmt: skip
    """Add the products of ``count`` words of each row, starting at byte offset ``along``, to ``state``."""
    place, *sums = state
    for word in range(count):
        columns = [
            emit.load(emit.at(place, 4 * LANES * (word * vectors + j)), product.vector)
            for j in range(vectors)
        ]
        for i, line in enumerate(lines):
            if vectors == SINGLE and product.add_word:  # a broadcast word would be used once
                sums[i] = product.add_word(emit, sums[i], line, along, 4 * word, columns[0])
                continue
            factor = product.factor(emit, line, along, word)
            for n, column in enumerate(columns, i * vectors):
                sums[n] = product.add(emit, sums[n], factor, column)
    return [emit.at(place, 4 * LANES * vectors * count), *sums]


def _is_any_other(emit: Emit, rows: int, table: Value, zeros: Value) -> Value:
    """Return whether any of the first ``rows`` addresses in ``table`` differs from ``zeros``."""
    kind, builder = ir.VectorType(I64, rows), emit.builder
    first = builder.insert_element(ir.Constant(kind, ir.UNDEFINED), zeros, ir.Constant(I32, 0))
    order = ir.Constant(ir.VectorType(I32, rows), [0] * rows)
    same = builder.shuffle_vector(first, ir.Constant(kind, ir.UNDEFINED), order)
    others = builder.bitcast(builder.icmp_signed("!=", emit.load(table, kind), same), ir.IntType(rows))
    return builder.icmp_unsigned("!=", others, ir.Constant(ir.IntType(rows), 0))


def store_f32_tile(emit: Emit, sums: Sequence[Value], vectors: int, target: TileTarget) -> None:
    """Add the residual to the sums of a tile, clamp, and store them as f32.

    Targets with fast masks always mask the last vector, which halves the code.
    """
    bounds, plain = (emit.splat(target.low), emit.splat(target.high)), (emit.load, emit.store)
    partial_row: list[tuple[Load, Store]] = [*[plain] * (vectors - 1), emit.masked_access(target.last)]
    if TARGET.vectors.has_masks:
        _store_rows(emit, sums, partial_row, target, bounds)
        return
    whole = emit.builder.icmp_signed("==", target.last, emit.i64(LANES))
    with emit.builder.if_else(whole) as (then, otherwise):
        with then:
            _store_rows(emit, sums, [plain] * vectors, target, bounds)
        with otherwise:
            _store_rows(emit, sums, partial_row, target, bounds)


def _store_rows(
    emit: Emit, sums: Sequence[Value], access: Sequence[tuple[Load, Store]], target: TileTarget,
    bounds: tuple[Value, Value],
) -> None:  # fmt: skip
    builder, vectors = emit.builder, len(access)
    steps = [builder.mul(target.stride, emit.i64(i)) for i in range(len(sums) // vectors)]

    def add_residual() -> list[Value]:
        return [
            emit.add(sums[i * vectors + j], load(emit.at(emit.at(target.other, step), 4 * LANES * j)))
            for i, step in enumerate(steps)
            for j, (load, _) in enumerate(access)
        ]

    values = emit.if_else(builder.icmp_signed("!=", target.other, emit.i64(0)), add_residual, lambda: sums)
    for i, step in enumerate(steps):
        for j, (_, store) in enumerate(access):
            value = emit.minimum(emit.maximum(values[i * vectors + j], bounds[0]), bounds[1])
            store(value, emit.at(emit.at(target.out, step), 4 * LANES * j))


def emit_tiles(
    emit: Emit, longest: int, rows: Value, state: list[Value], tile: Callable[[int, list[Value]], list[Value]]
) -> None:
    """Emit loops that cover all rows with tiles of ``longest`` rows, then of 8, 4, 2 and 1.

    Args:
        emit: the code emitter.
        longest: the number of rows of the longest tile.
        rows: the number of rows.
        state: the addresses of the first row of each operand.
        tile: emits a tile, given its number of rows and its addresses, and returns the advanced addresses.
    """
    builder = emit.builder
    for size in (longest, *(n for n in (8, 4, 2, 1) if n < longest)):
        times = builder.sdiv(rows, emit.i64(size))
        with emit.loop(times, state) as (_, addresses, following):
            following += tile(size, addresses)
        state = following
        rows = builder.sub(rows, builder.mul(times, emit.i64(size)))


def panel_instruction(product: WordProduct, kinds: Sequence[str] = PANEL_KINDS) -> Instruction:
    """Return an instruction with the parameters of `gemm_panel` that multiplies rows by one panel.

    Args:
        product: the operations on words.
        kinds: the parameter types: `PANEL_KINDS`, optionally followed by those of the bytes between residual rows and
            of `StoredTypes`.
    """

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, vectors: Value, rows: Value, places: Value, step: Value, zeros: Value, taps: Value, count: Value,
        depth: Value, panel: Value, out: Value, stride: Value, bias: Value, bias_stride: Value, other: Value, last: Value, low: Value,
        high: Value, apart: Value | None = None, types: Value | None = None,
    ) -> None:  # fmt: skip
        builder = emit.builder
        apart = stride if apart is None else apart
        between = builder.select(builder.icmp_signed("!=", other, emit.i64(0)), apart, emit.i64(0))

        def tile(width: int, size: int, addresses: list[Value]) -> list[Value]:
            place, result, residual, start = addresses
            target = TileTarget(result, stride, residual, apart, last, low, high, types)
            _micro_kernel(
                emit, product, size, width, place, step, zeros, taps, count, depth, panel, start, bias_stride, target
            )  # fmt: skip
            after = [builder.mul(emit.i64(size), n) for n in (stride, between, bias_stride)]
            return [emit.at(place, 8 * size), *map(emit.at, (result, residual, start), after)]

        def emit_rows(width: int) -> None:
            emit_tiles(emit, _LONGEST[width], rows, [places, out, other, bias], partial(tile, width))

        emit.switch(vectors, {width: partial(emit_rows, width) for width in _LONGEST})

    return instruction(*kinds)(write)


_panel = panel_instruction(
    WordProduct(VECTOR, _factor, lambda emit, total, a, b: emit.fma(a, b, total), store_f32_tile)
)


@routine(*PANEL_KINDS)
def gemm_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply f32 rows by an f32 panel that is ``vectors`` vectors wide; other parameters as in `_micro_kernel` and `TileTarget`."""
    _panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low, high)  # fmt: skip


_Load = Callable[[Emit, Value, "Value | None"], Value]
_Store = Callable[[Emit, Value, Value, "Value | None"], None]


def load_lanes(emit: Emit, address: Value, count: Value | None) -> Value:
    """Load a vector of f32; if ``count`` is not ``None``, only its first ``count`` lanes, with zeros in the others."""
    return emit.load(address) if count is None else emit.masked_access(count)[0](address)


def _store_f32(emit: Emit, value: Value, address: Value, count: Value | None) -> None:
    if count is None:
        emit.store(value, address)
    else:
        emit.masked_access(count)[1](value, address)


def _store_bf16(emit: Emit, value: Value, address: Value, count: Value | None) -> None:
    store_bf16(emit, as_bf16(emit, value), address, count)


def _store_tile(emit: Emit, sums: Sequence[Value], vectors: int, target: TileTarget) -> None:
    """Add the residual to the sums of a tile, clamp, and store them; ``target.types`` has the types in memory."""
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
    """Add the residual, clamp, and store; ``counts`` has the lanes to store of each vector of a row, ``None`` for all."""
    builder, places = emit.builder, [divmod(n, len(counts)) for n in range(len(sums))]

    def address(start: Value, stride: Value, size: int, i: int, j: int) -> Value:
        return emit.at(emit.at(start, builder.mul(stride, emit.i64(i))), size * LANES * j)

    def add_elements(size: int, load: _Load) -> list[Value]:
        return [
            emit.add(value, load(emit, address(target.other, target.apart, size, i, j), counts[j]))
            for value, (i, j) in zip(sums, places, strict=True)
        ]

    def add_residual() -> Sequence[Value]:
        is_rounded = _is_bf16(emit, target, StoredTypes.RESIDUAL)
        return emit.if_else(
            is_rounded, lambda: add_elements(2, load_bf16), lambda: add_elements(4, load_lanes)
        )

    values = emit.if_else(builder.icmp_signed("!=", target.other, emit.i64(0)), add_residual, lambda: sums)
    low, high = emit.splat(target.low), emit.splat(target.high)
    clamped = [emit.minimum(emit.maximum(value, low), high) for value in values]

    def store_elements(size: int, store: _Store) -> None:
        for value, (i, j) in zip(clamped, places, strict=True):
            store(emit, value, address(target.out, target.stride, size, i, j), counts[j])

    with builder.if_else(_is_bf16(emit, target, StoredTypes.RESULT)) as (rounded, exact):
        with rounded:
            store_elements(2, _store_bf16)
        with exact:
            store_elements(4, _store_f32)


def _is_bf16(emit: Emit, target: TileTarget, type: StoredTypes) -> Value:
    """Return whether the flag ``type`` is set: the result or the residual is stored in bf16."""
    assert target.types is not None
    bit = emit.builder.and_(target.types, emit.i64(type))
    return emit.builder.icmp_signed("!=", bit, emit.i64(0))


def _bf16_factor(emit: Emit, line: Value, along: Value, word: int) -> Value:
    return emit.splat(emit.load(emit.at(emit.at(line, along), 4 * word), I32))


_KINDS = (*PANEL_KINDS, types.int64, types.int64)
_bf16_panel = panel_instruction(
    WordProduct(INTS, _bf16_factor, add_pairs, _store_tile, add_pairs_of_word if HAS_BF16 else None), _KINDS
)


@routine(*_KINDS)
def bf16_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float, apart: int, stored: int,
) -> None:  # fmt: skip
    """Multiply bf16 rows by a bf16 panel.

    Args:
        vectors: the width of the panel in vectors; this and the next parameters are as in `gemm_panel`.
        rows: the number of rows.
        places: the table of row addresses.
        step: the bytes between the tables of two taps.
        zeros: the address of a row of zeros, or 0.
        taps: the byte offset of each tap.
        count: the number of taps.
        depth: the words of a tap.
        panel: the packed panel.
        out: the result.
        stride: the bytes between result rows.
        bias: the bias of each column.
        bias_stride: the bytes between the biases of two rows; 0 if all rows share them.
        other: the residual, or 0.
        last: the number of columns of the last vector.
        low: the lower bound of the result.
        high: the upper bound of the result.
        apart: the bytes between residual rows.
        stored: the `StoredTypes`.
    """
    _bf16_panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low, high, apart, stored)  # fmt: skip


@instruction(*[types.int64] * 4)
def round_row(emit: Emit, x: Value, count: Value, out: Value, stored: Value) -> None:
    """Round ``count`` f32 elements to bf16, and store them padded with zeros to ``stored`` elements."""
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
    """Widen ``count`` bf16 elements to f32."""
    for index, _, mask in emit.masked_strips(count):
        rest = None if mask is None else emit.builder.sub(count, index)
        numbers = load_bf16(emit, emit.at(x, emit.builder.mul(index, emit.i64(2))), rest)
        _store_f32(emit, numbers, emit.at(out, emit.builder.mul(index, emit.i64(4))), rest)


@device
def round_rows(x: int, out: int, stride: int, rows: int, count: int) -> None:
    """Round contiguous f32 rows of ``count`` elements to bf16 rows that are ``stride`` bytes apart."""
    if stride == 2 * count:  # process contiguous rows as one
        round_row(x, rows * count, out, rows * count)
    else:
        for row in range(rows):
            round_row(x + 4 * row * count, count, out + row * stride, count)


def _load_factors(emit: Emit, line: Value, along: Value, word: int) -> list[Value]:
    """Broadcast the two f32 row elements that multiply the two bf16 of a column word."""
    start = emit.at(emit.at(line, emit.builder.mul(along, emit.i64(2))), 8 * word)
    return [emit.splat(emit.load(emit.at(start, place), F32)) for place in (0, 4)]


def _add_products(emit: Emit, total: Value, factors: list[Value], words: Value) -> Value:
    for factor, half in zip(factors, (low_of_pairs, high_of_pairs), strict=True):
        total = emit.fma(factor, half(emit, words), total)
    return total


_widened_panel = panel_instruction(WordProduct(INTS, _load_factors, _add_products, store_f32_tile))


@routine(*PANEL_KINDS)
def widened_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply f32 rows by a bf16 panel, with the parameters of `gemm_panel`; a tap has ``2 * depth`` row elements."""
    _widened_panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low, high)  # fmt: skip
