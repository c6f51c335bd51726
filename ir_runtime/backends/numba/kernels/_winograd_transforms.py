"""Winograd's F(4, 3): tiles of 6 by 6 elements and filters of 3 by 3, transformed and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ....ir.tensor import Array
from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_f32
from ..codegen.vectors import I64, LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._panels import PackedPanels, Panel, allocate_panels

__all__ = ["TILE_ELEMENTS", "transform_output", "transform_input", "transform_filters"]

Value = Any

TILE_ELEMENTS = 36
"""Elements of a tile."""


def transform_filters(w: Array, scale: Array) -> PackedPanels:
    """36 matrices ``[C_in, C_out]``, packed."""
    outputs, channels = w.shape[:2]
    panels = allocate_panels(TILE_ELEMENTS, outputs, channels)
    count = len(panels) // TILE_ELEMENTS
    words = [count, panels.table.ctypes.data, w.ctypes.data, scale.ctypes.data, channels]
    parallel_for(
        _TRANSFORM.address, np.array(words, np.int64), panels.numbers, UNUSED, UNUSED, UNUSED, threads()
    )  # fmt: skip
    return panels


@device
def _transform_three(out: int, apart: int, a: float, b: float, c: float) -> None:
    """Six numbers of three, so many numbers apart."""
    near, half = (a + c) * np.float32(-1 / 6), b * np.float32(1 / 6)
    far, twelfth = a * np.float32(1 / 24) + c * np.float32(1 / 6), b * np.float32(1 / 12)
    store_f32(out, 0, a * np.float32(1 / 4))
    store_f32(out, apart, near - half)
    store_f32(out, 2 * apart, near + half)
    store_f32(out, 3 * apart, far + twelfth)
    store_f32(out, 4 * apart, far - twelfth)
    store_f32(out, 5 * apart, c)


def _transform_all(call: int) -> None:
    """Filters into panels, a unit for each of one matrix."""
    job, out, _, _, _, counter = load_args(call)
    count, table, channels = load_i64(job, 0), load_i64(job, 1), load_i64(job, 4)
    rows = alloc(4 * 54)
    found = rows + 4 * 18
    while True:
        unit = fetch_add(counter)
        if unit >= count:
            break
        entry = table + 8 * Panel.words * unit
        width, column = load_i64(entry, Panel.vectors) * LANES, load_i64(entry, Panel.column)
        for k in range(channels):
            for j in range(width):
                w, factor = (
                    load_i64(job, 2) + 36 * ((column + j) * channels + k),
                    load_f32(load_i64(job, 3), column + j),
                )
                for b in range(3):
                    one, two, three = (
                        load_f32(w, b) * factor,
                        load_f32(w, 3 + b) * factor,
                        load_f32(w, 6 + b) * factor,
                    )
                    _transform_three(rows + 4 * b, 3, one, two, three)
                for a in range(6):
                    row = rows + 12 * a
                    _transform_three(found + 24 * a, 1, load_f32(row, 0), load_f32(row, 1), load_f32(row, 2))
                for s in range(36):
                    start = load_i64(table, Panel.words * (s * count + unit))
                    store_f32(out + start, k * width + j, load_f32(found, s))
    free(rows)


_TRANSFORM = Task(_transform_all)


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    four, five, two = emit.constant(-4), emit.constant(-5), emit.constant(2)
    even, odd = emit.fma(d[2], four, d[4]), emit.fma(d[1], four, d[3])
    wide, narrow = emit.subtract(d[4], d[2]), emit.multiply(emit.subtract(d[3], d[1]), two)
    return [
        emit.fma(d[0], emit.constant(4), emit.fma(d[2], five, d[4])),
        emit.add(even, odd),
        emit.subtract(even, odd),
        emit.add(wide, narrow),
        emit.subtract(wide, narrow),
        emit.fma(d[1], emit.constant(4), emit.fma(d[3], five, d[5])),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    near, far = emit.add(m[1], m[2]), emit.add(m[3], m[4])
    across, along = emit.subtract(m[1], m[2]), emit.subtract(m[3], m[4])
    return [
        emit.add(m[0], emit.add(near, far)),
        emit.fma(along, emit.constant(2), across),
        emit.fma(far, emit.constant(4), near),
        emit.add(emit.fma(along, emit.constant(8), across), m[5]),
    ]


@instruction(*[types.int64] * 4)
def transform_input(emit: Emit, places: Value, count: Value, out: Value, apart: Value) -> None:
    """Transform so many vectors of a tile, whose elements lie at the places in a table."""
    builder = emit.builder
    addresses = [emit.load(emit.at(places, 8 * i), I64) for i in range(TILE_ELEMENTS)]
    with emit.loop(count) as (i, _, _following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [emit.load(emit.at(address, offset)) for address in addresses]
        columns = [_input_transform(emit, data[j::6]) for j in range(6)]
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in columns])):
                place = builder.mul(apart, emit.i64(6 * a + b))
                emit.store(value, emit.at(emit.at(out, place), offset))


@instruction(*[types.int64] * 7, types.float32, types.float32)
def transform_output(
    emit: Emit, x: Value, apart: Value, places: Value, others: Value, bias: Value, count: Value, check: Value,
    low: Value, high: Value,
) -> None:  # fmt: skip
    """Transform so many vectors back, and put what they give at the places in a table.

    ``others`` is a table of what is added, or 0. What is put at ``check`` is 0, or NaN if something that
    was put is not finite.
    """
    builder = emit.builder
    bounds = emit.splat(low), emit.splat(high)
    with emit.loop(count, [emit.constant(0)]) as (i, (odd,), following):
        offset = builder.mul(i, emit.i64(4 * LANES))
        data = [
            emit.load(emit.at(emit.at(x, builder.mul(apart, emit.i64(n))), offset))
            for n in range(TILE_ELEMENTS)
        ]
        columns = [_output_transform(emit, data[j::6]) for j in range(6)]
        shift = emit.load(emit.at(bias, offset))
        found = [v for a in range(4) for v in _output_transform(emit, [column[a] for column in columns])]
        for value in found:
            odd = emit.fma(value, emit.constant(0), odd)
        found = [emit.add(value, shift) for value in found]
        following.append(odd)

        def place(table: Value, n: int) -> Value:
            return emit.at(emit.load(emit.at(table, 8 * n), I64), offset)

        def added() -> list[Value]:
            return [emit.add(value, emit.load(place(others, n))) for n, value in enumerate(found)]

        summed = builder.icmp_signed("!=", others, emit.i64(0))
        for n, value in enumerate(emit.if_else(summed, added, lambda: found)):
            kept = emit.minimum(emit.maximum(value, bounds[0]), bounds[1])
            emit.store(kept, place(places, n))
    emit.store(emit.reduce_add(following[0]), check)
