"""Winograd transforms of F(4x4, 3x3): of filters, input tiles and output tiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_f32
from ..codegen.vectors import I64, LANES, Emit, Value
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._panels import PackedPanels, Panel, allocate_panels

__all__ = ["TILE_ELEMENTS", "transform_output", "transform_input", "transform_filters"]

TILE_ELEMENTS = 36
"""Elements of a tile."""


def transform_filters(w: Array, scale: Array) -> PackedPanels:
    """Transform filters into 36 packed matrices ``[C_in, C_out]``."""
    outputs, channels = w.shape[:2]
    panels = allocate_panels(TILE_ELEMENTS, outputs, channels)
    count = len(panels) // TILE_ELEMENTS
    job = TransformJob.fill(
        panels=count,
        table=panels.table.ctypes.data,
        filters=w.ctypes.data,
        scale=scale.ctypes.data,
        channels=channels,
    )
    parallel_for(
        _TRANSFORM.address, job, panels.numbers, UNUSED, UNUSED, UNUSED, threads()
    )  # fmt: skip
    return panels


class TransformJob(Descriptor):
    """The job of `_TRANSFORM`: panels of one matrix, addresses, input channels."""

    panels: i64
    table: i64
    filters: i64
    scale: i64
    channels: i64


@device
def _transform_three(out: int, apart: int, a: float, b: float, c: float) -> None:
    """Transform three numbers to six, stored ``apart`` numbers from each other."""
    near, half = (a + c) * np.float32(-1 / 6), b * np.float32(1 / 6)
    far, twelfth = a * np.float32(1 / 24) + c * np.float32(1 / 6), b * np.float32(1 / 12)
    store_f32(out, 0, a * np.float32(1 / 4))
    store_f32(out, apart, near - half)
    store_f32(out, 2 * apart, near + half)
    store_f32(out, 3 * apart, far + twelfth)
    store_f32(out, 4 * apart, far - twelfth)
    store_f32(out, 5 * apart, c)


def _transform_all(call: int) -> None:
    """Transform filters into panels; a unit is one panel of all matrices."""
    job, out, _, _, _, counter = load_args(call)
    count, table, channels = (
        load_i64(job, TransformJob.panels),
        load_i64(job, TransformJob.table),
        load_i64(job, TransformJob.channels),
    )
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
                    load_i64(job, TransformJob.filters) + 36 * ((column + j) * channels + k),
                    load_f32(load_i64(job, TransformJob.scale), column + j),
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
    """Transform ``count`` vectors of an input tile; ``places`` is a table of the addresses of its elements."""
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
def transform_output(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, apart: Value, places: Value, others: Value, bias: Value, count: Value, check: Value,
    low: Value, high: Value,
) -> None:  # fmt: skip
    """Transform ``count`` vectors of an output tile, and store the results at the addresses of a table.

    ``others`` is a table of residuals, or 0. The number stored at ``check`` is 0, or NaN if a result is not finite.
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
