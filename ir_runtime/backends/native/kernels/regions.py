"""Region pooling: ROIAlign, ROIPooling and PSROIPooling.

ROIAlign averages bilinear samples in the bins of regions; the samples along each axis are indices with
weights. ROIPooling takes the maximum or one bilinear sample of a bin, PSROIPooling the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.detection.regions import MOST_POINTS, PSROIPooling, ROIAlign3, ROIAlign9, ROIPooling
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from ...common.pooled_regions import Bins, largest_bins, mean_bins, regions_of
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.vectors import F32, I64, LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._windows import F32_SIZE

__all__: list[str] = []

# Maximum number of samples along an axis of all regions; more would take too much memory.
MAX_SAMPLES = 1 << 22


@instruction(*[types.int64] * 8)
def _blend(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: ir.Value, lines: ir.Value, weights: ir.Value, tall: ir.Value, columns: ir.Value, factors: ir.Value,
    wide: ir.Value, count: ir.Value,
) -> None:  # fmt: skip
    """Compute the channels of one bin: a weighted sum of ``tall`` rows of ``wide`` columns.

    Args:
        emit: the code emitter.
        out: the address of the channels.
        lines: the address of the addresses of the rows.
        weights: the address of the weights of the rows.
        tall: the number of rows.
        columns: the address of the byte offsets of the columns in a row.
        factors: the address of the weights of the columns.
        wide: the number of columns.
        count: the number of channels.
    """
    none = emit.constant(0)

    def at(place: ir.Value, index: ir.Value, kind: ir.Type, size: int) -> ir.Value:
        return emit.load(emit.at(place, emit.builder.mul(index, emit.i64(size))), kind)

    for offset, load, store in emit.vectors(count):
        with emit.loop(tall, [none]) as (i, (total,), below):
            row = emit.at(at(lines, i, I64, 8), offset)
            with emit.loop(wide, [none]) as (j, (part,), following):
                pixel = load(emit.at(row, at(columns, j, I64, 8)))
                following.append(emit.fma(emit.splat(at(factors, j, F32, 4)), pixel, part))
            below.append(emit.fma(emit.splat(at(weights, i, F32, 4)), following[0], total))
        store(below[0], emit.at(out, offset))


class RoiAlignJob(Descriptor):
    """Parameters of `_align`: sizes, and addresses of the image index of each region and of the samples along both axes."""

    rows: i64
    image_bytes: i64
    channels: i64
    bin_rows: i64
    bin_columns: i64
    images: i64
    row_starts: i64
    row_offsets: i64
    row_weights: i64
    column_starts: i64
    column_offsets: i64
    column_weights: i64
    max_row_samples: i64


@Task
def _align(call: int, job: RoiAlignJob, out: int, x: int) -> None:
    """Compute the bins of regions of A; a work unit is a row of bins."""
    count, image, channels = job.rows, job.image_bytes, job.channels
    lines, columns = job.bin_rows, job.bin_columns
    entries, row_starts, rows, row_weights = job.images, job.row_starts, job.row_offsets, job.row_weights
    column_starts, places, column_weights, most = (
        job.column_starts,
        job.column_offsets,
        job.column_weights,
        job.max_row_samples,
    )
    table = scratch_memory(8 * most)
    for index in each_unit(call, count):
        region = index // lines
        base = x + image * load_i64(entries, region)
        first = load_i64(row_starts, index)
        tall = load_i64(row_starts, index + 1) - first
        for i in range(tall):
            store_i64(table, i, base + load_i64(rows, first + i))
        for column in range(columns):
            start = load_i64(column_starts, region * columns + column)
            wide = load_i64(column_starts, region * columns + column + 1) - start
            _blend(
                out + 4 * channels * (index * columns + column), table, row_weights + 4 * first, tall,
                places + 8 * start, column_weights + 4 * start, wide, channels,
            )  # fmt: skip


@dataclass(frozen=True)
class BinSamples:
    """The elements along an axis that each bin of each region sums, with weights.

    Args:
        starts: the position of each bin's first element in ``index``, followed by the number of elements.
        index: the indices of the elements along the axis.
        weight: the weights of the elements; those of a bin add up to 1 if all its samples are inside.
    """

    starts: Array
    index: Array
    weight: Array

    @classmethod
    def of(cls, first: Array, size: Array, bins: int, samples: Array, length: int) -> BinSamples:
        """Return the elements that samples along an axis interpolate, two for each; samples outside the axis are dropped.

        Args:
            first: the starts of the regions.
            size: the lengths of the regions.
            bins: the number of bins of a region.
            samples: the number of samples per bin, for each region.
            length: the number of elements of the axis.
        """
        most = 2 * int(samples.max(initial=0))
        shape = len(first), bins, most
        index, weight = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
        used = np.zeros(shape, np.bool_)
        for count in np.unique(samples[samples > 0]).tolist():
            regions = samples == count
            step = size[regions] / bins
            offsets = np.arange(bins, dtype=np.float32) * step[:, None]
            parts = (step / count)[:, None] * (np.arange(count, dtype=np.float32) + np.float32(0.5))
            at = first[regions, None, None] + (offsets[:, :, None] + parts[:, None])
            within = (at >= -1) & (at <= length)
            at = np.clip(at, 0, length - 1)
            low = np.floor(at)
            part = at - low
            low = low.astype(np.int64)
            pairs = np.stack([low, np.minimum(low + 1, length - 1)], axis=-1)
            shares = np.stack([1 - part, part], axis=-1) / np.float32(count)
            index[regions, :, : 2 * count] = pairs.reshape(-1, bins, 2 * count)
            weight[regions, :, : 2 * count] = shares.reshape(-1, bins, 2 * count)
            used[regions, :, : 2 * count] = np.repeat(within, 2, axis=2)
        return cls.select(used, index, weight)

    @classmethod
    def select(cls, used: Array, index: Array, weight: Array) -> BinSamples:
        """Return the elements that the mask ``used[regions, bins, elements]`` selects."""
        counts = used.sum(axis=2)
        return cls(np.concatenate([[0], counts.reshape(-1).cumsum()]), index[used], weight[used])

    @classmethod
    def interpolate(cls, places: Array, length: int) -> BinSamples:
        """Return one linearly interpolated sample per bin, at ``places[regions, bins]``; none outside the axis."""
        within = (places >= 0) & (places <= length - 1)
        inside = np.where(within, places, np.float32(0))
        low = np.floor(inside)
        part, first = inside - low, low.astype(np.int64)
        index = np.stack([first, np.minimum(first + 1, length - 1)], axis=-1)
        weight = np.stack([1 - part, part], axis=-1)
        return cls.select(np.repeat(within[..., None], 2, axis=2), index, weight)


@backend.accelerates(ROIAlign3, ROIAlign9)
def align(op: ROIAlign3 | ROIAlign9, data: Value, rois: Value, batch_indices: Value) -> Kernel | None:
    """Return a ROIAlign kernel for f32 that averages samples."""
    if op.mode != "avg" or not is_f32(data, rois):
        return None
    _align.prepare()
    return Kernel(partial(_run_align, op))


def _run_align(op: ROIAlign3 | ROIAlign9, x: Array, rois: Array, entries: Array) -> Array:
    """Compute ROIAlign; invalid and very large regions are left to the reference."""
    images, channels, height, width = x.shape
    if not x.size or not len(rois) or rois.shape != (len(entries), 4):
        return op.evaluate(x, rois, entries)
    if (entries < 0).any() or (entries >= images).any():
        return op.evaluate(x, rois, entries)
    before, after = map(np.float32, op.shifts())
    left, top, right, bottom = ((rois + before) * np.float32(op.spatial_scale) + after).T
    wide, tall = right - left, bottom - top
    if not (np.isfinite(wide).all() and np.isfinite(tall).all()):
        return op.evaluate(x, rois, entries)
    if not after:
        wide, tall = np.maximum(wide, np.float32(1)), np.maximum(tall, np.float32(1))
    down, across = _samples(op, tall, op.pooled_h), _samples(op, wide, op.pooled_w)
    if not (down * op.pooled_h * across * op.pooled_w <= MOST_POINTS).all():
        return op.evaluate(x, rois, entries)
    if len(rois) * max(op.pooled_h * down.max(), op.pooled_w * across.max()) > MAX_SAMPLES:
        return op.evaluate(x, rois, entries)
    rows = BinSamples.of(top, tall, op.pooled_h, down.astype(np.int64), height)
    columns = BinSamples.of(left, wide, op.pooled_w, across.astype(np.int64), width)
    y = empty((len(rois), op.pooled_h, op.pooled_w, channels), np.float32)
    align_bins(x, np.ascontiguousarray(entries, np.int64), rows, columns, y)
    return channels_first(y)


def align_bins(x: Array, images: Array, rows: BinSamples, columns: BinSamples, y: Array) -> None:
    """Compute bins ``y[regions, rows, columns, channels]`` of ``x[N, C, height, width]`` from samples along both axes."""
    _, channels, height, width = x.shape
    row_offsets, column_offsets = rows.index * (4 * channels * width), columns.index * (4 * channels)
    most = int(np.diff(rows.starts).max(initial=0))
    job = RoiAlignJob.fill(
        rows=len(y) * y.shape[1], image_bytes=4 * channels * width * height, channels=channels,
        bin_rows=y.shape[1], bin_columns=y.shape[2], images=images, row_starts=rows.starts,
        row_offsets=row_offsets, row_weights=rows.weight, column_starts=columns.starts,
        column_offsets=column_offsets, column_weights=columns.weight, max_row_samples=most,
    )  # fmt: skip
    work = channels * len(columns.index) * most
    shared = threads_for(computed=work)
    parallel_for(_align.address, job, y.reshape(-1), contiguous(channels_last(x)), UNUSED, UNUSED, shared)


def _samples(op: ROIAlign3 | ROIAlign9, size: Array, bins: int) -> Array:
    """Return the number of samples of a bin along an axis for each region, in f64, as it may be very large."""
    if op.sampling_ratio:
        return np.full(len(size), op.sampling_ratio, np.float64)
    return np.maximum(np.ceil((size / bins).astype(np.float64)), 0)


_LOWEST = float(np.finfo(np.float32).min)
# Maximum number of channel vectors that are compared at a time, to hide the latency of a comparison.
AT_ONCE = 4


class BinsJob(Descriptor):
    """Parameters of `_largest_of_bins` and `_means_of_bins`.

    Sizes: regions; rows and columns of bins; result channels; rows, columns and channels of the maps.
    Addresses: image index of each region; start and end of each row and column of bins.
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
    emit: Emit, out: Register, x: Register, down: Register, rows: Register, across: Register, columns:
    Register, count: Register,
) -> None:  # fmt: skip
    """Store the maximum over ``rows`` x ``columns`` pixels for each of ``count`` channels, ignoring NaN.

    Rows are ``down`` bytes apart, pixels of a row ``across`` bytes.
    """
    builder = emit.builder

    for start, access in emit.strips(count, AT_ONCE):
        lowest = [emit.constant(_LOWEST)] * len(access)
        with emit.loop(rows, [emit.at(x, start), *lowest]) as (_, (line, *best), below):
            with emit.loop(columns, [line, *best]) as (_, (place, *now), beside):
                beside.append(emit.at(place, across))
                for j, (load, _) in enumerate(access):
                    pixel = load(emit.at(place, 4 * LANES * j))
                    is_larger = builder.fcmp_ordered(">", pixel, now[j])
                    beside.append(builder.select(is_larger, pixel, now[j]))
            below += [emit.at(line, down), *beside[1:]]
        for j, (_, store) in enumerate(access):
            store(below[1 + j], emit.at(out, emit.at(start, 4 * LANES * j)))


