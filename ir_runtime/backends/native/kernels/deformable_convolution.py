"""Deformable convolutions with one group and constant filters: sampled windows are the rows of a product.

Each element of a window is interpolated from two by two pixels, one vector of channels at a time; data is channels-last.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution import DeformableConvolution1, DeformableConvolution8, DeformableConvolutionBase
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last
from ...common.windows import WindowFit, filters_of, window_fit
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, instruction, types
from ..codegen.memory import load_f32, scratch_memory
from ..codegen.vectors import F32, I64, LANES, VECTOR, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, workspace
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous
from ._epilogue import Epilogue, FusedKernel
from ._gemm import Gemm
from ._panels import pack_panels
from ._rows import clear_row

__all__: list[str] = []

_DOUBLE = ir.F64
_DOUBLES = ir.VectorType(_DOUBLE, LANES)
_CORNERS = 4


class DeformedColumnsJob(Descriptor):
    """Parameters of `DEFORMED_COLUMNS`.

    The channels are divided into ``parts`` deformable groups of ``part_channels``, each with offsets of its own. An image
    has ``positions`` windows; ``down`` and ``across`` are the addresses of f64 arrays with the row and the column at which
    each starts. ``has_mask`` tells whether samples are multiplied by a mask. A unit of work is up to `LANES` consecutive
    windows of an image. The task samples ``units`` units, the first of which is ``first_unit``; ``first_row`` is the first of
    their windows, counted across images.
    """

    units: i64
    first_unit: i64
    first_row: i64
    height: i64
    width: i64
    parts: i64
    part_channels: i64
    positions: i64
    kernel_height: i64
    kernel_width: i64
    dilation_down: i64
    dilation_across: i64
    down: i64
    across: i64
    has_mask: i64


@dataclass(frozen=True)
class _PixelPair:
    """The two pixels around each position along an axis: f64 indices, whether they are in the image, and weights."""

    pixels: tuple[Register, Register]
    visible: tuple[Register, Register]
    weights: tuple[Register, Register]


def _constant(number: float) -> Register:
    return ir.Constant(_DOUBLES, [number] * LANES)


def _surrounding_pixels(
    emit: Emit, place: Register, inside: Register, length: Register, zeros: bool
) -> _PixelPair:
    """Return the pixels around positions along an axis of ``length`` pixels.

    Indices are clamped to the image. Positions that are not ``inside`` are not visible, nor, if ``zeros``, are pixels whose
    index was clamped.
    """
    builder, none = emit.builder, _constant(0)
    place = builder.select(inside, place, none)
    before, after = emit.intrinsic("llvm.floor", place), emit.intrinsic("llvm.ceil", place)
    part = builder.fsub(place, before)
    pixels, visible = [], []
    for pixel in (before, after):
        last = builder.fsub(length, _constant(1))
        bounded = builder.select(builder.fcmp_ordered(">", pixel, none), pixel, none)
        bounded = builder.select(builder.fcmp_ordered("<", bounded, last), bounded, last)
        pixels.append(bounded)
        exists = builder.fcmp_ordered("==", bounded, pixel)
        visible.append(builder.and_(inside, exists) if zeros else inside)
    weights = builder.fsub(_constant(1), part), part
    return _PixelPair((pixels[0], pixels[1]), (visible[0], visible[1]), weights)


def _place(emit: Emit, start: Register, offset: Register, shift: Register, mask: Register) -> Register:
    """Return f64 sampling positions along an axis, in the lanes of ``mask``: window starts plus offsets plus ``shift``.

    ``start`` is the address of the f64 window starts, ``offset`` that of the f32 offsets.
    """
    builder, starts = emit.builder, emit.masked_load(start, mask, _DOUBLES, 8)
    begin = builder.fadd(starts, emit.splat(builder.sitofp(shift, _DOUBLE)))
    return builder.fadd(begin, builder.fpext(emit.masked_load(offset, mask), _DOUBLES))


def _corners(zeros: bool) -> Instruction:
    """Return an instruction that stores the four pixels around each of up to `LANES` positions, and their weights.

    Pixels are stored as indices in the image, -1 for pixels outside. ``zeros`` says whether the data is zero-padded.
    """

    def write(  # noqa: PLR0913 (values in registers)
        emit: Emit, table: Register, down: Register, across: Register, offset: Register, apart: Register, i: Register, j: Register,
        height: Register, width: Register, count: Register,
    ) -> None:  # fmt: skip
        builder, mask = emit.builder, emit.lane_mask(count)
        lengths = [emit.splat(builder.sitofp(length, _DOUBLE)) for length in (height, width)]
        places = _place(emit, down, offset, i, mask), _place(emit, across, emit.at(offset, apart), j, mask)
        sign, lowest = (">", _constant(-1)) if zeros else (">=", _constant(0))
        inside, *others = (
            bound
            for place, length in zip(places, lengths, strict=True)
            for bound in (builder.fcmp_ordered(sign, place, lowest), builder.fcmp_ordered("<", place, length))
        )
        for bound in others:
            inside = builder.and_(inside, bound)
        rows, columns = (
            _surrounding_pixels(emit, place, inside, length, zeros)
            for place, length in zip(places, lengths, strict=True)
        )
        for corner in range(_CORNERS):
            r, c = divmod(corner, 2)
            pixel = builder.fadd(builder.fmul(rows.pixels[r], lengths[1]), columns.pixels[c])
            pixel = builder.select(builder.and_(rows.visible[r], columns.visible[c]), pixel, _constant(-1))
            weight = builder.fmul(rows.weights[r], columns.weights[c])
            emit.store(pixel, emit.at(table, 8 * LANES * corner))
            emit.store(
                builder.fptrunc(weight, VECTOR), emit.at(table, 8 * LANES * _CORNERS + 4 * LANES * corner)
            )

    return instruction(*[types.int64] * 10)(write)


@instruction(*[types.int64] * 6, types.float32, types.int64)
def _blend(  # noqa: PLR0913 (values in registers)
    emit: Emit, table: Register, lane: Register, x: Register, pixel_bytes: Register, nothing: Register, out: Register, factor: Register,
    channels: Register,
) -> None:  # fmt: skip
    """Store the channels at one position: the weighted sum of its four pixels in ``table``, times ``factor``.

    Args:
        emit: the code emitter.
        table: the pixels and weights that `_corners` stored for a vector of positions.
        lane: the index of the position in that vector.
        x: the address of the image.
        pixel_bytes: the bytes between pixels.
        nothing: the address of zeros, read in place of pixels outside the image.
        out: the address of the result.
        factor: the factor.
        channels: the number of channels.
    """
    builder = emit.builder
    starts, weights = [], []
    for corner in range(_CORNERS):
        place = emit.at(table, builder.mul(lane, emit.i64(8)))
        pixel = builder.fptosi(emit.load(emit.at(place, 8 * LANES * corner), _DOUBLE), I64)
        exists = builder.icmp_signed(">=", pixel, emit.i64(0))
        starts.append(builder.select(exists, emit.at(x, builder.mul(pixel, pixel_bytes)), nothing))
        place = emit.at(table, builder.mul(lane, emit.i64(4)))
        weights.append(emit.splat(emit.load(emit.at(place, 8 * LANES * _CORNERS + 4 * LANES * corner), F32)))
    factors = emit.splat(factor)

    for offset, load, store in emit.vectors(channels):
        total = emit.multiply(weights[0], load(emit.at(starts[0], offset)))
        for start, weight in zip(starts[1:], weights[1:], strict=True):
            total = emit.fma(weight, load(emit.at(start, offset)), total)
        store(emit.multiply(total, factors), emit.at(out, offset))


def _task(name: str, zeros: bool) -> Task:
    """Return a task that samples windows; a unit of work is a vector of result positions."""
    corners = _corners(zeros)

    def deformed(call: int, job: DeformedColumnsJob, out: int, x: int, offsets: int, mask: int) -> None:
        height, width = job.height, job.width
        parts, size = job.parts, job.part_channels
        positions = job.positions
        has_mask = job.has_mask
        tall, wide = job.kernel_height, job.kernel_width
        taps, channels = tall * wide, parts * size
        vectors = (positions + LANES - 1) // LANES
        units, before = job.units, job.first_unit
        table, nothing = scratch_memory(12 * LANES * _CORNERS), scratch_memory(4 * size)
        clear_row(nothing, size)
        for unit in each_unit(call, units):
            image = (before + unit) // vectors
            start = (before + unit - image * vectors) * LANES
            count = min(LANES, positions - start)
            source = x + 4 * image * height * width * channels
            first = image * positions + start - job.first_row
            row = out + 4 * first * taps * channels
            for tap in range(taps):
                i = tap // wide
                for part in range(parts):
                    element = (image * parts + part) * taps + tap
                    corners(
                        table, job.down + 8 * start,
                        job.across + 8 * start,
                        offsets + 4 * (2 * element * positions + start), 4 * positions,
                        i * job.dilation_down,
                        (tap - i * wide) * job.dilation_across, height, width, count,
                    )  # fmt: skip
                    for lane in range(count):
                        factor = np.float32(1)
                        if has_mask != 0:
                            factor = load_f32(mask, element * positions + start + lane)
                        _blend(
                            table, lane, source + 4 * part * size, 4 * channels, nothing,
                            row + 4 * ((lane * taps + tap) * channels + part * size), factor, size,
                        )  # fmt: skip

    return Task(deformed, name)


DEFORMED_COLUMNS = {
    zeros: _task(f"_deformed_{'zeros' if zeros else 'nothing'}", zeros) for zeros in (False, True)
}
"""Sample the windows of data A at offsets B, times a mask C; indexed by whether the data is zero-padded."""


# Elements of the windows that are sampled and multiplied at once, so that they stay in the cache.
BLOCK = 1 << 20


@backend.accelerates(DeformableConvolution1, DeformableConvolution8)
def deformable(op: DeformableConvolutionBase, data: Value, *others: Value) -> KernelTemplate | None:
    """Return a 2-D DeformableConvolution kernel for f32 data, with one group and constant filters; else ``None``."""
    if (w := filters_of(op, data, *others)) is None:
        return None
    return FusedKernel(lambda epilogue: _kernel(op, w, len(others) > 2, epilogue), 1)


class _Block(NamedTuple):
    """The range of windows that are sampled and multiplied at once, and the `DeformedColumnsJob`."""

    first: int
    end: int
    job: Array


def _blocks(
    op: DeformableConvolutionBase, kernel: Sequence[int], channels: int, has_mask: bool, images: int,
    lengths: Sequence[int], fit: WindowFit,
) -> list[_Block]:  # fmt: skip
    """Divide the windows of data of spatial shape ``lengths`` into blocks.

    ``kernel`` is the spatial shape of the filters; ``fit`` has the padding and the number of windows along each axis.
    """
    down, across = _starts(op, fit)
    positions, parts = down.size, op.deformable_group
    vectors = -(-positions // LANES)
    together = max(1, BLOCK // (LANES * math.prod(kernel) * channels))

    def block(unit: int) -> _Block:
        end = min(unit + together, images * vectors)
        first, last = (
            image * positions + min(vector * LANES, positions)
            for image, vector in (divmod(place, vectors) for place in (unit, end))
        )
        job = DeformedColumnsJob.fill(
            units=end - unit, first_unit=unit, first_row=first, height=lengths[0], width=lengths[1],
            parts=parts, part_channels=channels // parts, positions=positions, kernel_height=kernel[0],
            kernel_width=kernel[1], dilation_down=op.dilations[0], dilation_across=op.dilations[1], down=down,
            across=across, has_mask=int(has_mask),
        )  # fmt: skip
        return _Block(first, last, job)

    return [block(unit) for unit in range(0, images * vectors, together)]


def _starts(op: DeformableConvolutionBase, fit: WindowFit) -> tuple[Array, Array]:
    """Return the first row and the first column of the window of each result position, as f64."""
    rows, columns = (
        np.arange(count, dtype=np.float64) * stride - before
        for count, stride, (before, _) in zip(fit.out, op.strides, fit.pads, strict=True)
    )
    return np.repeat(rows, len(columns)), np.tile(columns, len(rows))


def _kernel(op: DeformableConvolutionBase, w: Array, has_mask: bool, epilogue: Epilogue) -> Kernel:
    outputs, channels, *kernel = w.shape
    row = math.prod(kernel) * channels
    panels = pack_panels(w.transpose(0, 2, 3, 1).reshape(1, outputs, 1, row), epilogue.scale, epilogue.shift)
    product, fit = Gemm(panels, epilogue, outputs, 1, row, UNUSED), window_fit(op, tuple(kernel))
    task = DEFORMED_COLUMNS[isinstance(op, DeformableConvolution8) and op.bilinear_interpolation_pad]
    task.prepare()

    @lru_cache(maxsize=64)
    def blocks(images: int, lengths: tuple[int, ...]) -> list[_Block]:
        return _blocks(op, kernel, channels, has_mask, images, lengths, fit(lengths))

    def compute(x: Array, offsets: Array, _: Array, *others: Array) -> Array:
        y = empty((len(x), *fit(x.shape[2:]).out, outputs), np.float32)
        if not y.size:
            return channels_first(y)
        pixels, offsets, rows = contiguous(channels_last(x)), contiguous(offsets), y.reshape(-1, outputs)
        mask, extras = (contiguous(others[0]), others[1:]) if has_mask else (UNUSED, others)
        tensors = {
            index: contiguous(channels_last(extras[index])).reshape(-1, outputs)
            for index in product.packed_epilogue.extras
        }
        parts = blocks(len(x), x.shape[2:])
        columns = workspace(max(block.end - block.first for block in parts) * row)
        for first, end, job in parts:
            part = columns[: (end - first) * row]
            shared = threads_for(steps=part.size // 4)
            parallel_for(task.address, job, part, pixels, offsets, mask, shared)
            pieces = [tensors[i][first:end] if i in tensors else extra for i, extra in enumerate(extras)]
            product.multiply(part, rows[first:end], pieces)
        return channels_first(y)

    return Kernel(compute, replay=replayed())
