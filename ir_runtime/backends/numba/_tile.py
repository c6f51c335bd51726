"""Tiles of matrix products: some rows by some vectors of columns, whose sums stay in registers.

The rows of the left side may lie anywhere: there is a table of their addresses. So the windows of a
convolution are rows, too, taken one row of the kernel (a tap) after the other. The right side is packed
in panels, in the order in which it is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ._language import device, instruction, routine, types
from ._target import TARGET
from ._vectors import I64, LANES, Emit

__all__ = ["GRAIN", "SINGLE", "TALL", "WIDE", "multiply"]

Value = Any

WIDE, TALL, SINGLE = TARGET.wide[1], TARGET.tall[1], 1
"""Vectors of a panel, one of three kinds; two where a tall one has one vector only."""

_BROAD, _LONG = TARGET.wide[0], TARGET.tall[0]

GRAIN = {"avx512": 42, "avx2": 12, "neon": 12, "plain": 8}[TARGET.name]
"""So many rows are whole tiles of each kind."""


def _tile(rows: int, vectors: int) -> Any:
    """The instruction for one tile.

    Arguments: the table of addresses of rows; bytes between those of two taps (0 if they share one);
    bytes to add for each tap; how many taps; numbers of one; the panel; where the result goes, and the
    bytes between its rows; the bias; what is added, lying as the result does, or 0; columns of the last
    vector that exist; bounds.
    """

    def write(
        emit: Emit, places: Value, step: Value, taps: Value, count: Value, depth: Value, panel: Value,
        out: Value, stride: Value, bias: Value, other: Value, last: Value, low: Value, high: Value,
    ) -> None:  # fmt: skip
        start = [emit.load(emit.at(bias, 4 * LANES * j)) for j in range(vectors)] * rows
        sums = _sums(emit, rows, vectors, start, places, step, taps, count, depth, panel)
        bounds = emit.splat(low), emit.splat(high)
        whole = emit.builder.icmp_signed("==", last, emit.number(LANES))
        with emit.builder.if_else(whole) as (then, otherwise):
            with then:
                access = [(emit.load, emit.store)] * vectors
                _finish(emit, sums, access, out, stride, other, bounds)
            with otherwise:
                access = [(emit.load, emit.store)] * (vectors - 1) + [_masked(emit, last)]
                _finish(emit, sums, access, out, stride, other, bounds)

    write.__name__ = f"tile_{rows}_{vectors}"
    return instruction(*[types.int64] * 11, types.float32, types.float32)(write)


def _masked(emit: Emit, count: Value) -> tuple[Callable[..., Value], Callable[..., None]]:
    mask = emit.first(count)
    return (
        lambda address: emit.masked_load(address, mask),
        lambda value, address: emit.masked_store(value, address, mask),
    )


def _sums(
    emit: Emit, rows: int, vectors: int, start: Sequence[Value], places: Value, step: Value, taps: Value,
    count: Value, depth: Value, panel: Value,
) -> list[Value]:  # fmt: skip
    builder = emit.builder
    with emit.loop(count, [panel, *start]) as (tap, (weights, *before), following):
        offset = emit.load(emit.at(taps, builder.mul(tap, emit.number(8))), I64)
        table = emit.at(places, builder.mul(tap, step))
        lines = [emit.at(emit.load(emit.at(table, 8 * i), I64), offset) for i in range(rows)]
        with emit.loop(depth, [weights, *before]) as (k, (place, *sums), after):
            columns = [emit.load(emit.at(place, 4 * LANES * j)) for j in range(vectors)]
            along = builder.mul(k, emit.number(4))
            for i in range(rows):
                factor = emit.splat(emit.load(emit.at(lines[i], along), start[0].type.element))
                for j in range(vectors):
                    n = i * vectors + j
                    sums[n] = emit.fma(factor, columns[j], sums[n])
            after += [emit.at(place, 4 * LANES * vectors), *sums]
        following += after
    return following[1:]


def _finish(
    emit: Emit, sums: Sequence[Value], access: Sequence[tuple[Callable[..., Value], Callable[..., None]]],
    out: Value, stride: Value, other: Value, bounds: tuple[Value, Value],
) -> None:  # fmt: skip
    """Add what is added, keep to the bounds, and store."""
    builder, vectors = emit.builder, len(access)
    steps = [builder.mul(stride, emit.number(i)) for i in range(len(sums) // vectors)]
    before = builder.block
    with builder.if_then(builder.icmp_signed("!=", other, emit.number(0))):
        added = [
            emit.add(sums[i * vectors + j], load(emit.at(emit.at(other, step), 4 * LANES * j)))
            for i, step in enumerate(steps)
            for j, (load, _) in enumerate(access)
        ]
        end = builder.block
    found = []
    for plain, more in zip(sums, added, strict=True):
        phi = builder.phi(plain.type)
        phi.add_incoming(plain, before)
        phi.add_incoming(more, end)
        found.append(phi)
    for i, step in enumerate(steps):
        for j, (_, store) in enumerate(access):
            value = emit.below(emit.above(found[i * vectors + j], bounds[0]), bounds[1])
            store(value, emit.at(emit.at(out, step), 4 * LANES * j))


_broad, _broad_4, _broad_2, _broad_1 = (_tile(rows, WIDE) for rows in (_BROAD, 4, 2, 1))
_long, _long_8, _long_4, _long_2, _long_1 = (_tile(rows, TALL) for rows in (_LONG, 8, 4, 2, 1))
_slim, _slim_8, _slim_4, _slim_2, _slim_1 = (_tile(rows, SINGLE) for rows in (_LONG, 8, 4, 2, 1))


@device
def _over_wide(
    rows: int, places: int, step: int, taps: int, count: int, depth: int, panel: int, out: int, stride: int,
    bias: int, other: int, apart: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    while rows >= _BROAD:
        _broad(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = (
            rows - _BROAD, places + 8 * _BROAD, out + stride * _BROAD, other + apart * _BROAD,
        )  # fmt: skip
    if rows >= 4:
        _broad_4(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 4, places + 32, out + stride * 4, other + apart * 4
    if rows >= 2:
        _broad_2(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 2, places + 16, out + stride * 2, other + apart * 2
    if rows >= 1:
        _broad_1(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)


@device
def _over_tall(
    rows: int, places: int, step: int, taps: int, count: int, depth: int, panel: int, out: int, stride: int,
    bias: int, other: int, apart: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    while rows >= _LONG:
        _long(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = (
            rows - _LONG, places + 8 * _LONG, out + stride * _LONG, other + apart * _LONG,
        )  # fmt: skip
    if rows >= 8:
        _long_8(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 8, places + 64, out + stride * 8, other + apart * 8
    if rows >= 4:
        _long_4(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 4, places + 32, out + stride * 4, other + apart * 4
    if rows >= 2:
        _long_2(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 2, places + 16, out + stride * 2, other + apart * 2
    if rows >= 1:
        _long_1(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)


@device
def _over_single(
    rows: int, places: int, step: int, taps: int, count: int, depth: int, panel: int, out: int, stride: int,
    bias: int, other: int, apart: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    while rows >= _LONG:
        _slim(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = (
            rows - _LONG, places + 8 * _LONG, out + stride * _LONG, other + apart * _LONG,
        )  # fmt: skip
    if rows >= 8:
        _slim_8(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 8, places + 64, out + stride * 8, other + apart * 8
    if rows >= 4:
        _slim_4(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 4, places + 32, out + stride * 4, other + apart * 4
    if rows >= 2:
        _slim_2(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)
        rows, places, out, other = rows - 2, places + 16, out + stride * 2, other + apart * 2
    if rows >= 1:
        _slim_1(places, step, taps, count, depth, panel, out, stride, bias, other, last, low, high)


@routine(*[types.int64] * 13, types.float32, types.float32)
def multiply(
    vectors: int, rows: int, places: int, step: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Rows by one panel of so many vectors, tile by tile; arguments otherwise as those of a tile."""
    apart = stride if other != 0 else 0
    if vectors == WIDE:
        _over_wide(
            rows, places, step, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high
        )
    elif vectors == TALL:
        _over_tall(
            rows, places, step, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high
        )
    else:
        _over_single(
            rows, places, step, taps, count, depth, panel, out, stride, bias, other, apart, last, low, high
        )