@Task
def _largest_of_bins(call: int, job: BinsJob, out: int, x: int) -> None:
    """Store the maximum of each bin, ``[regions, rows, columns, channels]``; a work unit is a row of bins.

    A holds channels-last maps.
    """
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


@instruction(*[types.int64] * 5)
def _mean(emit: Emit, out: Register, x: Register, down: Register, rows: Register, columns: Register) -> None:
    """Store the mean of ``rows`` x ``columns`` elements, summed lane by lane; 0 if there are none.

    Rows are ``down`` bytes apart; the elements of a row are contiguous.
    """
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


def _scalar(x: float) -> Register:
    return ir.Constant(F32, x)


@Task
def _means_of_bins(call: int, job: BinsJob, out: int, x: int) -> None:
    """Store the mean of each bin, ``[regions, depth, rows, columns]``; a work unit is a result channel of a region.

    A is ``[images, depth, rows, columns, height, width]``, with a plane for each bin.
    """
    lines, columns, depth = job.bin_rows, job.bin_columns, job.depth
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


@backend.accelerates(ROIPooling)
def pool(op: ROIPooling, data: Value, rois: Value) -> Kernel | None:
    """Return a ROIPooling kernel for f32."""
    if not is_f32(data, rois):
        return None
    (_align if op.method == "bilinear" else _largest_of_bins).prepare()
    return Kernel(partial(_sample if op.method == "bilinear" else _choose_largest, op))


