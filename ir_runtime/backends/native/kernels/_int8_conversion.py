"""Conversion from numbers to levels and back: the first and the last task of a quantized subgraph.

Both use the reference's operations in the reference's order, so results are bit-identical.
"""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array
from ...common.fake_quantize import QuantizeParameter as P
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last
from ...patterns.quantized_graph import Quantizer
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.levels import GROUP, LEVEL_SIZE, load_levels, store_levels
from ..codegen.memory import fetch_add, load_f32, scratch_memory, store_f32
from ..codegen.vectors import F32, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ..threading.parallel import parallel_for, threads_for, was_refused
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._int8_maps import LevelMap, fill_borders, line_address

__all__ = ["Dequantizing", "Quantizing"]


class _ConversionJob(Descriptor):
    """The job of both tasks; strides and offsets are in bytes: ``x`` for numbers, ``y`` for levels.

    ``refused`` counts lines with NaN; ``borders`` is the address of the levels' `BorderRecord`.
    """

    lines: i64
    height: i64
    width: i64
    channels: i64
    in_planes: i64
    x_image: i64
    x_line: i64
    x_pixel: i64
    x_channel: i64
    y_image: i64
    y_line: i64
    y_pixel: i64
    y_offset: i64
    parameters: i64
    refused: i64
    borders: i64


def _scalars(emit: Emit, parameters: Value, count: int) -> list[Value]:
    """Load numbers, each broadcast to all lanes."""
    return [emit.splat(emit.load(emit.at(parameters, 4 * i), F32)) for i in range(count)]


def _level(emit: Emit, x: Value, p: list[Value]) -> tuple[Value, Value]:
    """Return levels in f32, with 0 for NaN, and an i32 mask of the NaN lanes."""
    bottom, top, low, width, steps = p
    share = emit.divide(emit.subtract(emit.minimum(emit.maximum(x, bottom), top), low), width)
    nan = emit.builder.fcmp_unordered("uno", x, x)
    level = emit.builder.select(nan, emit.constant(0), emit.round(emit.multiply(share, steps)))
    return level, emit.builder.sext(nan, INTS)


def _note(emit: Emit, seen: Value, nan: Value) -> None:
    """Merge NaN lanes into those seen before."""
    emit.store(emit.builder.or_(emit.load(seen, INTS), nan), seen)


def _any(emit: Emit, seen: Value) -> Value:
    """Return whether any lane was NaN, as i64."""
    return emit.builder.sext(emit.reduce(emit.load(seen, INTS), emit.builder.or_), ir.I64)


