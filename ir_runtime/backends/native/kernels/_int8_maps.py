"""Feature maps of 8-bit levels, the division of their layers among threads, and integer weights.

Maps are channels-last. Channels are padded to whole vectors, and pixels have a border filled with the level of zero.

The units of work of each layer are divided into shares, one per thread: a thread takes the units of its own share first,
then those of other shares. Shares are the same in every layer, so that a thread reads the data that it has written to its
cache.

Integer weights have one scale per output channel; they are extracted from the layers that dequantize them.
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
    """Fields of jobs over maps: the size of the result, and where the data, the result and the residual are in memory.

    Fields with ``x_``, ``y_`` and ``other_`` are byte strides and offsets of the data, the result and the residual. They
    are the distances between result pixels: those of the data include the stride of windows. ``borders`` is the address
    of the result's `BorderRecord`.
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
    """Return the address of line ``number``, counted across images; ``image`` and ``line`` are sizes in bytes."""
    n = number // height
    return start + n * image + (number - n * height) * line


class BorderRecord(Descriptor):
    """The border of a map.

    ``height`` is the number of lines of an image; ``word`` repeats the level of zero in 32 bits. In bytes, ``image`` and
    ``line`` are the sizes of an image and a line with borders, ``pixels`` is the size of a line without borders, and
    ``offset`` is that of the first pixel.
    """

    height: i64
    image: i64
    line: i64
    pixels: i64
    offset: i64
    word: i64


@instruction(*[types.int64] * 3)
def _fill(emit: Emit, out: Register, size: Register, word: Register) -> None:
    """Fill ``size`` bytes with copies of a 32-bit word."""
    filled = emit.builder.bitcast(emit.splat(emit.builder.trunc(word, I32)), VECTOR)
    words = emit.builder.sdiv(size, emit.i64(4))
    for offset, _, store in emit.vectors(words):
        store(filled, emit.at(out, offset))


