"""Quantized networks in integer arithmetic: products of 8-bit levels and weights, and all layers between them.

Each quantized subgraph from `find_subgraph` becomes one kernel, which quantizes its inputs, passes levels
from layer to layer, and dequantizes its result. NaN has no level: inputs with NaN run layer by layer instead.
Sums are exact; a level differs from the reference only if rounding decides between two levels.

The first and the last task convert f32 to levels and back with the operations of the reference in the same
order, so their results are bit-identical. Each node between them has a task with packed weights.

Some convolutions use Winograd's F(4x4, 3x3), exact in integers (Lavin and Gray 2016, arXiv:1509.09308). A tile
takes 36 16-bit products instead of 144 8-bit products; each thread takes blocks of tiles through all phases,
in its own cache. Filters are transformed without the denominators of the transform, so transformed levels and
weights are 16-bit integers, and results are 24 * 24 times as large. Sums may wrap around: they are exact
modulo 2^32, and results divided by 9 and by 64 are exact modulo 2^26, which is enough for all sums of the
layer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np

from ....ir.graph import Layer, Port
from ....ir.tensor import Array
from ....ops.convolution import Convolution, ForwardConvolution
from ....ops.quantization import FakeQuantize
from ... import Fusion, Kernel, KernelTemplate, MatchContext, Refusal
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last
from ...common.post_op import QuantizeParameter as P
from ...patterns.quantized_graph import (
    MAX_LEVEL,
    LayerByLayer,
    MaxPool,
    Node,
    Pooled,
    Product,
    Quantizer,
    Source,
    Subgraph,
    add_deferred,
    find_subgraph,
)
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.levels import GROUP, LEVEL_SIZE, WEIGHT_DTYPE, dot_pairs, load_levels, store_levels, to_levels
from ..codegen.memory import fetch_add, load_f32, scratch_memory, store_f32
from ..codegen.target import TARGET
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, Value, splat_bits
from ..packed_memory import aligned_empty
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, pays_to_share, threads, threads_for, was_refused
from ..threading.task import UNUSED, Task, each_unit, shared_counters
from ._copy import contiguous
from ._gemm_tile import ROW_MULTIPLE, WIDE, WIDE_ROWS
from ._int8_gemm import (
    AheadRecord,
    LevelBounds,
    LevelsGemmJob,
    emit_even_tiles,
    levels_gemm,
    load_bounds,
    pack_levels,
    store_rows,
)
from ._int8_maps import (
    MAX_SHARES,
    IntegerWeights,
    LevelMap,
    MapJob,
    fill_borders,
    first_share,
    integer_weights,
    line_address,
    share_of_lines,
    share_starts,
    take_units,
)
from ._int8_windows import (
    BLOCK,
    FORMS,
    MAXIMUM,
    TALL,
    LevelsWindowsJob,
    are_interleaved,
    levels_windows,
    pack_blocks,
    pack_depthwise,
    pack_row,
)
from ._panels import Panel
from ._winograd import TILE_ELEMENTS

__all__ = [
    "bind",
    "block_tiles",
    "Bound",
    "COLUMNS",
    "Dequantizing",
    "levels_winograd",
    "prefetch_weights",
    "Quantizing",
    "requantization",
]

IntegerNode: TypeAlias = Node[IntegerWeights]
IntegerPooled: TypeAlias = Pooled[IntegerWeights]
IntegerProduct: TypeAlias = Product[IntegerWeights]
IntegerSubgraph: TypeAlias = Subgraph[IntegerWeights]


class IntegerKernels:
    """The layers that integer kernels support; implements `Kernels` of `backends.patterns.quantized_graph`."""

    def weights(self, context: MatchContext, filters: Port, op: ForwardConvolution) -> IntegerWeights | None:
        """Return integer weights, or ``None`` if no kernel supports them."""
        weights = integer_weights(context, filters, op)
        return weights if weights is not None and _fits(op, weights) else None

    def compute_pooling(self, op: MaxPool, data: IntegerNode) -> bool:
        """Return whether windows have no dilation, and padding is absent or has level 0, which never exceeds the data."""
        if any(n != 1 for n in op.spread()):
            return False
        return not (data.quantizer.zero and any(map(any, op.pads(data.shape[2:], op.kernel))))

    def add_residual(self, op: ForwardConvolution) -> bool:
        """Return whether the layer is a convolution without groups."""
        return isinstance(op, Convolution)


def _fits(op: ForwardConvolution, weights: IntegerWeights) -> bool:
    """Return whether a kernel supports these weights, without overflow of the sums."""
    if weights.numbers.ndim != (4 if isinstance(op, Convolution) else 5):
        return False
    if isinstance(op, Convolution):
        return bool(weights.numbers[0].size * MAX_LEVEL * 128 < 1 << 31)
    _, outputs, channels, tall, wide = weights.numbers.shape
    has_form = (wide, op.strides[1]) in FORMS and all(n == 1 for n in op.dilations)
    return outputs == channels == 1 and has_form and tall * wide * MAX_LEVEL * 128 < 1 << 24


class _ConversionJob(Descriptor):
    """Parameters of `_quantize_map` and `_dequantize_map`; strides and offsets are in bytes, ``x`` of f32, ``y`` of levels.

    ``refused`` counts lines with NaN; ``borders`` is the address of the `BorderRecord` of the levels.
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
    """Load ``count`` f32 parameters, each broadcast to all lanes."""
    return [emit.splat(emit.load(emit.at(parameters, 4 * i), F32)) for i in range(count)]


def _level(emit: Emit, x: Value, p: list[Value]) -> tuple[Value, Value]:
    """Return levels in f32, with 0 for NaN, and an i32 mask of the lanes with NaN."""
    bottom, top, low, width, steps = p
    share = emit.divide(emit.subtract(emit.minimum(emit.maximum(x, bottom), top), low), width)
    nan = emit.builder.fcmp_unordered("uno", x, x)
    level = emit.builder.select(nan, emit.constant(0), emit.round(emit.multiply(share, steps)))
    return level, emit.builder.sext(nan, INTS)


