"""GridSample, vectorized over points; their pixels are gathered.

Every step is rounded as in the reference, so floors and ties agree.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.image import MOST, GridSample
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, instruction, types
from ..codegen.vectors import F32, I32, I64, INTS, LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous

__all__: list[str] = []

DOUBLES = ir.VectorType(ir.F64, LANES)
# Coefficients of cubic convolution (Keys 1981) with a = -0.75.
NEAR, FAR = (1.25, -2.25), (-0.75, 3.75, -6.0, 3.0)


class GridJob(Descriptor):
    """Parameters of the tasks in `PLANES`.

    A unit of work is ``unit_points`` points of ``unit_images`` images. A coordinate c maps to position
    ((c + 1) * scale - shift) / 2. Reflections repeat after ``period``; positions in the second half are mirrored to ``turn``
    minus the position.
    """

    channels: i64
    points: i64
    image_bytes: i64
    plane_bytes: i64
    images: i64
    unit_images: i64
    unit_points: i64
    units: i64
    shift: i64
    height: i64
    height_scale: i64
    height_period: i64
    height_turn: i64
    width: i64
    width_scale: i64
    width_period: i64
    width_turn: i64


Point = tuple[Register, Register]
"""Vectors of coordinates, vertical and horizontal."""


@dataclass(frozen=True)
class Axis:
    """An axis of the images: its fields of `GridJob` as vectors, and its last index."""

    scale: Register
    shift: Register
    last: Register
    length: Register
    period: Register
    turn: Register

    @classmethod
    def of(cls, emit: Emit, job: Register, first: int) -> Axis:
        """Load the axis whose fields start at field ``first`` of a job."""
        words = [
            emit.load(emit.at(job, 8 * index), I64) for index in (GridJob.shift, *range(first, first + 4))
        ]
        shift, length, scale, period, turn = words
        last = emit.builder.sub(length, emit.i64(1))
        floats = [emit.splat(emit.builder.sitofp(word, F32)) for word in (scale, shift, last)]
        return cls(*floats, *(_splat_double(emit, word) for word in (length, period, turn)))


@dataclass(frozen=True)
class AxisTaps:
    """The pixels that points are interpolated from, along one axis: indices, masks of those inside the image, and weights.

    A mask is ``None`` if all pixels are inside.
    """

    indices: list[Register]
    inside: list[Register | None]
    weights: list[Register]


def point_taps(emit: Emit, job: Register, mode: str, padding: str, point: Point) -> tuple[AxisTaps, AxisTaps]:
    """Return the pixels that points are interpolated from, along both axes."""
    axes = Axis.of(emit, job, GridJob.height), Axis.of(emit, job, GridJob.width)
    down, across = (_taps(emit, c, axis, mode, padding) for c, axis in zip(point, axes, strict=True))
    return down, across


def grid_points(emit: Emit, grid: Register, count: Register | None = None) -> Point:
    """Load a vector of ``(x, y)`` points, or its first ``count``, from a grid."""
    builder, vector = emit.builder, 4 * LANES
    if count is None:
        first, second = emit.load(grid), emit.load(emit.at(grid, vector))
    else:
        length = builder.mul(count, emit.i64(2))
        masks = emit.lane_mask(length), emit.lane_mask(builder.sub(length, emit.i64(LANES)))
        first, second = (emit.masked_load(emit.at(grid, vector * i), mask) for i, mask in enumerate(masks))
    across, down = (
        builder.shuffle_vector(first, second, ir.Constant(INTS, list(range(start, 2 * LANES, 2))))
        for start in (0, 1)
    )
    return down, across


def gather(emit: Emit, base: Register, indices: Register, inside: Register | None) -> Register:
    """Gather f32 elements by index from a base address; lanes that are not ``inside`` give 0, and their memory is not read."""
    return emit.gather(base, indices, inside)


def weighted_sum(emit: Emit, weights: list[Register], values: list[Register]) -> Register:
    """Return the sum of the rounded products in order; without weights, the only value."""
    if not weights:
        return values[0]
    first, *others = (
        emit.fence(emit.multiply(weight, value)) for weight, value in zip(weights, values, strict=True)
    )
    for other in others:
        first = emit.add(first, other)
    return first


def _taps(emit: Emit, coordinates: Register, axis: Axis, mode: str, padding: str) -> AxisTaps:
    scaled = emit.fence(emit.multiply(emit.add(coordinates, emit.constant(1)), axis.scale))
    place = emit.multiply(emit.subtract(scaled, axis.shift), emit.constant(0.5))
    start = emit.round(place) if mode == "nearest" else emit.intrinsic("llvm.floor", place)
    weights = _weights(emit, emit.subtract(place, start), mode)
    steps = {"nearest": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}[mode]
    far = emit.builder.fcmp_ordered(">", start, emit.constant(-MOST))  # false for NaN
    start = emit.minimum(emit.builder.select(far, start, emit.constant(-MOST)), emit.constant(MOST))
    taps = [_pixel(emit, emit.add(start, emit.constant(step)), axis, padding) for step in steps]
    return AxisTaps([index for index, _ in taps], [inside for _, inside in taps], weights)


def _weights(emit: Emit, part: Register, mode: str) -> list[Register]:
    one = emit.constant(1)
    if mode == "nearest":
        return []
    rest = emit.subtract(one, part)
    if mode == "bilinear":
        return [rest, part]
    return [
        _far(emit, emit.add(part, one)), _near(emit, part), _near(emit, rest),
        _far(emit, emit.subtract(emit.constant(2), part)),
    ]  # fmt: skip


def _near(emit: Emit, part: Register) -> Register:
    weight = emit.fence(emit.multiply(emit.constant(NEAR[0]), part))
    weight = emit.multiply(emit.add(weight, emit.constant(NEAR[1])), part)
    return emit.add(emit.fence(emit.multiply(weight, part)), emit.constant(1))


def _far(emit: Emit, part: Register) -> Register:
    weight = emit.constant(FAR[0])
    for term in FAR[1:]:
        weight = emit.add(emit.fence(emit.multiply(weight, part)), emit.constant(term))
    return weight


def _pixel(emit: Emit, position: Register, axis: Axis, padding: str) -> tuple[Register, Register | None]:
    """Return the pixel indices of integer positions, and for padding with zeros, a mask of those inside the image."""
    builder, zero = emit.builder, emit.constant(0)
    if padding == "reflection":
        return builder.fptosi(_reflect(emit, position, axis), INTS), None
    is_positive = builder.fcmp_ordered(">", position, zero)
    bounded = emit.minimum(builder.select(is_positive, position, zero), axis.last)
    inside = builder.fcmp_ordered("==", position, bounded) if padding == "zeros" else None
    return builder.fptosi(bounded, INTS), inside


def _reflect(emit: Emit, position: Register, axis: Axis) -> Register:
    """Reflect integer positions into the image; f64 is exact for positions up to `MOST`."""
    builder = emit.builder
    position = builder.fpext(position, DOUBLES)
    periods = emit.intrinsic("llvm.floor", builder.fdiv(position, axis.period))
    place = builder.fsub(position, builder.fmul(periods, axis.period))
    is_turned = builder.fcmp_ordered(">=", place, axis.length)
    return builder.select(is_turned, builder.fsub(axis.turn, place), place)


def _splat_double(emit: Emit, word: Register) -> Register:
    """Convert an i64 to f64 and broadcast it."""
    return emit.splat(emit.builder.sitofp(word, ir.F64))


# Samples of a unit.
UNIT = 1 << 10
# Maximum length of an axis with indices that are exact in f32, and number of pixels with indices in i32.
MAX_LENGTH, MAX_PIXELS = 1 << 24, 1 << 31


def _plane_samples(mode: str, padding: str) -> Instruction:
    """Return an instruction that samples the planes of an image at a vector of points at a time."""

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
        for index, _, mask in emit.masked_strips(count):
            points, target = (
                emit.at(address, builder.mul(index, emit.i64(size)))
                for address, size in ((grid, 8), (out, 4))
            )
            vector(emit, job, image, points, target, None if mask is None else builder.sub(count, index))

    return instruction(*[types.int64] * 5)(write)


def _plane_task(mode: str, padding: str) -> Task:
    """Return a task that samples images; a unit of work is a range of points of an image, or several whole images."""
    sample = _plane_samples(mode, padding)

    def sample_planes(call: int, job: GridJob, out: int, x: int, grid: int) -> None:
        images, together = job.images, job.unit_images
        points, block = job.points, job.unit_points
        units, channels = job.units, job.channels
        parts = (points + block - 1) // block
        for unit in each_unit(call, units):
            group = unit // parts
            start = (unit - group * parts) * block
            for image in range(group * together, min(group * together + together, images)):
                sample(
                    job, x + image * job.image_bytes, grid + 8 * (image * points + start),
                    out + 4 * (image * points * channels + start), min(block, points - start),
                )  # fmt: skip

    return Task(sample_planes, f"_{mode}_{padding}")


PLANES = {
    (mode, padding): _plane_task(mode, padding)
    for mode, padding in product(("nearest", "bilinear", "bicubic"), ("zeros", "border", "reflection"))
}
"""The tasks that sample images stored plane by plane, by interpolation and padding mode."""


@backend.accelerates(GridSample)
def grid_sample(op: GridSample, data: Value, grid: Value) -> Kernel | None:
    """Return a GridSample kernel for f32 data and grids, or ``None`` for other element types."""
    if not is_f32(data, grid):
        return None
    PLANES[op.mode, op.padding_mode].prepare()
    return Kernel(partial(_sample, op), accepts=_lengths, replay=replayed(alone=False))


def _lengths(x: Array, grid: Array) -> bool:
    """Accept nonempty images with a grid of coordinate pairs for each."""
    return len(x) == len(grid) and grid.shape[3] == 2 and x.shape[2] * x.shape[3] > 0


def _sample(op: GridSample, x: Array, grid: Array) -> Array:
    images, channels, height, width = x.shape
    _, rows, columns, _ = grid.shape
    y = empty((images, channels, rows, columns), np.float32)
    if not y.size or not _lengths(x, grid) or max(height, width) > MAX_LENGTH or height * width >= MAX_PIXELS:
        return op.evaluate(x, grid)
    points = rows * columns
    block, together = min(points, max(UNIT // channels, LANES)), max(1, UNIT // (points * channels))
    job = GridJob.fill(
        channels=channels, points=points, image_bytes=4 * channels * height * width,
        plane_bytes=4 * height * width, images=images, unit_images=together, unit_points=block,
        units=-(-images // together) * -(-points // block), shift=int(not op.align_corners),
        **_axis(op, "height", height), **_axis(op, "width", width),
    )  # fmt: skip
    shared = threads_for(steps=y.size)
    task = PLANES[op.mode, op.padding_mode]
    parallel_for(task.address, job, y.reshape(-1), contiguous(x), contiguous(grid), UNUSED, shared)
    return y


def _axis(op: GridSample, name: str, length: int) -> dict[str, int]:
    """Return the fields of `GridJob` for an axis of ``length`` pixels; ``name`` is ``height`` or ``width``."""
    scale = length - op.align_corners
    period = max(2 * scale, 1)
    turn = period if op.align_corners else period - 1
    return {name: length, f"{name}_scale": scale, f"{name}_period": period, f"{name}_turn": turn}