@routine(*[types.int64] * 4)
def fill_borders(record: BorderRecord, out: int, first: int, count: int) -> None:
    """Fill the border around ``count`` lines of a map with the level of zero; lines are counted across images.

    The thread that writes the lines should call this, since they are in its cache. If ``record`` is 0, the map has no
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
    """Divide ``lines`` evenly among ``units`` units of work; return the lines of ``count`` units, the first of them ``first``.

    The lines are returned as the index of the first one and their number.
    """
    begin = first * lines // units
    return begin, (first + count) * lines // units - begin


@dataclass
class LevelMap:
    """The geometry of a feature map of 8-bit levels.

    Args:
        images: the number of images.
        height: the rows of an image, without borders.
        width: the columns of an image, without borders.
        channels: the number of channels, without padding.
        stored: the number of channels, with padding.
        zero: the level that stands for zero.
        border: the border above, below, left and right, in pixels; wide enough for the windows of all consumers.
    """

    images: int
    height: int
    width: int
    channels: int
    stored: int
    zero: int
    border: tuple[int, int, int, int] = (0, 0, 0, 0)

    def widen(self, border: tuple[int, int, int, int]) -> None:
        """Make the border at least as wide as ``border`` on each side."""
        top, bottom, left, right = (max(pair) for pair in zip(self.border, border, strict=True))
        self.border = top, bottom, left, right

    @property
    def pixel(self) -> int:
        """The size of a pixel in bytes, with the padding of channels."""
        return self.stored * LEVEL_SIZE

    @property
    def line(self) -> int:
        """The size in bytes of a line with its border."""
        return (self.border[2] + self.width + self.border[3]) * self.pixel

    @property
    def image(self) -> int:
        """The size in bytes of an image with its border."""
        return (self.border[0] + self.height + self.border[1]) * self.line

    def offset(self, above: int = 0, left: int = 0) -> int:
        """Return the byte offset of the pixel ``above`` rows above and ``left`` columns left of the first pixel."""
        return (self.border[0] - above) * self.line + (self.border[2] - left) * self.pixel

    def empty(self) -> Array:
        """Return an uninitialised array ``[images, rows, columns, stored]``; rows and columns include the border."""
        top, bottom, left, right = self.border
        check_array_size(self.images * self.image, 1)
        shape = self.images, top + self.height + bottom, left + self.width + right, self.stored
        return empty(shape, LEVEL_DTYPE)

    @property
    def borders(self) -> int:
        """The address of the `BorderRecord`, or 0 without a border; to be read after the last `widen`."""
        return int(self._border_record.ctypes.data) if any(self.border) else 0

    @cached_property
    def _border_record(self) -> Array:
        word = sum(self.zero << 8 * LEVEL_SIZE * place for place in range(GROUP))
        return BorderRecord.fill(
            height=self.height, image=self.image, line=self.line, pixels=self.width * self.pixel,
            offset=self.offset(), word=word,
        )  # fmt: skip


# The counters of a call are on three cache lines.
_LINES, _WORDS = 3, 8
MAX_SHARES = _LINES * _WORDS
"""The most shares of a layer; with more threads, several threads start with the same share."""


def share_starts(units: int, shares: int) -> Array:
    """Divide units of work evenly into shares; return the first unit of each share, followed by the number of units."""
    return np.arange(shares + 1, dtype=np.int64) * units // shares


@device
def first_share(call: int, shares: int) -> int:
    """Return the share that this thread starts with: its thread index modulo the number of shares."""
    return thread_index(call) % shares


@device
def take_units(
    counter: int, starts: int, chunk: int, shares: int, share: int, visited: int
) -> tuple[int, int, int, int]:
    """Take up to ``chunk`` units from a share, or, once it is used up, from the next share that is not.

    Args:
        counter: the counters of the call.
        starts: the address of the `share_starts`.
        chunk: the most units to take at once.
        shares: the number of shares.
        share: the share to take from first.
        visited: the number of shares that this thread has used up.

    Returns:
        The first unit and the number of units, 0 if none is left; the updated ``share`` and ``visited``.
    """
    first, count = 0, 0
    while visited < shares and count <= 0:
        place = counter + 8 * (_WORDS * (share % _LINES) + share // _LINES)
        first = load_i64(starts, share) + chunk * fetch_add(place)
        count = min(chunk, load_i64(starts, share + 1) - first)
        if count <= 0:
            share, visited = (share + 1) % shares, visited + 1
    return first, max(count, 0), share, visited


# The largest distance of a zero point from an integer.
TOLERANCE = 1e-3
# Weights that are converted to integers at a time; they stay in the cache.
BLOCK = 1 << 16


@dataclass(frozen=True)
class IntegerWeights:
    """Weights ``scale * numbers``.

    Args:
        numbers: the i8 integers, in the layout of the operation.
        scale: the factor of each output channel.
    """

    numbers: Array
    scale: Array


def integer_weights(context: MatchContext, port: Port, op: ForwardConvolution) -> IntegerWeights | None:
    """Return constant f32 weights of a convolution as integers and scales.

    Returns ``None`` unless the weights are i8 integers, after their zero point is subtracted, times one scale per output
    channel.
    """
    if not context.value(port).is_known or not is_f32(context.value(port)):
        return None
    layer = context.graph[port.layer]
    is_fake = isinstance(layer.op, FakeQuantize)
    levels = _match_fake_quantize(context, layer) if is_fake else _match_dequantize(context, layer)
    if levels is None:
        return None
    shape, scale = levels.shape, levels.scale
    axes = 1 if isinstance(op, Convolution) else 2
    per_channel = scale.ndim == len(shape) > axes and all(n == 1 for n in scale.shape[axes:])
    if not per_channel or (numbers := levels.integers()) is None:
        return None
    row = np.broadcast_to(scale.reshape(scale.shape[:axes]), shape[:axes]).reshape(-1)
    return IntegerWeights(numbers, row.astype(np.float64))


@dataclass(frozen=True)
class _Levels:
    """Weights ``scale * (level + shift)``; all arrays broadcast to the weights' shape.

    Args:
        data: the levels, or the f32 data of a FakeQuantize.
        parameters: the parameters of the FakeQuantize, ``[10, ...]``, in the order of `QuantizeParameter`; ``None`` if
            ``data`` are levels.
        shift: the negative zero point.
        scale: the distance of neighbouring levels.
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
        """Return ``level + shift`` as i8, or ``None`` if a shift is not an integer or a sum does not fit."""
        shape, nearest = self.shape, np.rint(self.shift)
        if not (np.abs(self.shift - nearest) <= TOLERANCE).all():
            return None
        data, shift = np.broadcast_to(self.data, shape), np.broadcast_to(nearest.astype(np.float32), shape)
        limits = [] if self.parameters is None else [np.broadcast_to(row, shape) for row in self.parameters]
        integers = np.empty(shape, np.int8)
        step = max(BLOCK * len(integers) // max(integers.size, 1), 1)
        for first in range(0, len(integers), step):
            part = slice(first, first + step)
            sums = _levels(data[part], [limit[part] for limit in limits]) + shift[part]
            if sums.size and not (sums.min() >= -128 and sums.max() <= 127):
                return None
            integers[part] = sums
        return integers


def _levels(x: Array, limits: Sequence[Array]) -> Array:
    """Quantize f32 data to levels by the parameters of a FakeQuantize; without parameters, return ``x``."""
    if not limits:
        return x
    bottom, top, low, width, steps, *_ = limits
    levels: Array = x.clip(bottom, top)
    levels -= low
    levels /= width
    levels *= steps
    np.rint(levels, out=levels)
    return levels


def _match_fake_quantize(context: MatchContext, layer: Layer) -> _Levels | None:
    """Return the weights that ``Constant -> FakeQuantize`` with at most 256 levels computes.

    Returns ``None`` for other layers, and unless the input and output ranges have positive widths.
    """
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
    return _Levels(data, parameters, first / scale, _prepend_axes(scale, data.ndim))


def _match_dequantize(context: MatchContext, layer: Layer) -> _Levels | None:
    """Return the weights that ``Constant -> Convert -> Subtract -> Multiply`` computes from i8 or u8; the Subtract is optional.

    Returns ``None`` for other layers, and unless all scales are positive.
    """
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
    scale = _prepend_axes(scale.astype(np.float64), numbers.ndim)
    return _Levels(numbers, None, -zero.astype(np.float64), scale)


def _prepend_axes(scale: Array, rank: int) -> Array:
    return scale.reshape((1,) * (rank - scale.ndim) + scale.shape)


def _constant(context: MatchContext, port: Port) -> Array | None:
    """Return the array of a constant, of a folded value, or of an integer or float constant converted to f32; else ``None``."""
    folded = context.value(port).known()
    if folded is not None:
        return folded
    op = context.graph[port.layer].op
    if isinstance(op, Constant):
        return op.value.unpack() if isinstance(op.value, Packed) else np.asarray(op.value)
    if isinstance(op, Convert) and op.destination_type.label == "f32":
        source = _constant(context, context.sources(context.graph[port.layer])[0])
        return None if source is None or source.dtype.kind not in "iuf" else source.astype(np.float32)
    return None
