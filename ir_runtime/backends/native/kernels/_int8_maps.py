"""Maps of levels: channels-last, padded to whole vectors, with a border filled with the level of zero; integer weights.

Layers divide their units into shares: consecutive units that a thread takes first. They are the same in every
layer, since the data that a thread has written is in its own cache. A thread that has finished its share
continues with the others.

Weights have a scale per output channel; they are extracted from the layers that dequantize them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...._util.forks import cached_property
from ....ir.array import Packed
from ....ir.graph import Layer, Port
from ....ir.tensor import Array, Value
from ....limits import check_array_size
from ....ops.arithmetic import Multiply, Subtract
from ....ops.convolution import Convolution, ForwardConvolution
from ....ops.infrastructure import Constant
from ....ops.quantization import FakeQuantize
from ....ops.type import Convert
from ... import MatchContext
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...common.post_op import quantize_parameters
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.levels import GROUP, LEVEL_DTYPE, LEVEL_SIZE
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import I32, VECTOR, Emit
from ..codegen.vectors import Value as Register
from ..threading.task import thread_index

__all__ = [
    "fill_borders",
    "first_share",
    "integer_weights",
    "IntegerWeights",
    "LevelMap",
    "line_address",
    "MapJob",
    "MAX_SHARES",
    "share_of_lines",
    "share_starts",
    "take_units",
]


class MapJob(Descriptor):
    """The location of pixels for a task: lengths of the result; strides and offsets in bytes of data, result and residual.

    ``borders`` is the address of the result's `BorderRecord`. Strides are between neighbours of the result:
    those of the data include the stride of windows.
    """

    width: i64
    plane: i64
    x_image: i64
    x_line: i64
    x_pixel: i64
    x_offset: i64
    y_image: i64
    y_line: i64
    y_pixel: i64
    y_offset: i64
    has_other: i64
    other_image: i64
    other_line: i64
    other_pixel: i64
    other_offset: i64
    scale: i64
    bias: i64
    bounds: i64
    borders: i64


@device
def line_address(start: int, number: int, height: int, image: int, line: int) -> int:
    """Return the address of a line; lines are numbered across images, and ``image`` and ``line`` are sizes in bytes."""
    place = number // height
    return start + place * image + (number - place * height) * line


class BorderRecord(Descriptor):
    """The border of a map: ``word`` repeats the level of zero in each byte; the other fields are in bytes."""

    height: i64
    image: i64
    line: i64
    pixels: i64
    offset: i64
    word: i64


@instruction(*[types.int64] * 3)
def _fill(emit: Emit, out: Register, size: Register, word: Register) -> None:
    """Fill ``size`` bytes with a 32-bit word."""
    filled = emit.builder.bitcast(emit.splat(emit.builder.trunc(word, I32)), VECTOR)
    words = emit.builder.sdiv(size, emit.i64(4))
    for offset, _, store in emit.vectors(words):
        store(filled, emit.at(out, offset))


@routine(*[types.int64] * 4)
def fill_borders(record: BorderRecord, out: int, first: int, count: int) -> None:
    """Fill the border around lines of a map, numbered across images, with the level of zero.

    The thread that writes the lines calls this, since they are in its cache. A `BorderRecord` of 0 means no
    border.
    """
    if record == 0:
        return
    word, pixels = record.word, record.pixels
    line, offset = record.line, record.offset
    image, height = record.image, record.height
    for number in range(first, first + count):
        start = out + number // height * image
        row = number % height
        end = start + offset + row * line + pixels
        if row == 0:
            _fill(start, offset, word)
        if row + 1 < height:  # the right border, and the left one of the next line
            _fill(end, line - pixels, word)
        else:
            _fill(end, start + image - end, word)


@device
def share_of_lines(lines: int, first: int, count: int, units: int) -> tuple[int, int]:
    """Return the first line and the number of lines of a unit range, where several units compute parts of each line."""
    begin = first * lines // units
    return begin, (first + count) * lines // units - begin


@dataclass
class LevelMap:
    """The geometry of a map of levels.

    Args:
        images: the number of images.
        height: the rows of an image, without borders.
        width: the columns of an image, without borders.
        channels: the channels without padding.
        stored: the channels with padding.
        zero: the level that stands for zero.
        border: the pixels above, below, left and right; widened for the windows of the layers that read the
            map.
    """

    images: int
    height: int
    width: int
    channels: int
    stored: int
    zero: int
    border: tuple[int, int, int, int] = (0, 0, 0, 0)

    def widen(self, border: tuple[int, int, int, int]) -> None:
        """Widen the border to at least this width."""
        top, bottom, left, right = (max(pair) for pair in zip(self.border, border, strict=True))
        self.border = top, bottom, left, right

    @property
    def pixel(self) -> int:
        """The bytes of a pixel."""
        return self.stored * LEVEL_SIZE

    @property
    def line(self) -> int:
        """The bytes of a row of pixels with its border."""
        return (self.border[2] + self.width + self.border[3]) * self.pixel

    @property
    def image(self) -> int:
        """The bytes of an image with its border."""
        return (self.border[0] + self.height + self.border[1]) * self.line

    def offset(self, above: int = 0, left: int = 0) -> int:
        """Return the byte offset of the pixel that many rows above and columns left of the first."""
        return (self.border[0] - above) * self.line + (self.border[2] - left) * self.pixel

    def empty(self) -> Array:
        """Return an uninitialised array ``[images, rows, columns, stored]``, with its border."""
        top, bottom, left, right = self.border
        check_array_size(self.images * self.image, 1)
        shape = self.images, top + self.height + bottom, left + self.width + right, self.stored
        return empty(shape, LEVEL_DTYPE)

    @property
    def borders(self) -> int:
        """The address of the final `BorderRecord`, or 0 without a border."""
        return int(self._border_record.ctypes.data) if any(self.border) else 0

    @cached_property
    def _border_record(self) -> Array:
        word = sum(self.zero << 8 * LEVEL_SIZE * place for place in range(GROUP))
        return BorderRecord.fill(
            height=self.height, image=self.image, line=self.line, pixels=self.width * self.pixel,
            offset=self.offset(), word=word,
        )  # fmt: skip


# Counters of a call are on three cache lines.
_LINES, _WORDS = 3, 8
MAX_SHARES = _LINES * _WORDS
"""The most shares of a layer; further threads take units of these."""


def share_starts(units: int, shares: int) -> Array:
    """Return the first unit of each share, followed by the number of units; share sizes differ by at most one."""
    return np.arange(shares + 1, dtype=np.int64) * units // shares


@device
def first_share(call: int, shares: int) -> int:
    """Return the share of this thread, counted from that of the caller."""
    return thread_index(call) % shares


@device
def take_units(
    counter: int, starts: int, chunk: int, shares: int, share: int, visited: int
) -> tuple[int, int, int, int]:
    """Take up to ``chunk`` units of a share, or of the next nonempty one.

    Args:
        counter: the counters of the call.
        starts: the address of the `share_starts`.
        chunk: the most units to take at once.
        shares: the number of shares.
        share: the current one.
        visited: the number of shares found empty.

    Returns:
        The first unit and how many they are, 0 if none is left; the share, and how many are empty.
    """
    first, count = 0, 0
    while visited < shares and count <= 0:
        place = counter + 8 * (_WORDS * (share % _LINES) + share // _LINES)
        first = load_i64(starts, share) + chunk * fetch_add(place)
        count = min(chunk, load_i64(starts, share + 1) - first)
        if count <= 0:
            share, visited = (share + 1) % shares, visited + 1
    return first, max(count, 0), share, visited


# How far a level of weights may be from an integer, once its zero point is subtracted.
TOLERANCE = 1e-3
# Weights that are made integers at a time, so that they stay in the cache.
BLOCK = 1 << 16


@dataclass(frozen=True)
class IntegerWeights:
    """Weights ``scale * numbers``.

    Args:
        numbers: i8, in the layout of the operation.
        scale: a number for each output channel.
    """

    numbers: Array
    scale: Array


def integer_weights(context: MatchContext, port: Port, op: ForwardConvolution) -> IntegerWeights | None:
    """Return the integers of constant weights; ``None`` if they are not i8 with a scale per output channel."""
    if not context.value(port).is_known or not is_f32(context.value(port)):
        return None
    layer = context.graph[port.layer]
    found = _quantized(context, layer) if isinstance(layer.op, FakeQuantize) else _dequantized(context, layer)
    if found is None:
        return None
    shape, scale = found.shape, found.scale
    axes = 1 if isinstance(op, Convolution) else 2
    per_channel = scale.ndim == len(shape) > axes and all(n == 1 for n in scale.shape[axes:])
    if not per_channel or (numbers := found.integers()) is None:
        return None
    row = np.broadcast_to(scale.reshape(scale.shape[:axes]), shape[:axes]).reshape(-1)
    return IntegerWeights(numbers, row.astype(np.float64))


@dataclass(frozen=True)
class _Levels:
    """Weights ``scale * (level + shift)``; all arrays broadcast to the weights' shape.

    Args:
        data: the levels, or the numbers that a FakeQuantize converts to levels.
        parameters: each `QuantizeParameter` of the FakeQuantize, ``[10, ...]``; ``None`` without one.
        shift: a summand for each level.
        scale: the step of the levels.
    """

    data: Array
    parameters: Array | None
    shift: Array
    scale: Array

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weights."""
        return np.broadcast_shapes(self.data.shape, self.shift.shape, self.scale.shape)

    def integers(self) -> Array | None:
        """Return levels plus shifts as i8; ``None`` if any sum does not fit."""
        shape, nearest = self.shape, np.rint(self.shift)
        if not (np.abs(self.shift - nearest) <= TOLERANCE).all():
            return None
        data, shift = (np.broadcast_to(each, shape) for each in (self.data, nearest.astype(np.float32)))
        known = self.parameters
        limits = () if known is None else [np.broadcast_to(each, shape) for each in known]
        found = np.empty(shape, np.int8)
        step = max(BLOCK * len(found) // max(found.size, 1), 1)
        for first in range(0, len(found), step):
            part = slice(first, first + step)
            sums = _levels(data[part], [limit[part] for limit in limits]) + shift[part]
            if sums.size and not (sums.min() >= -128 and sums.max() <= 127):
                return None
            found[part] = sums
        return found


def _levels(x: Array, limits: Sequence[Array]) -> Array:
    """Return the levels of f32 numbers, given each `QuantizeParameter`; without parameters, ``x`` are already levels."""
    if not limits:
        return x
    bottom, top, low, width, steps, *_ = limits
    found: Array = x.clip(bottom, top)
    found -= low
    found /= width
    found *= steps
    np.rint(found, out=found)
    return found


def _quantized(context: MatchContext, layer: Layer) -> _Levels | None:
    """Match a constant followed by a FakeQuantize."""
    ports, op = context.sources(layer), layer.op
    data = _constant(context, ports[0])
    if data is None or not isinstance(op, FakeQuantize) or op.levels > 256:
        return None
    limits = [_constant(context, port) for port in ports[1:]]
    arrays = [data, *(limit for limit in limits if limit is not None)]
    if len(arrays) < 5 or any(array.dtype != np.float32 for array in arrays):
        return None
    parameters = quantize_parameters(op, [Value.constant(array) for array in arrays])
    if parameters is None:
        return None
    _, _, _, width, steps, span, first, *_ = parameters
    if not ((width > 0) & (span > 0)).all():
        return None
    scale = span.astype(np.float64) / steps
    return _Levels(data, parameters, first / scale, _of_rank(scale, data.ndim))


def _dequantized(context: MatchContext, layer: Layer) -> _Levels | None:
    """Match ``Constant -> Convert -> Subtract -> Multiply``, with an optional Subtract."""
    if not isinstance(layer.op, Multiply):
        return None
    sources = context.sources(layer)
    scale = _constant(context, sources[1])
    before = context.graph[sources[0].layer]
    zero: Array | None = np.zeros((), np.float32)
    if isinstance(before.op, Subtract):
        first, second = context.sources(before)
        zero, before = _constant(context, second), context.graph[first.layer]
    if scale is None or zero is None or not isinstance(before.op, Convert):
        return None
    numbers = _constant(context, context.sources(before)[0])
    if numbers is None or numbers.dtype not in (np.int8, np.uint8) or not (scale > 0).all():
        return None
    scale = _of_rank(scale.astype(np.float64), numbers.ndim)
    return _Levels(numbers, None, -zero.astype(np.float64), scale)


def _of_rank(scale: Array, rank: int) -> Array:
    return scale.reshape((1,) * (rank - scale.ndim) + scale.shape)


def _constant(context: MatchContext, port: Port) -> Array | None:
    """Return the contents of a constant, possibly folded, or converted to f32."""
    known = context.value(port).known()
    if known is not None:
        return known
    op = context.graph[port.layer].op
    if isinstance(op, Constant):
        return op.value.unpack() if isinstance(op.value, Packed) else np.asarray(op.value)
    if isinstance(op, Convert) and op.destination_type.label == "f32":
        source = _constant(context, context.sources(context.graph[port.layer])[0])
        return None if source is None or source.dtype.kind not in "iuf" else source.astype(np.float32)
    return None