@backend.accelerates(PSROIPooling)
def position_sensitive(op: PSROIPooling, data: Value, rois: Value) -> Kernel | None:
    """Return a PSROIPooling kernel for f32 that averages bins."""
    if op.mode != "average" or not is_f32(data, rois):
        return None
    _means_of_bins.prepare()
    return Kernel(partial(_means, op))


def _choose_largest(op: ROIPooling, x: Array, rois: Array) -> Array:
    if (bins := largest_bins(op, x, rois)) is None:
        return op.evaluate(x, rois)
    shape = len(rois), op.pooled_h, op.pooled_w, x.shape[1]
    y = empty(shape, np.float32)
    y[len(bins.images) :] = 0
    _run(_largest_of_bins.address, contiguous(channels_last(x)), y, bins, x.shape, x.shape[1])
    if (is_empty := bins.empty).any():
        y[: len(bins.images)][is_empty] = 0
    return channels_first(y)


def _means(op: PSROIPooling, x: Array, rois: Array) -> Array:
    size, depth = op.group_size, op.output_dim
    if (bins := mean_bins(op, x, rois)) is None:
        return op.evaluate(x, rois)
    y = empty((len(rois), depth, size, size), np.float32)
    _run(_means_of_bins.address, contiguous(x), y, bins, x.shape, depth)
    return y


