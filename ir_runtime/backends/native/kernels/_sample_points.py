"""Sampling of images at points: which pixels a vector of points is computed from, and their weights.

Everything is rounded as the reference does, so that floors and ties are the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from ....ops.image.grid_sample import MOST
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.vectors import F32, I64, INTS, LANES, Emit, Value

__all__ = ["AxisTaps", "GridJob", "Point", "gather", "grid_points", "point_taps", "weighted_sum"]

DOUBLES = ir.VectorType(ir.F64, LANES)
# Coefficients of cubic convolution (Keys 1981) with -0.75.
NEAR, FAR = (1.25, -2.25), (-0.75, 3.75, -6.0, 3.0)


class GridJob(Descriptor):
    """The job of `GRID_SAMPLE`: lengths; images and points of a unit, and how many units there are.

    A coordinate c is at ((c + 1) * scale - shift) / 2. Reflections repeat after a period; those of the second half are at turn
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


Point = tuple[Value, Value]
"""Vectors of coordinates: down and across."""


@dataclass(frozen=True)
class Axis:
    """An axis of the images, as vectors; `GridJob` says what they are."""

    scale: Value
    shift: Value
    last: Value
    length: Value
    period: Value
    turn: Value

    @classmethod
    def of(cls, emit: Emit, job: Value, first: int) -> Axis:
        """Return the axis whose fields begin at an index in a job."""
        words = [
            emit.load(emit.at(job, 8 * index), I64) for index in (GridJob.shift, *range(first, first + 4))
        ]
        shift, length, scale, period, turn = words
        last = emit.builder.sub(length, emit.i64(1))
        floats = [emit.splat(emit.builder.sitofp(word, F32)) for word in (scale, shift, last)]
        return cls(*floats, *(_splat_double(emit, word) for word in (length, period, turn)))


@dataclass(frozen=True)
class AxisTaps:
    """The taps of points along an axis: indices, which of them are inside, if not all are, and weights."""

    indices: list[Value]
    inside: list[Value | None]
    weights: list[Value]


def point_taps(emit: Emit, job: Value, mode: str, padding: str, point: Point) -> tuple[AxisTaps, AxisTaps]:
    """Return the taps of points along both axes."""
    axes = Axis.of(emit, job, GridJob.height), Axis.of(emit, job, GridJob.width)
    down, across = (_taps(emit, c, axis, mode, padding) for c, axis in zip(point, axes, strict=True))
    return down, across


def grid_points(emit: Emit, grid: Value, count: Value | None = None) -> Point:
    """Load a vector of points, or its first ``count``, which are stored horizontally, then vertically."""
    builder, vector = emit.builder, 4 * LANES
    if count is None:
        first, second = emit.load(grid), emit.load(emit.at(grid, vector))
    else:
        numbers = builder.mul(count, emit.i64(2))
        masks = emit.lane_mask(numbers), emit.lane_mask(builder.sub(numbers, emit.i64(LANES)))
        first, second = (emit.masked_load(emit.at(grid, vector * i), mask) for i, mask in enumerate(masks))
    across, down = (
        builder.shuffle_vector(first, second, ir.Constant(INTS, list(range(start, 2 * LANES, 2))))
        for start in (0, 1)
    )
    return down, across


def gather(emit: Emit, base: Value, indices: Value, inside: Value | None) -> Value:
    """Load f32 at indices from an address on; those that are not inside are not read, and 0."""
    return emit.gather(base, indices, inside)


def weighted_sum(emit: Emit, weights: list[Value], values: list[Value]) -> Value:
    """Return the sum of products, each rounded, in order; without weights, the value."""
    if not weights:
        return values[0]
    first, *others = (
        emit.fence(emit.multiply(weight, value)) for weight, value in zip(weights, values, strict=True)
    )
    for product in others:
        first = emit.add(first, product)
    return first


def _taps(emit: Emit, coordinates: Value, axis: Axis, mode: str, padding: str) -> AxisTaps:
    scaled = emit.fence(emit.multiply(emit.add(coordinates, emit.constant(1)), axis.scale))
    place = emit.multiply(emit.subtract(scaled, axis.shift), emit.constant(0.5))
    start = emit.round(place) if mode == "nearest" else emit.intrinsic("llvm.floor", place)
    weights = _weights(emit, emit.subtract(place, start), mode)
    steps = {"nearest": [0], "bilinear": [0, 1], "bicubic": [-1, 0, 1, 2]}[mode]
    far = emit.builder.fcmp_ordered(">", start, emit.constant(-MOST))  # not of NaN
    start = emit.minimum(emit.builder.select(far, start, emit.constant(-MOST)), emit.constant(MOST))
    taps = [_pixel(emit, emit.add(start, emit.constant(step)), axis, padding) for step in steps]
    return AxisTaps([index for index, _ in taps], [inside for _, inside in taps], weights)


def _weights(emit: Emit, part: Value, mode: str) -> list[Value]:
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


def _near(emit: Emit, part: Value) -> Value:
    found = emit.fence(emit.multiply(emit.constant(NEAR[0]), part))
    found = emit.multiply(emit.add(found, emit.constant(NEAR[1])), part)
    return emit.add(emit.fence(emit.multiply(found, part)), emit.constant(1))


def _far(emit: Emit, part: Value) -> Value:
    found = emit.constant(FAR[0])
    for term in FAR[1:]:
        found = emit.add(emit.fence(emit.multiply(found, part)), emit.constant(term))
    return found


def _pixel(emit: Emit, position: Value, axis: Axis, padding: str) -> tuple[Value, Value | None]:
    """Return the indices of pixels at whole positions, and which are inside; all are certainly those of pixels."""
    builder, zero = emit.builder, emit.constant(0)
    if padding == "reflection":
        return builder.fptosi(_reflected(emit, position, axis), INTS), None
    is_positive = builder.fcmp_ordered(">", position, zero)
    bounded = emit.minimum(builder.select(is_positive, position, zero), axis.last)
    inside = builder.fcmp_ordered("==", position, bounded) if padding == "zeros" else None
    return builder.fptosi(bounded, INTS), inside


def _reflected(emit: Emit, position: Value, axis: Axis) -> Value:
    """Return the reflections of positions, which are whole and at most `MOST`; so all numbers here are exact."""
    builder = emit.builder
    position = builder.fpext(position, DOUBLES)
    periods = emit.intrinsic("llvm.floor", builder.fdiv(position, axis.period))
    place = builder.fsub(position, builder.fmul(periods, axis.period))
    is_turned = builder.fcmp_ordered(">=", place, axis.length)
    return builder.select(is_turned, builder.fsub(axis.turn, place), place)


def _splat_double(emit: Emit, word: Value) -> Value:
    """Broadcast an i64 as f64."""
    return emit.splat(emit.builder.sitofp(word, ir.F64))
