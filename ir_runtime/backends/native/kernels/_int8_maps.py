"""Maps of levels: channels-last, padded to whole vectors, with a border filled with the level of zero.

Layers divide their units into shares: consecutive units that a thread takes first. They are the same in every
layer, since the data that a thread has written is in its own cache. A thread that has finished its share
continues with the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...._util.forks import cached_property
from ....ir.tensor import Array
from ....limits import check_array_size
from ...common.kept_memory import empty
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.levels import GROUP, LEVEL_DTYPE, LEVEL_SIZE
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import I32, VECTOR, Emit, Value
from ..threading.task import thread_index

__all__ = [
    "LevelMap",
    "MapJob",
    "fill_borders",
    "line_address",
    "share_of_lines",
    "MAX_SHARES",
    "first_share",
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
def _fill(emit: Emit, out: Value, size: Value, word: Value) -> None:
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