def _run(task: int, maps: Array, y: Array, bins: Bins, shape: tuple[int, ...], depth: int) -> None:
    """Run a task on the bins of regions; ``shape`` is that of the images, ``[N, C, height, width]``."""
    images, rows, columns = bins
    job = BinsJob.fill(
        regions=len(images), bin_rows=rows.shape[1], bin_columns=columns.shape[1], depth=depth, height=shape[2],
        width=shape[3], channels=shape[1], images=images, row_bounds=rows,
        column_bounds=columns,
    )  # fmt: skip
    shared = threads_for(steps=y.size)
    parallel_for(task, job, y.reshape(-1), maps, UNUSED, UNUSED, shared)


def _sample(op: ROIPooling, x: Array, rois: Array) -> Array:
    """Compute one bilinear sample per bin; corners are fractions of the image."""
    if (regions := regions_of(op, x, rois)) is None:
        return op.evaluate(x, rois)
    images, corners = regions
    x1, y1, x2, y2 = corners.T
    rows = BinSamples.interpolate(_points(y1, y2, op.pooled_h, x.shape[2]), x.shape[2])
    columns = BinSamples.interpolate(_points(x1, x2, op.pooled_w, x.shape[3]), x.shape[3])
    y = empty((len(rois), op.pooled_h, op.pooled_w, x.shape[1]), np.float32)
    y[len(images) :] = 0
    align_bins(x, images, rows, columns, y[: len(images)])
    return channels_first(y)


def _points(first: Array, last: Array, count: int, length: int) -> Array:
    """Return the positions ``[regions, count]`` of samples along an axis, as `ops.detection.regions.points` does."""
    far = np.float32(length - 1)
    if count == 1:
        return np.asarray(np.float32(0.5) * (first + last) * far)[:, None]
    step = (last - first) * far / np.float32(count - 1)
    places = np.arange(count, dtype=np.float32) * step[:, None] + (first * far)[:, None]
    places[:, -1] = last * far
    return np.asarray(places)