@instruction(*[types.int64] * 6, returns=types.int64)
def _quantize_planes(
    emit: Emit, x: Value, plane: Value, channels: Value, width: Value, parameters: Value, out: Value
) -> Value:  # fmt: skip
    """Quantize a line with channels ``plane`` bytes apart to one word per pixel; return whether any number is NaN."""
    p, builder, seen = _scalars(emit, parameters, 5), emit.builder, emit.stack_words(LANES // 2)

    for offset, load, store in emit.vectors(width):
        first, none = emit.at(x, offset), ir.Constant(INTS, None)
        with emit.loop(channels, [first, none, none]) as (_, (place, shift, word), following):
            level, nan = _level(emit, load(place), p)
            _note(emit, seen, nan)
            bits = builder.shl(builder.fptosi(level, INTS), shift)
            more = builder.add(shift, splat_bits(8 * LEVEL_SIZE))
            following += [emit.at(place, plane), more, builder.or_(word, bits)]
        store(builder.bitcast(following[2], VECTOR), emit.at(out, offset))
    return _any(emit, seen)


@instruction(*[types.int64] * 4, returns=types.int64)
def _quantize_pixel(emit: Emit, x: Value, channels: Value, parameters: Value, out: Value) -> Value:
    """Quantize a pixel's contiguous channels; return whether any number is NaN."""
    p, builder, seen = _scalars(emit, parameters, 5), emit.builder, emit.stack_words(LANES // 2)

    for offset, load, _ in emit.vectors(channels):
        level, nan = _level(emit, load(emit.at(x, offset)), p)
        _note(emit, seen, nan)
        along = builder.sdiv(builder.mul(offset, emit.i64(LEVEL_SIZE)), emit.i64(4))
        store_levels(emit, level, emit.at(out, along))  # maps have whole vectors
    return _any(emit, seen)


@instruction(*[types.int64] * 4)
def _dequantize_pixel(emit: Emit, out: Value, channels: Value, parameters: Value, x: Value) -> None:
    """Dequantize a pixel's levels."""
    builder = emit.builder
    steps, span, first = _scalars(emit, parameters, 3)

    for offset, _, store in emit.vectors(channels):
        along = builder.sdiv(builder.mul(offset, emit.i64(LEVEL_SIZE)), emit.i64(4))
        share = emit.divide(load_levels(emit, emit.at(x, along)), steps)
        product = emit.fence(emit.multiply(share, span))  # rounded before the sum
        store(emit.add(product, first), emit.at(out, offset))


@device
def _quantize_picture(job: _ConversionJob, x: int, out: int) -> int:
    """Quantize a line of a map with few words per pixel; return whether any number is NaN."""
    width, channels = job.width, job.channels
    plane, parameters = job.x_channel, job.parameters
    words = job.y_pixel // 4
    line = out if words == 1 else scratch_memory(4 * width)
    found: int = 0
    for word in range(words):
        first = word * GROUP
        count = max(min(channels - first, GROUP), 0)
        found |= _quantize_planes(x + first * plane, plane, count, width, parameters, line)
        if words > 1:
            for i in range(width):
                store_f32(out, i * words + word, load_f32(line, i))
    return found


@device
def _quantize_line(job: _ConversionJob, x: int, out: int) -> int:
    """Quantize a line; return whether any number is NaN."""
    if job.in_planes != 0:
        return _quantize_picture(job, x, out)
    found, channels = 0, job.channels
    for i in range(job.width):
        pixel, target = x + i * job.x_pixel, out + i * job.y_pixel
        found |= _quantize_pixel(pixel, channels, job.parameters, target)
    return found


@device
def _number_line(job: _ConversionJob, numbers: int, unit: int) -> int:
    """Return the address of a line of numbers."""
    return line_address(numbers, unit, job.height, job.x_image, job.x_line)


@device
def _level_line(job: _ConversionJob, levels: int, unit: int) -> int:
    """Return the address of a line of levels."""
    return line_address(levels + job.y_offset, unit, job.height, job.y_image, job.y_line)


@Task
def _to_levels(call: int, job: _ConversionJob, out: int, x: int) -> None:
    """Quantize f32 to levels; a unit is a line. Lines with NaN are counted in the job."""
    lines = job.lines
    for unit in each_unit(call, lines):
        fill_borders(job.borders, out, unit, 1)
        if _quantize_line(job, _number_line(job, x, unit), _level_line(job, out, unit)) != 0:
            fetch_add(job + 8 * _ConversionJob.refused)


@Task
def _from_levels(call: int, job: _ConversionJob, out: int, x: int) -> None:
    """Dequantize levels to f32; a unit is a line."""
    lines = job.lines
    for unit in each_unit(call, lines):
        target, source = _number_line(job, out, unit), _level_line(job, x, unit)
        for i in range(job.width):
            _dequantize_pixel(
                target + i * job.x_pixel, job.channels, job.parameters, source + i * job.y_pixel
            )


def _job(levels: LevelMap, numbers: Array, parameters: Array, in_planes: bool = False) -> Array:
    """Return the job for numbers ``[images, height, width, channels]``."""
    image, line, pixel, channel = numbers.strides
    return _ConversionJob.fill(
        lines=levels.images * levels.height, height=levels.height, width=levels.width, channels=levels.channels,
        in_planes=in_planes, x_image=image, x_line=line, x_pixel=pixel, x_channel=channel, y_image=levels.image,
        y_line=levels.line, y_pixel=levels.pixel, y_offset=levels.offset(), parameters=parameters, refused=0,
        borders=levels.borders,
    )  # fmt: skip


def _parameters(quantizer: Quantizer, first: P, last: P) -> Array:
    return np.ascontiguousarray(quantizer.parameters[first : last + 1], np.float32)


class Quantizing:
    """Quantizes a source of a quantized subgraph."""

    def __init__(self, levels: LevelMap, quantizer: Quantizer) -> None:
        self._map, self._parameters = levels, _parameters(quantizer, P.BOTTOM, P.STEPS)
        _to_levels.prepare()

    def __call__(self, x: Array) -> Array | None:
        """Return the map of levels for f32 numbers ``[images, channels, height, width]``; ``None`` if any is NaN."""
        out, in_planes = self._map.empty(), self._map.stored % LANES != 0
        x = _in_planes(x) if in_planes else _by_pixels(x)
        if not x.size:
            return out
        job = _job(self._map, channels_last(x), self._parameters, in_planes)
        count = threads_for(moved=8 * x.size)
        parallel_for(_to_levels.address, job, out, x, UNUSED, UNUSED, count)
        return None if was_refused(job, _ConversionJob.refused) else out


def _in_planes(x: Array) -> Array:
    """Return a tensor with contiguous rows, copying if needed."""
    return x if x.strides[3] == x.itemsize else contiguous(x)


def _by_pixels(x: Array) -> Array:
    """Return a tensor with contiguous channels, copying if needed."""
    return x if x.strides[1] == x.itemsize else channels_first(contiguous(channels_last(x)))


class Dequantizing:
    """Dequantizes the result of a quantized subgraph."""

    def __init__(self, levels: LevelMap, quantizer: Quantizer) -> None:
        self._map, self._parameters = levels, _parameters(quantizer, P.STEPS, P.FIRST)
        _from_levels.prepare()

    def __call__(self, levels: Array) -> Array:
        """Return f32 numbers ``[images, channels, height, width]``, channels-last in memory."""
        shape = self._map.images, self._map.height, self._map.width, self._map.channels
        out = empty(shape, np.float32)
        if out.size:
            job = _job(self._map, out, self._parameters)
            count = threads_for(moved=8 * out.size)
            parallel_for(_from_levels.address, job, out, levels, UNUSED, UNUSED, count)
        return channels_first(out)
