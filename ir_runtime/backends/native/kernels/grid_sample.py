"""GridSample: a vector of points at a time, whose pixels are gathered."""

from __future__ import annotations

from functools import partial
from itertools import product

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.image.grid_sample import GridSample
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from .._backend import backend
from ..codegen.language import Instruction, instruction, types
from ..codegen.vectors import I32, I64, LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._sample_points import GridJob, gather, grid_points, point_taps, weighted_sum
from .contiguous import contiguous

__all__: list[str] = []

# Samples of a unit.
UNIT = 1 << 10
# Lengths of which f32 has all indices, and pixels whose places i32 has.
MAX_LENGTH, MAX_PIXELS = 1 << 24, 1 << 31


def _plane_samples(mode: str, padding: str) -> Instruction:
    """Return an instruction that samples the planes of an image at points, a vector of them at a time."""

    def vector(
        emit: Emit, job: Register, image: Register, grid: Register, out: Register, count: Register | None
    ) -> None:
        builder = emit.builder
        down, across = point_taps(emit, job, mode, padding, grid_points(emit, grid, count))
        channels, plane, points = (
            emit.load(emit.at(job, 8 * index), I64)
            for index in (GridJob.channels, GridJob.plane_bytes, GridJob.points)
        )
        width = emit.splat(builder.trunc(emit.load(emit.at(job, 8 * GridJob.width), I64), I32))
        starts = [builder.mul(index, width) for index in down.indices]
        with emit.loop(channels, [image, out]) as (_, (source, target), following):
            rows = []
            for start, row_inside in zip(starts, down.inside, strict=True):
                pixels = []
                for index, inside in zip(across.indices, across.inside, strict=True):
                    both = (
                        inside if row_inside is None or inside is None else builder.and_(row_inside, inside)
                    )
                    pixels.append(gather(emit, source, builder.add(start, index), both))
                rows.append(weighted_sum(emit, across.weights, pixels))
            total = weighted_sum(emit, down.weights, rows)
            if count is None:
                emit.store(total, target)
            else:
                emit.masked_store(total, target, emit.lane_mask(count))
            following += [emit.at(source, plane), emit.at(target, builder.mul(points, emit.i64(4)))]

    def write(
        emit: Emit, job: Register, image: Register, grid: Register, out: Register, count: Register
    ) -> None:
        builder = emit.builder
        whole = builder.sdiv(count, emit.i64(LANES))
        with emit.loop(whole) as (i, _, _following):
            vector(
                emit, job, image, emit.at(grid, builder.mul(i, emit.i64(8 * LANES))),
                emit.at(out, builder.mul(i, emit.i64(4 * LANES))), None,
            )  # fmt: skip
        done = builder.mul(whole, emit.i64(LANES))
        rest = builder.sub(count, done)
        with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
            vector(
                emit, job, image, emit.at(grid, builder.mul(done, emit.i64(8))),
                emit.at(out, builder.mul(done, emit.i64(4))), rest,
            )  # fmt: skip

    return instruction(*[types.int64] * 5)(write)


def _plane_task(mode: str, padding: str) -> Task:
    """Return a task of which a unit is some points of an image, or all of several images."""
    sample = _plane_samples(mode, padding)

    def sample_planes(call: int) -> None:
        address, out, x, grid, _, _ = load_args(call)
        job = GridJob.at(address)
        images, together = job.images, job.unit_images
        points, some = job.points, job.unit_points
        units, channels = job.units, job.channels
        parts = (points + some - 1) // some
        for unit in each_unit(call, units):
            group = unit // parts
            start = (unit - group * parts) * some
            for image in range(group * together, min(group * together + together, images)):
                sample(
                    job, x + image * job.image_bytes, grid + 8 * (image * points + start),
                    out + 4 * (image * points * channels + start), min(some, points - start),
                )  # fmt: skip

    sample_planes.__qualname__ = f"_{mode}_{padding}"
    return Task(sample_planes)


PLANES = {
    (mode, padding): _plane_task(mode, padding)
    for mode, padding in product(("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"))
}
"""Compute samples from images that are stored plane by plane."""


@backend.accelerates(GridSample)
def grid_sample(op: GridSample, data: Value, grid: Value) -> Kernel | None:
    """f32."""
    if not is_f32(data, grid):
        return None
    PLANES[op.mode, op.padding_mode].prepare()
    return Kernel(partial(_sampled, op), accepts=_lengths, replay=replayed(alone=False))


def _lengths(x: Array, grid: Array) -> bool:
    """Accept images with pixels, and as many grids of pairs."""
    return len(x) == len(grid) and grid.shape[3] == 2 and x.shape[2] * x.shape[3] > 0


def _sampled(op: GridSample, x: Array, grid: Array) -> Array:
    images, channels, height, width = x.shape
    _, rows, columns, _ = grid.shape
    y = empty((images, channels, rows, columns), np.float32)
    if not y.size or not _lengths(x, grid) or max(height, width) > MAX_LENGTH or height * width >= MAX_PIXELS:
        return op.evaluate(x, grid)
    points = rows * columns
    some, together = min(points, max(UNIT // channels, LANES)), max(1, UNIT // (points * channels))
    job = GridJob.fill(
        channels=channels, points=points, image_bytes=4 * channels * height * width, plane_bytes=4 * height * width,
        images=images, unit_images=together, unit_points=some, units=-(-images // together) * -(-points // some),
        shift=int(not op.align_corners), **_axis(op, "height", height), **_axis(op, "width", width),
    )  # fmt: skip
    shared = threads_for(steps=y.size)
    task = PLANES[op.mode, op.padding_mode]
    parallel_for(task.address, job, y.reshape(-1), contiguous(x), contiguous(grid), UNUSED, shared)
    return y


def _axis(op: GridSample, name: str, length: int) -> dict[str, int]:
    """Return the fields of an axis."""
    scale = length - op.align_corners
    period = max(2 * scale, 1)
    turn = period if op.align_corners else period - 1
    return {name: length, f"{name}_scale": scale, f"{name}_period": period, f"{name}_turn": turn}
