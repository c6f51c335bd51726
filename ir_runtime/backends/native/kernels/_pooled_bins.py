"""The bins of ROI pooling: the largest elements of channels-last maps, and means of planes that differ from bin to bin."""

from __future__ import annotations

import numpy as np

from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import F32, LANES, Emit, Load, Store, Value
from ..threading.task import Task, each_unit, load_args
from ._windows import F32_SIZE

__all__ = ["LARGEST_OF_BINS", "MEANS_OF_BINS", "BinsJob"]

_LOWEST = float(np.finfo(np.float32).min)
# Vectors of channels that are compared at a time, to hide the latency of a comparison.
AT_ONCE = 4


class BinsJob(Descriptor):
    """The job of `LARGEST_OF_BINS` and `MEANS_OF_BINS`.

    Sizes: regions and rows and columns of their bins; channels of the result; rows, columns and channels of the maps.
    Addresses: the image of each region, and where each row and column of bins begins and ends.
    """

    regions: i64
    bin_rows: i64
    bin_columns: i64
    depth: i64
    height: i64
    width: i64
    channels: i64
    images: i64
    row_bounds: i64
    column_bounds: i64


@instruction(*[types.int64] * 7)
def _largest(
    emit: Emit, out: Value, x: Value, down: Value, rows: Value, across: Value, columns: Value, count: Value
) -> None:
    """Store the largest of ``rows`` and ``columns`` of elements for each channel; NaN is not looked at."""
    builder = emit.builder

    def block(start: Value, loads: list[Load], stores: list[Store]) -> None:
        lowest = [emit.constant(_LOWEST)] * len(loads)
        with emit.loop(rows, [emit.at(x, start), *lowest]) as (_, (line, *best), below):
            with emit.loop(columns, [line, *best]) as (_, (place, *now), beside):
                beside.append(emit.at(place, across))
                for j, load in enumerate(loads):
                    found = load(emit.at(place, 4 * LANES * j))
                    is_larger = builder.fcmp_ordered(">", found, now[j])
                    beside.append(builder.select(is_larger, found, now[j]))
            below += [emit.at(line, down), *beside[1:]]
        for j, store in enumerate(stores):
            store(below[1 + j], emit.at(out, emit.at(start, 4 * LANES * j)))

    wide = AT_ONCE * LANES
    many = builder.sdiv(count, emit.i64(wide))
    with emit.loop(many, [emit.i64(0)]) as (_, (start,), following):
        block(start, [emit.load] * AT_ONCE, [emit.store] * AT_ONCE)
        following.append(emit.at(start, 4 * wide))
    done = following[0]

    def rest(offset: Value, load: Load, store: Store) -> None:
        block(emit.at(done, offset), [load], [store])

    emit.vector_loop(builder.sub(count, builder.mul(many, emit.i64(wide))), rest)


def _largest_of_bins(call: int) -> None:
    address, out, x, _, _, _ = load_args(call)
    job = BinsJob.at(address)
    lines, columns = job.bin_rows, job.bin_columns
    channels, units = job.channels, job.regions * lines
    step = F32_SIZE * channels
    line = step * job.width
    image = line * job.height
    rows, across = job.row_bounds, job.column_bounds
    for unit in each_unit(call, units):
        region = unit // lines
        top, bottom = load_i64(rows, 2 * unit), load_i64(rows, 2 * unit + 1)
        source = x + image * load_i64(job.images, region) + top * line
        for column in range(columns):
            at = 2 * (region * columns + column)
            left, right = load_i64(across, at), load_i64(across, at + 1)
            target = out + step * (unit * columns + column)
            _largest(target, source + left * step, line, bottom - top, step, right - left, channels)


LARGEST_OF_BINS = Task(_largest_of_bins)
"""Compute bins ``[regions, rows, columns, channels]`` of channels-last maps; a unit is a row of bins of a region."""


@instruction(*[types.int64] * 5)
def _mean(emit: Emit, out: Value, x: Value, down: Value, rows: Value, columns: Value) -> None:
    """Store the mean of ``rows`` and ``columns`` of numbers, 0 if there are none: of the sums of each lane."""
    builder = emit.builder
    whole = builder.sdiv(columns, emit.i64(LANES))
    rest = builder.sub(columns, builder.mul(whole, emit.i64(LANES)))
    mask = emit.lane_mask(rest)
    with emit.loop(rows, [x, emit.constant(0)]) as (_, (line, sums), below):
        with emit.loop(whole, [line, sums]) as (_, (place, now), beside):
            beside += [emit.at(place, 4 * LANES), emit.add(now, emit.load(place))]
        place, now = beside
        below += [emit.at(line, down), emit.add(now, emit.masked_load(place, mask))]
    total = emit.reduce_add(below[1])
    count = builder.sitofp(builder.mul(rows, columns), F32)
    is_any = builder.fcmp_ordered(">", count, _scalar(0))
    emit.store(builder.select(is_any, builder.fdiv(total, count), _scalar(0)), out)


def _scalar(x: float) -> Value:
    return ir.Constant(F32, x)


def _means_of_bins(call: int) -> None:
    address, out, x, _, _, _ = load_args(call)
    job = BinsJob.at(address)
    lines, columns, depth = (
        job.bin_rows,
        job.bin_columns,
        job.depth,
    )
    units, line = job.regions * depth, F32_SIZE * job.width
    plane = line * job.height
    rows, across = job.row_bounds, job.column_bounds
    for unit in each_unit(call, units):
        region = unit // depth
        image = job.channels * load_i64(job.images, region)
        first = image + (unit - region * depth) * lines * columns
        for row in range(lines):
            at = 2 * (region * lines + row)
            top, bottom = load_i64(rows, at), load_i64(rows, at + 1)
            for column in range(columns):
                beside, place = 2 * (region * columns + column), row * columns + column
                left, right = load_i64(across, beside), load_i64(across, beside + 1)
                source = x + (first + place) * plane + top * line + F32_SIZE * left
                target = out + F32_SIZE * (unit * lines * columns + place)
                _mean(target, source, line, max(bottom - top, 0), max(right - left, 0))


MEANS_OF_BINS = Task(_means_of_bins)
"""Compute bins ``[regions, depth, rows, columns]`` of planes ``[images, depth, rows, columns, height, width]``, each bin of
its own plane; a unit is a channel of the result of a region."""