def _note_nan(emit: Emit, seen: Value, nan: Value) -> None:
    """Add lanes with NaN to the mask ``seen``."""
    emit.store(emit.builder.or_(emit.load(seen, INTS), nan), seen)


def _any_nan(emit: Emit, seen: Value) -> Value:
    """Return an i64 that is nonzero if any lane of the mask ``seen`` is set."""
    return emit.builder.sext(emit.reduce(emit.load(seen, INTS), emit.builder.or_), ir.I64)


@instruction(*[types.int64] * 6, returns=types.int64)
def _quantize_planes(
    emit: Emit, x: Value, plane: Value, channels: Value, width: Value, parameters: Value, out: Value
) -> Value:  # fmt: skip
    """Quantize a line with channels ``plane`` bytes apart to one word per pixel; return whether it has NaN."""
    p, builder, seen = _scalars(emit, parameters, 5), emit.builder, emit.stack_words(LANES // 2)

    for offset, load, store in emit.vectors(width):
        first, none = emit.at(x, offset), ir.Constant(INTS, None)
        with emit.loop(channels, [first, none, none]) as (_, (place, shift, word), following):
            level, nan = _level(emit, load(place), p)
            _note_nan(emit, seen, nan)
            bits = builder.shl(builder.fptosi(level, INTS), shift)
            next_shift = builder.add(shift, splat_bits(8 * LEVEL_SIZE))
            following += [emit.at(place, plane), next_shift, builder.or_(word, bits)]
        store(builder.bitcast(following[2], VECTOR), emit.at(out, offset))
    return _any_nan(emit, seen)


@instruction(*[types.int64] * 4, returns=types.int64)
def _quantize_pixel(emit: Emit, x: Value, channels: Value, parameters: Value, out: Value) -> Value:
    """Quantize the contiguous channels of a pixel; return whether they have NaN."""
    p, builder, seen = _scalars(emit, parameters, 5), emit.builder, emit.stack_words(LANES // 2)

    for offset, load, _ in emit.vectors(channels):
        level, nan = _level(emit, load(emit.at(x, offset)), p)
        _note_nan(emit, seen, nan)
        along = builder.sdiv(builder.mul(offset, emit.i64(LEVEL_SIZE)), emit.i64(4))
        store_levels(emit, level, emit.at(out, along))  # pixels of maps are padded to whole vectors
    return _any_nan(emit, seen)


@instruction(*[types.int64] * 4)
def _dequantize_pixel(emit: Emit, out: Value, channels: Value, parameters: Value, x: Value) -> None:
    """Dequantize the levels of a pixel."""
    builder = emit.builder
    steps, span, first = _scalars(emit, parameters, 3)

    for offset, _, store in emit.vectors(channels):
        along = builder.sdiv(builder.mul(offset, emit.i64(LEVEL_SIZE)), emit.i64(4))
        share = emit.divide(load_levels(emit, emit.at(x, along)), steps)
        product = emit.fence(emit.multiply(share, span))  # rounded before the sum
        store(emit.add(product, first), emit.at(out, offset))


@device
def _quantize_picture(job: _ConversionJob, x: int, out: int) -> int:
    """Quantize a line of an image with few channels; return whether it has NaN."""
    width, channels = job.width, job.channels
    plane, parameters = job.x_channel, job.parameters
    words = job.y_pixel // 4
    line = out if words == 1 else scratch_memory(4 * width)
    has_nan: int = 0
    for word in range(words):
        first = word * GROUP
        count = max(min(channels - first, GROUP), 0)
        has_nan |= _quantize_planes(x + first * plane, plane, count, width, parameters, line)
        if words > 1:
            for i in range(width):
                store_f32(out, i * words + word, load_f32(line, i))
    return has_nan


@device
def _quantize_line(job: _ConversionJob, x: int, out: int) -> int:
    """Quantize a line; return whether it has NaN."""
    if job.in_planes != 0:
        return _quantize_picture(job, x, out)
    has_nan, channels = 0, job.channels
    for i in range(job.width):
        pixel, target = x + i * job.x_pixel, out + i * job.y_pixel
        has_nan |= _quantize_pixel(pixel, channels, job.parameters, target)
    return has_nan


@device
def _f32_line(job: _ConversionJob, values: int, unit: int) -> int:
    """Return the address of a line of f32."""
    return line_address(values, unit, job.height, job.x_image, job.x_line)


@device
def _level_line(job: _ConversionJob, levels: int, unit: int) -> int:
    """Return the address of a line of levels."""
    return line_address(levels + job.y_offset, unit, job.height, job.y_image, job.y_line)


@Task
def _quantize_map(call: int, job: _ConversionJob, out: int, x: int) -> None:
    """Quantize f32 to levels, and count lines with NaN in the job; a work unit is a line."""
    lines = job.lines
    for unit in each_unit(call, lines):
        fill_borders(job.borders, out, unit, 1)
        if _quantize_line(job, _f32_line(job, x, unit), _level_line(job, out, unit)) != 0:
            fetch_add(job + 8 * _ConversionJob.refused)


@Task
def _dequantize_map(call: int, job: _ConversionJob, out: int, x: int) -> None:
    """Dequantize levels to f32; a work unit is a line."""
    lines = job.lines
    for unit in each_unit(call, lines):
        target, source = _f32_line(job, out, unit), _level_line(job, x, unit)
        for i in range(job.width):
            _dequantize_pixel(
                target + i * job.x_pixel, job.channels, job.parameters, source + i * job.y_pixel
            )


def _job(levels: LevelMap, values: Array, parameters: Array, in_planes: bool = False) -> Array:
    """Return the job for a map of levels and f32 ``values[images, height, width, channels]``."""
    image, line, pixel, channel = values.strides
    return _ConversionJob.fill(
        lines=levels.images * levels.height, height=levels.height, width=levels.width, channels=levels.channels,
        in_planes=in_planes, x_image=image, x_line=line, x_pixel=pixel, x_channel=channel, y_image=levels.image,
        y_line=levels.line, y_pixel=levels.pixel, y_offset=levels.offset(), parameters=parameters, refused=0,
        borders=levels.borders,
    )  # fmt: skip


def _parameters(quantizer: Quantizer, first: P, last: P) -> Array:
    return np.ascontiguousarray(quantizer.parameters[first : last + 1], np.float32)


class Quantizing:
    """A function that quantizes a source of a quantized subgraph."""

    def __init__(self, levels: LevelMap, quantizer: Quantizer) -> None:
        self._map, self._parameters = levels, _parameters(quantizer, P.BOTTOM, P.STEPS)
        _quantize_map.prepare()

    def __call__(self, x: Array) -> Array | None:
        """Return the map of levels of f32 ``x[images, channels, height, width]``, or ``None`` if ``x`` has NaN."""
        out, in_planes = self._map.empty(), self._map.stored % LANES != 0
        x = _make_rows_contiguous(x) if in_planes else _make_pixels_contiguous(x)
        if not x.size:
            return out
        job = _job(self._map, channels_last(x), self._parameters, in_planes)
        count = threads_for(moved=8 * x.size)
        parallel_for(_quantize_map.address, job, out, x, UNUSED, UNUSED, count)
        return None if was_refused(job, _ConversionJob.refused) else out


def _make_rows_contiguous(x: Array) -> Array:
    """Return the tensor with contiguous rows, copied if needed."""
    return x if x.strides[3] == x.itemsize else contiguous(x)


def _make_pixels_contiguous(x: Array) -> Array:
    """Return the tensor with contiguous channels, copied if needed."""
    return x if x.strides[1] == x.itemsize else channels_first(contiguous(channels_last(x)))


class Dequantizing:
    """A function that dequantizes the result of a quantized subgraph."""

    def __init__(self, levels: LevelMap, quantizer: Quantizer) -> None:
        self._map, self._parameters = levels, _parameters(quantizer, P.STEPS, P.FIRST)
        _dequantize_map.prepare()

    def __call__(self, levels: Array) -> Array:
        """Return the levels as f32 ``[images, channels, height, width]``, channels-last in memory."""
        shape = self._map.images, self._map.height, self._map.width, self._map.channels
        out = empty(shape, np.float32)
        if out.size:
            job = _job(self._map, out, self._parameters)
            count = threads_for(moved=8 * out.size)
            parallel_for(_dequantize_map.address, job, out, levels, UNUSED, UNUSED, count)
        return channels_first(out)


COLUMNS = LANES * WIDE
"""The output channels of a panel."""
SUM_BITS = 26
"""The maximum number of bits of the sums of a Winograd convolution, including the sign."""

_LINE = 64  # bytes of a cache line
_LEVELS = ir.VectorType(ir.IntType(8 * LEVEL_SIZE), 2 * LANES)
_SHORTS = ir.VectorType(ir.I16, 2 * LANES)
# Extra factors of the rows of transformed filters, besides their denominators, that save the output transform multiplications.
FILTER_FACTORS = 6, 4, 4, 1, 1, 12
# The inverse of 9 modulo 2^32.
_NINTH = pow(9, -1, 1 << 32)


def _shift_left(emit: Emit, x: Value, bits: int) -> Value:
    return emit.builder.shl(x, ir.Constant(x.type, [bits] * x.type.count))


def _input_transform(emit: Emit, d: Sequence[Value]) -> list[Value]:
    add, sub = emit.builder.add, emit.builder.sub
    even, odd = sub(d[4], _shift_left(emit, d[2], 2)), sub(d[3], _shift_left(emit, d[1], 2))
    wide, narrow = sub(d[4], d[2]), _shift_left(emit, sub(d[3], d[1]), 1)
    return [
        add(_shift_left(emit, sub(d[0], d[2]), 2), wide),
        add(even, odd),
        sub(even, odd),
        add(wide, narrow),
        sub(wide, narrow),
        sub(sub(d[5], d[3]), _shift_left(emit, narrow, 1)),
    ]


def _output_transform(emit: Emit, m: Sequence[Value]) -> list[Value]:
    """Return 24 times the results, from sums that include `FILTER_FACTORS`."""
    add, sub = emit.builder.add, emit.builder.sub
    near, far, across = add(m[1], m[2]), add(m[3], m[4]), sub(m[1], m[2])
    along = _shift_left(emit, sub(m[3], m[4]), 1)
    return [
        add(add(m[0], near), far),
        add(across, along),
        add(near, _shift_left(emit, far, 2)),
        add(across, _shift_left(emit, add(m[5], _shift_left(emit, along, 1)), 1)),
    ]


@instruction(*[types.int64] * 6)
def transform_levels(
    emit: Emit, x: Value, line: Value, pixel: Value, pairs: Value, out: Value, apart: Value
) -> None:  # fmt: skip
    """Transform a tile of levels.

    Args:
        emit: the code emitter.
        x: the address of the first pixel.
        line: the bytes between rows of pixels.
        pixel: the bytes between columns.
        pairs: the number of pairs of channel vectors.
        out: the address of the first transformed element, i16.
        apart: the bytes between transformed elements.
    """
    builder = emit.builder
    rows = [emit.at(x, builder.mul(line, emit.i64(a))) for a in range(6)]
    columns = [builder.mul(pixel, emit.i64(b)) for b in range(6)]
    with emit.loop(pairs) as (i, _, _following):
        offset = builder.mul(i, emit.i64(2 * LANES * LEVEL_SIZE))
        done = []
        for column in columns:
            places = [emit.at(emit.at(row, column), offset) for row in rows]
            levels = [emit.load(place, _LEVELS) for place in places]
            done.append(_input_transform(emit, [builder.zext(level, _SHORTS) for level in levels]))
        target = emit.at(out, builder.mul(i, emit.i64(4 * LANES)))
        for a in range(6):
            for b, value in enumerate(_input_transform(emit, [column[a] for column in done])):
                emit.store(value, emit.at(target, builder.mul(apart, emit.i64(6 * a + b))))


@instruction(*[types.int64] * 6)
def multiply_tiles(
    emit: Emit, count: Value, x: Value, step: Value, depth: Value, panel: Value, out: Value
) -> None:  # fmt: skip
    """Multiply one transformed element of several tiles by a panel, prefetching the next panel.

    Args:
        emit: the code emitter.
        count: the number of tiles.
        x: the address of the element of the first tile.
        step: the bytes between tiles.
        depth: the number of channel pairs.
        panel: the packed weights, `COLUMNS` pairs for each pair of channels.
        out: the address of the sums of the first tile: `COLUMNS` i32 for each element of each tile.
    """
    builder = emit.builder

    def tile(rows: int, addresses: list[Value]) -> list[Value]:
        start, target, ahead = addresses
        lines = [emit.at(start, builder.mul(step, emit.i64(i))) for i in range(rows)]
        none = [ir.Constant(INTS, None)] * (rows * WIDE)
        with emit.loop(depth, [panel, ahead, *none]) as (k, (place, line, *sums), after):
            emit.prefetch(line)
            weights = [emit.load(emit.at(place, 4 * LANES * j), INTS) for j in range(WIDE)]
            along = builder.mul(k, emit.i64(4))
            for i in range(rows):
                pair = emit.splat(emit.load(emit.at(lines[i], along), I32))
                for j in range(WIDE):
                    sums[i * WIDE + j] = dot_pairs(emit, sums[i * WIDE + j], pair, weights[j])
            after += [emit.at(place, 4 * COLUMNS), emit.at(line, _LINE), *sums]
        for n, total in enumerate(after[2:]):
            row = emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * (n // WIDE))
            emit.store(total, emit.at(row, 4 * LANES * (n % WIDE)))
        following = emit.at(start, builder.mul(step, emit.i64(rows)))
        return [following, emit.at(target, TILE_ELEMENTS * 4 * COLUMNS * rows), after[1]]

    ahead = emit.at(panel, builder.mul(depth, emit.i64(4 * COLUMNS)))
    emit_even_tiles(emit, WIDE_ROWS, count, [x, out, ahead], tile)


@instruction(*[types.int64] * 10)
def transform_sums(  # noqa: PLR0913 (values in registers)
    emit: Emit, x: Value, out: Value, line: Value, pixel: Value, other: Value, other_line: Value,
    other_pixel: Value, scale: Value, bias: Value, bounds: Value,
) -> None:  # fmt: skip
    """Transform the sums of a tile, requantize them, and store `COLUMNS` levels of each pixel.

    Args:
        emit: the code emitter.
        x: the address of the first element of the tile.
        out: the address of the first pixel of the result.
        line: the bytes between result rows.
        pixel: the bytes between result columns.
        other: the address of the first pixel of the residual, or 0.
        other_line: the bytes between residual rows.
        other_pixel: the bytes between residual columns.
        scale: a factor for each column.
        bias: a summand for each column.
        bounds: `LevelBounds`.
    """
    builder, fields = emit.builder, load_bounds(emit, bounds)
    with builder.if_else(builder.icmp_signed("!=", other, emit.i64(0))) as branches:
        for branch, (low, high), has_other in zip(
            branches, (fields[5:7], fields[:2]), (True, False), strict=True
        ):
            with branch, emit.loop(emit.i64(WIDE)) as (j, _, _following):
                offset, at = (builder.mul(j, emit.i64(size * LANES)) for size in (4, LEVEL_SIZE))
                factors = [emit.load(emit.at(place, offset)) for place in (scale, bias)]
                for a, totals in enumerate(_results(emit, emit.at(x, offset))):
                    values = [
                        emit.fma(builder.sitofp(_divide(emit, total), VECTOR), *factors) for total in totals
                    ]
                    if has_other:
                        others = _row_pixels(emit, emit.at(other, at), other_line, other_pixel, a)
                        values = [
                            _add_residual(emit, value, place, fields)
                            for value, place in zip(values, others, strict=True)
                        ]
                    places = _row_pixels(emit, emit.at(out, at), line, pixel, a)
                    store_rows(emit, values, places, low, high)


def _results(emit: Emit, x: Value) -> list[list[Value]]:
    """Return the result rows of a tile for one vector of output channels, scaled by 24 * 24."""
    elements = [emit.load(emit.at(x, 4 * COLUMNS * n), INTS) for n in range(TILE_ELEMENTS)]
    columns = [_output_transform(emit, elements[b::6]) for b in range(6)]
    return [_output_transform(emit, [column[a] for column in columns]) for a in range(4)]


def _row_pixels(emit: Emit, start: Value, line: Value, pixel: Value, row: int) -> list[Value]:
    """Return the addresses of the pixels of a row of a tile."""
    first = emit.at(start, emit.builder.mul(line, emit.i64(row)))
    return [emit.at(first, emit.builder.mul(pixel, emit.i64(b))) for b in range(4)]


def _add_residual(emit: Emit, value: Value, place: Value, bounds: Sequence[Value]) -> Value:
    """Add the residual levels at ``place`` to a result, before it is rounded."""
    residual = emit.fma(load_levels(emit, place), bounds[3], bounds[4])
    return emit.fma(to_levels(emit, value, bounds[0], bounds[1]), bounds[2], residual)


def _divide(emit: Emit, total: Value) -> Value:
    """Divide by 24 * 24: by 9 with its modular inverse, then by 64."""
    ninth = emit.builder.mul(total, ir.Constant(INTS, [_NINTH] * LANES))
    return emit.builder.ashr(ninth, ir.Constant(INTS, [32 - SUM_BITS] * LANES))


# Minimum number of channels: with fewer, the transforms take longer than the products.
MIN_CHANNELS = 64
# Minimum tiles per thread: fewer do not make up for reading transformed weights, which are eight times as large.
MIN_TILES = 16
# Bytes of the transformed levels and sums of a block, which stay in the L2 cache.
BLOCK_BYTES = 1 << 19


class LevelsWinogradJob(MapJob):
    """Parameters of `levels_winograd`; strides are those of pixels, not of tiles.

    A thread takes ``chunk`` tiles at a time. ``pairs`` is the number of pairs of input channel vectors, ``panels``
    that of panels of `COLUMNS` output channels.
    """

    lines: i64
    tiles: i64
    chunk: i64
    shares: i64
    starts: i64
    pairs: i64
    panels: i64
    weights: i64


def count_tiles(out: LevelMap) -> int:
    """Return the number of tiles of a result."""
    return out.images * math.ceil(out.height / 4) * math.ceil(out.width / 4)


def is_winograd(node: IntegerProduct, data: LevelMap, out: LevelMap, shares: int) -> bool:
    """Return whether Winograd's algorithm supports a convolution and is faster than a direct product."""
    op, numbers = node.op, node.weights.numbers
    if not isinstance(op, Convolution) or numbers.shape[2:] != (3, 3):
        return False
    fits = (
        data.stored % (2 * LANES) == 0 and out.stored % COLUMNS == 0 and out.height % 4 == out.width % 4 == 0
    )
    plain = all(n == 1 for n in (*op.strides, *op.dilations))
    many = min(numbers.shape[:2]) >= MIN_CHANNELS and count_tiles(out) >= MIN_TILES * shares
    return fits and plain and many and _largest_sum(numbers) < 1 << SUM_BITS - 1


def _largest_sum(numbers: Array) -> int:
    """Return an upper bound of the absolute sums of products of levels and weights."""
    rows = np.abs(numbers.reshape(len(numbers), -1), dtype=np.int16)
    return 255 * int(rows.sum(axis=1, dtype=np.int64).max())


# The rows of the filter transform, without their denominators (4, 6, 6, 24, 24 and 1), and their signs.
_ROWS = np.array([[1, 0, 0], [1, 1, 1], [1, -1, 1], [1, 2, 4], [1, -2, 4], [0, 0, 1]], np.float32)
_SIGNS = np.array([1, -1, -1, 1, 1, 1], np.float32)


def transform_weights(numbers: Array, channels: int, outputs: int) -> Array:
    """Transform weights ``[outputs, channels, 3, 3]``, and pack them as ``[panel, element, pair, column, 2]`` of i16."""
    full = np.zeros((9, channels // 2, 2, outputs), np.float32)
    filled = full.reshape(9, channels, outputs)
    filled[:, : numbers.shape[1], : len(numbers)] = numbers.reshape(*numbers.shape[:2], 9).transpose(2, 1, 0)
    rows = _ROWS * (_SIGNS * FILTER_FACTORS)[:, None]
    memory = aligned_empty(TILE_ELEMENTS * channels * outputs // 2).view(np.int16)
    packed = memory.reshape(outputs // COLUMNS, TILE_ELEMENTS, channels // 2, COLUMNS, 2)
    for panel, target in enumerate(packed):
        part = full[..., COLUMNS * panel : COLUMNS * (panel + 1)].transpose(0, 1, 3, 2)
        # Sums of f32 are exact: they are integers below 2^15.
        target[...] = (np.kron(rows, rows) @ part.reshape(9, -1)).reshape(target.shape)
    return packed


def block_tiles(share: int, channels: int) -> int:
    """Return the number of tiles in a block, so that equal blocks of a share take at most `BLOCK_BYTES` each."""
    most = max(BLOCK_BYTES // (TILE_ELEMENTS * (2 * channels + 4 * COLUMNS)), 1)
    return math.ceil(share / math.ceil(share / most))


@device
def _transform(job: LevelsWinogradJob, x: int, first: int, count: int, out: int) -> None:
    """Transform ``count`` input tiles from tile ``first`` on."""
    wide = job.width // 4
    plane, pairs = job.plane // 16, job.pairs
    line, pixel = job.x_line, job.x_pixel
    base, apart = x + job.x_offset, 4 * LANES * pairs
    for i in range(count):
        n = (first + i) // plane
        y = (first + i - n * plane) // wide
        start = base + n * job.x_image + 4 * y * line
        transform_levels(
            start + 4 * (first + i - n * plane - y * wide) * pixel, line, pixel, pairs, out + i * TILE_ELEMENTS * apart, apart
        )  # fmt: skip


@device
def _store(
    job: LevelsWinogradJob, sums: int, out: int, other: int, first: int, count: int, panel: int
) -> None:
    """Transform and store a panel of the results of ``count`` tiles from tile ``first`` on."""
    wide, plane = job.width // 4, job.plane // 16
    line, pixel = job.y_line, job.y_pixel
    other_line = job.other_line
    other_pixel = job.other_pixel
    column = COLUMNS * panel
    base = out + job.y_offset + LEVEL_SIZE * column
    others = other + job.other_offset + LEVEL_SIZE * column
    has_other = job.has_other != 0
    for i in range(count):
        n = (first + i) // plane
        y = (first + i - n * plane) // wide
        x = first + i - n * plane - y * wide
        residual = others + n * job.other_image + 4 * (y * other_line + x * other_pixel)
        transform_sums(
            sums + 4 * COLUMNS * TILE_ELEMENTS * i,
            base + n * job.y_image + 4 * (y * line + x * pixel), line, pixel,
            residual if has_other else 0, other_line, other_pixel,
            job.scale + 4 * column, job.bias + 4 * column,
            job.bounds,
        )  # fmt: skip


@Task
def levels_winograd(call: int, job: LevelsWinogradJob, out: int, x: int, other: int) -> None:
    """Convolve A with transformed weights, add levels of B as a residual, and store levels; a work unit is a tile."""
    counter = shared_counters(call)
    pairs, panels = job.pairs, job.panels
    starts, shares = job.starts, job.shares
    chunk, depth = job.chunk, LANES * pairs
    levels = scratch_memory(
        4 * TILE_ELEMENTS * chunk * (depth + COLUMNS)
    )  # the elements of a tile are next to each other
    sums, bytes_of_panel = levels + 4 * TILE_ELEMENTS * chunk * depth, 4 * COLUMNS * depth
    share, empty = first_share(call, shares), 0
    while True:
        first, count, share, empty = take_units(counter, starts, chunk, shares, share, empty)
        if count == 0:
            break
        line, line_count = share_of_lines(job.lines, first, count, job.tiles)
        fill_borders(job.borders, out, line, line_count)
        _transform(job, x, first, count, levels)
        weights = job.weights
        for panel in range(panels):
            for element in range(TILE_ELEMENTS):
                at = 4 * element
                multiply_tiles(
                    count, levels + at * depth, 4 * TILE_ELEMENTS * depth, depth, weights, sums + at * COLUMNS
                )
                weights += bytes_of_panel
            _store(job, sums, out, other, first, count, panel)


# Time of a multiplication in a window, relative to one in a matrix product.
WINDOW_WORK = 8
# Size of the rows of data and result that stay in the L1 and L2 caches while all panels are used, in bytes; and the maximum
# number of rows, in multiples of `ROW_MULTIPLE`.
CACHED_BYTES, MOST_TILES = 1 << 17, 4
# Units per share: several, so that others can take over from a thread that is interrupted.
UNITS = 4
# Maps with fewer lines per share, unless these divide evenly, are shared by channel if channels divide at least as evenly.
MIN_LINES = 8


class Bound(NamedTuple):
    """A task with its parameters.

    Args:
        address: the address of the machine code of the task.
        job: the record of its parameters.
        large: whether to share the call among threads.
        weights: an `AheadRecord` for each share with the weights it reads first, if any.
    """

    address: int
    job: Array
    large: bool
    weights: Array | None = None


def bind(node: IntegerProduct | IntegerPooled, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    """Return the task of a node and its parameters for maps of this geometry."""
    if isinstance(node, Pooled):
        return _maximum(node, data, out)
    if is_winograd(node, data, out, _shares()):
        return _winograd(node, data, out, other)
    return (_dense if isinstance(node.op, Convolution) else _depthwise)(node, data, out, other)


def prefetch_weights(bound: Sequence[Bound]) -> None:
    """Make each task with weights prefetch the weights of the next such task."""
    for task, following in pairwise(task for task in bound if task.weights is not None):
        assert following.weights is not None
        task.job.view(np.int64)[LevelsGemmJob.ahead] = following.weights.ctypes.data


def requantization(node: IntegerProduct, stored: int) -> tuple[Array, Array, Array]:
    """Return the scale and bias that convert sums to levels for each stored channel, and the `LevelBounds`.

    All are computed in f64 and rounded once.
    """
    first, data, numbers = node.first, node.data.quantizer, node.weights.numbers
    rows = numbers.reshape(len(node.weights.scale), -1)
    scale = data.scale * node.weights.scale * node.factor / first.step
    bias = (node.shift - first.low) / first.step - scale * data.zero * rows.sum(axis=1, dtype=np.int64)
    columns = np.zeros((2, stored), np.float32)
    columns[:, : len(scale)] = scale, bias
    low, high = (first.level_of(bound) for bound in node.bounds)
    sum_fields = dict.fromkeys(("factor", "other_factor", "shift", "sum_low", "sum_high"), 0.0)
    if node.other is not None and node.last is not None:
        sum_fields = _sum_fields(first, node.other.quantizer, node.last, node.sum_bounds)
    return columns[0], columns[1], LevelBounds.fill(low=low, high=high, unused=0, **sum_fields)


def _sum_fields(
    first: Quantizer, other: Quantizer, last: Quantizer, bounds: tuple[float, float]
) -> dict[str, float]:
    """Return the `LevelBounds` fields for adding a residual: factors of both operands, and shift and bounds of the sum.

    Args:
        first: the quantizer of the result before the addition.
        other: the quantizer of the residual.
        last: the quantizer of the sum.
        bounds: the range to which the sum is clipped before quantization.
    """
    shift = -(first.scale * first.zero + other.scale * other.zero + last.low) / last.step
    low, high = (last.level_of(bound) for bound in bounds)
    return {
        "factor": first.scale / last.step, "other_factor": other.scale / last.step, "shift": shift,
        "sum_low": low, "sum_high": high,
    }  # fmt: skip


def _strides(
    name: str, levels: LevelMap, step: tuple[int, int] = (1, 1), above: int = 0, left: int = 0
) -> dict[str, int]:
    """Return the `MapJob` fields for a map, which begin with ``name``.

    Args:
        name: the name of the map in `MapJob`.
        levels: the map.
        step: the rows and columns between successive windows.
        above: the padding at the top, in rows.
        left: the padding on the left, in columns.
    """
    return {
        f"{name}_image": levels.image, f"{name}_line": step[0] * levels.line, f"{name}_pixel": step[1] * levels.pixel,
        f"{name}_offset": levels.offset(above, left),
    }  # fmt: skip


def _shares() -> int:
    return min(threads(), MAX_SHARES)


def _largest(units: int) -> float:
    """Return the fraction of units in the largest share."""
    return -(-units // _shares()) / units


def _chunk_rows(rows: int, row_bytes: int) -> int:
    """Return the number of rows that a thread takes at a time from a share."""
    most = min(max(CACHED_BYTES // row_bytes, 1), MOST_TILES * ROW_MULTIPLE)
    chunks = max(math.ceil(rows / most), min(UNITS, rows // ROW_MULTIPLE), 1)
    chunk = math.ceil(rows / chunks)
    multiple = ROW_MULTIPLE if chunk > 2 * ROW_MULTIPLE else TARGET.vectors.wide[0]
    return math.ceil(chunk / multiple) * multiple


def _dense(node: IntegerProduct, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    op, numbers = node.op, node.weights.numbers
    outputs, channels, *kernel = numbers.shape
    w = np.zeros((outputs, *kernel, data.stored), WEIGHT_DTYPE)
    w[..., :channels] = numbers.transpose(0, 2, 3, 1)
    joined = op.dilations[1] == 1  # then a row of a window is contiguous
    rows = np.arange(kernel[0]) * op.dilations[0] * data.line
    columns = np.arange(1 if joined else kernel[1]) * op.dilations[1] * data.pixel
    offsets = (rows[:, None] + columns).reshape(-1).astype(np.int64)
    scale, bias, bounds = requantization(node, out.stored)
    (above, _), (left, _) = op.pads(node.data.shape[2:], kernel)
    count = out.images * out.height * out.width
    by_panel = w.nbytes > count * (data.pixel + out.pixel)
    vectors = share_starts(out.stored // LANES, _shares()) if by_panel else np.array([0, out.stored // LANES])
    panels = pack_levels(w.reshape(outputs, -1), (LANES * vectors).tolist())
    scale, bias = panels.reorder_row(scale), panels.reorder_row(bias)
    first = np.zeros(_shares(), np.int64)
    if by_panel:
        columns = panels.table[:, Panel.column] // LANES
        starts, chunk = np.searchsorted(columns, vectors), 1
        first = np.minimum(starts[:-1], len(columns) - 1)
    else:
        starts = share_starts(count, _shares())
        chunk = _chunk_rows(int(np.diff(starts).max()), data.pixel * math.prod(op.strides) + out.pixel)
    none = np.repeat(panels.weights.ctypes.data, AheadRecord.words * _shares())
    begin = panels.weights.ctypes.data + panels.table[first, Panel.start]
    weights = np.stack([begin, begin + w[0].nbytes * LANES * panels.table[first, Panel.vectors]], axis=1)
    job = LevelsGemmJob.fill(
        **_strides("x", data, (op.strides[0], op.strides[1]), above, left), **_strides("y", out),
        **_strides("other", other), width=out.width, plane=out.height * out.width,
        has_other=node.other is not None, scale=scale, bias=bias, bounds=bounds, borders=out.borders,
        rows=count, chunk=chunk, panels=len(panels.table), by_panel=by_panel, shares=len(starts) - 1,
        starts=starts, taps=len(offsets), depth=w[0].size // (len(offsets) * GROUP), table=panels.table,
        weights=panels.weights, tap_offsets=offsets, ahead=none,
    )  # fmt: skip
    large = pays_to_share(computed=count * numbers.size // 2)
    return Bound(levels_gemm.address, job, large, weights)


def _winograd(node: IntegerProduct, data: LevelMap, out: LevelMap, other: LevelMap) -> Bound:
    tiles = count_tiles(out)
    starts = share_starts(tiles, _shares())
    scale, bias, bounds = requantization(node, out.stored)
    weights = transform_weights(node.weights.numbers, data.stored, out.stored)
    (above, _), (left, _) = node.op.pads(node.data.shape[2:], (3, 3))
    job = LevelsWinogradJob.fill(
        **_strides("x", data, (1, 1), above, left), **_strides("y", out), **_strides("other", other),
        width=out.width, plane=out.height * out.width, has_other=node.other is not None, scale=scale,
        bias=bias, bounds=bounds, borders=out.borders, lines=out.images * out.height, tiles=tiles,
        chunk=block_tiles(int(np.diff(starts).max()), data.stored), shares=len(starts) - 1, starts=starts,
        pairs=data.stored // (2 * LANES), panels=out.stored // COLUMNS, weights=weights,
    )  # fmt: skip
    large = pays_to_share(computed=tiles * 8 * node.weights.numbers.size)
    return Bound(levels_winograd.address, job, large)


def _depthwise(node: IntegerProduct, data: LevelMap, out: LevelMap, _: LevelMap) -> Bound:
    numbers = node.weights.numbers
    packed = pack_depthwise(numbers.reshape(len(numbers), *numbers.shape[3:]), out.stored)
    scale, bias, bounds = requantization(node, out.stored)
    arrays = {"scale": scale, "bias": bias, "bounds": bounds, "weights": packed}
    form, kernel = FORMS[numbers.shape[4], node.op.strides[1]], numbers.shape[3:]
    if are_interleaved(kernel, node.op.strides[1], out.width, out.stored // LANES):
        arrays["blocks"] = pack_blocks(numbers.reshape(-1, *kernel), out.stored)
        arrays |= {"block_scale": pack_row(scale), "block_bias": pack_row(bias)}
    return _windows(node, data, out, form, numbers.shape[3:], arrays)


def _maximum(node: IntegerPooled, data: LevelMap, out: LevelMap) -> Bound:
    unused = np.zeros(1, np.float32)
    arrays = dict.fromkeys(("scale", "bias", "bounds", "weights"), unused)
    return _windows(node, data, out, MAXIMUM, node.op.kernel, arrays)


def _windows(
    node: IntegerProduct | IntegerPooled, data: LevelMap, out: LevelMap, form: int, kernel: Sequence[int],
    arrays: dict[str, Array],
) -> Bound:  # fmt: skip
    (above, _), (left, _) = node.op.pads(node.data.shape[2:], kernel)
    down, across = node.op.strides
    lines, vectors = out.images * out.height, out.stored // LANES
    blocks = -(-vectors // BLOCK)
    few = lines % _shares() and lines < MIN_LINES * _shares()
    by_channel = few and _largest(blocks) <= _largest(lines)
    starts = share_starts(blocks if by_channel else lines, _shares())
    chunk = max(int(starts[1]) // UNITS, 1 if by_channel else TALL)
    if by_channel:
        starts, chunk = np.minimum(BLOCK * starts, vectors), BLOCK * chunk
    job = LevelsWindowsJob.fill(
        **_strides("x", data, (1, 1), above, left), **_strides("y", out), **_strides("other", out),
        width=out.width, plane=out.height, has_other=0, borders=out.borders, lines=lines, vectors=vectors,
        form=form, kernel_height=kernel[0], kernel_width=kernel[1], stride_down=down, stride_across=across,
        by_channel=by_channel, shares=len(starts) - 1, starts=starts, chunk=chunk,
        **dict.fromkeys(("blocks", "block_scale", "block_bias")) | arrays,
    )  # fmt: skip
    large = pays_to_share(computed=lines * out.width * out.stored * math.prod(kernel) * WINDOW_WORK // 2)
    return Bound(levels_windows.address, job, large)


# Images with up to this many channels are not padded to whole vectors.
MAX_PICTURE_CHANNELS = 4


@backend.pattern(FakeQuantize)
def quantized_network(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match convolutions of quantized data with integer weights, up to the FakeQuantize of the last result."""
    part = find_subgraph(context, layer, IntegerKernels())
    if part is None:
        return None
    layers = add_deferred(context, part.layers)
    reads = context.reads(layers, *(node.port for node in part.nodes if isinstance(node, Source)))
    places = [reads.index(node.port) for node in part.nodes if isinstance(node, Source)]
    return Fusion(layers, reads, QuantizedNetwork(part, LayerByLayer(context, layers, reads), tuple(places)))


@dataclass(frozen=True)
class QuantizedNetwork(KernelTemplate):
    """The kernel of a quantized subgraph.

    Args:
        part: the subgraph.
        definition: computes it layer by layer.
        places: the input index of each source.
    """

    part: IntegerSubgraph
    definition: Callable[..., Array]
    places: tuple[int, ...]
    _prepared: list[Kernel] = field(default_factory=list, compare=False)

    def prepare(self) -> Kernel:
        """Pack the weights and return the kernel."""
        if not self._prepared:
            run = _Network(self.part, self.definition, self.places)
            self._prepared.append(Kernel(run, replay=replayed()))
        return self._prepared[0]


class _Step(NamedTuple):
    """A task with its parameters, the indices of the maps that it writes and reads, and of those that no later step reads."""

    bound: Bound
    out: int
    data: int
    other: int
    done: tuple[int, ...]


class _Network:
    """A function that runs the nodes of a quantized subgraph in order, and releases each map after its last reader."""

    def __init__(
        self, part: IntegerSubgraph, definition: Callable[..., Array], places: Sequence[int]
    ) -> None:
        self._definition = definition
        number = {id(node): index for index, node in enumerate(part.nodes)}
        by_vectors = {id(read) for node in part.nodes for read in _vector_reads(node)}
        self._maps = [_map(node, id(node) in by_vectors) for node in part.nodes]
        for node in part.nodes:
            for data, border in _borders(node):
                self._maps[number[id(data)]].widen(border)
        sources = [index for index, node in enumerate(part.nodes) if isinstance(node, Source)]
        self._sources = [
            (index, place, Quantizing(self._maps[index], part.nodes[index].quantizer))
            for index, place in zip(sources, places, strict=True)
        ]
        self._result = number[id(part.result)]
        self._dequantize = Dequantizing(self._maps[self._result], part.result.quantizer)
        self._steps = list(self._bind_steps(part, number))
        prefetch_weights([step.bound for step in self._steps])

    def _bind_steps(self, part: IntegerSubgraph, number: dict[int, int]) -> list[_Step]:
        last = {number[id(read)]: index for index, node in enumerate(part.nodes) for read in node.reads}
        steps = []
        for index, node in enumerate(part.nodes):
            if isinstance(node, Source):
                continue
            data, other = (number[id(read)] for read in (*node.reads, node.data)[:2])
            maps = self._maps[data], self._maps[index], self._maps[other]
            done = tuple(n for n in {data, other} if last[n] == index and n != self._result)
            steps.append(_Step(bind(node, *maps), index, data, other, done))
        return steps

    def __call__(self, *arrays: Array) -> Array:
        levels = [UNUSED] * len(self._maps)
        for index, place, quantize in self._sources:
            quantized = quantize(arrays[place])
            if quantized is None:
                return self._definition(*arrays)
            levels[index] = quantized
        count = threads()
        for (address, job, large, *_), out, data, other, done in self._steps:
            levels[out] = self._maps[out].empty()
            parallel_for(
                address, job, levels[out], levels[data], levels[other], UNUSED, count if large else 1
            )
            for index in done:
                levels[index] = UNUSED
        return self._dequantize(levels[self._result])


def _vector_reads(node: IntegerNode) -> tuple[IntegerNode, ...]:
    """Return the producers whose pixels a node reads in channel vectors; dense products read them word by word."""
    dense = isinstance(node, Product) and isinstance(node.op, Convolution)
    return node.reads[1:] if dense else node.reads


def _map(node: IntegerNode, by_vectors: bool) -> LevelMap:
    images, channels, height, width = node.shape
    few = isinstance(node, Source) and channels <= MAX_PICTURE_CHANNELS and not by_vectors
    stored = -(-channels // GROUP) * GROUP if few else -(-channels // LANES) * LANES
    return LevelMap(images, height, width, channels, stored, node.quantizer.zero)


def _borders(node: IntegerNode) -> list[tuple[IntegerNode, tuple[int, int, int, int]]]:
    """Return a list of the producer that a node reads in windows, with the borders (top, bottom, left, right) that these reach.

    The list is empty for a source.
    """
    if isinstance(node, Source):
        return []
    kernel = node.op.kernel if isinstance(node, Pooled) else node.weights.numbers.shape[-2:]
    lengths, out = node.data.shape[2:], node.shape[2:]
    borders = []
    for axis, (before, _) in enumerate(node.op.pads(lengths, kernel)):
        covered = (out[axis] - 1) * node.op.strides[axis] + node.op.extent(axis, kernel[axis])
        borders += [before, max(covered - before - lengths[axis], 0)]
    return [(node.data, (borders[0], borders[1], borders[2], borders[3]))]
