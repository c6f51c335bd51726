"""Convolution windows as rows of a product: read in place, or from copies of lines padded with zeros.

A chunk of rows reads few lines, and their copies stay in the cache. In a copy, the rows of a window are
contiguous and equally spaced in all windows, so a window row is one tap, and a window has one address. With
few channels, that is faster than an address for each element of each window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import load_i64, store_i64
from ._gemm_job import GemmJob, WindowRecord
from ._rows import clear_row, copy_row

__all__ = [
    "Layout",
    "Windows",
    "tap_offsets",
    "CopiedLines",
    "CopyPlan",
    "are_better_copied",
    "copied_windows",
]


class Layout(IntEnum):
    """The storage of rows in the data; `PADDED` rows are read from copies of lines."""

    MATRIX = 0
    VALID = 1
    PADDED = 2
    COPIED = 3


class Windows(NamedTuple):
    """The windows of a convolution, with up to three numbers for spatial axes; missing axes have length 1.

    Args:
        lengths: the lengths of the data.
        out: the lengths of the result.
        strides: the distances between windows.
        pads: the padding before the data.
        kernel: the lengths of a window.
        dilations: the distances between elements of a window.
        element: the bytes between neighbours along the last axis.
        image: the bytes between images.
    """

    lengths: Sequence[int]
    out: Sequence[int]
    strides: Sequence[int]
    pads: Sequence[int]
    kernel: Sequence[int]
    dilations: Sequence[int]
    element: int
    image: int

    def share_inside(self) -> float:
        """Return the mean fraction of the kernel inside the data, over all axes except that of rows."""
        if 0 in self.out:
            return 0.0  # of an empty result
        share = 1.0
        for axis in range(len(self.kernel) - 1):
            first = np.arange(self.out[axis]) * self.strides[axis] - self.pads[axis]
            places = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            share *= float(((places >= 0) & (places < self.lengths[axis])).mean())
        return share

    def volume(self, name: str) -> tuple[int, ...]:
        """Expand a field to three spatial axes."""
        numbers = getattr(self, name)
        return (*[int(name != "pads")] * (3 - len(numbers)), *numbers)

    def record(self) -> Array:
        """Return the windows in the kernels' layout."""
        axes = {name: self.volume(name) for name in self._fields[:-2]}
        return WindowRecord.fill(**axes, element=self.element, image=self.image)


def tap_offsets(g: Windows, layout: Layout, merged: bool, groups: int, words: int) -> Array:
    """Return the byte offset of each tap from the row's address, for each group of ``words`` words of a pixel."""
    within = np.zeros(math.prod(g.kernel), np.int64)
    if layout is Layout.VALID:
        along = [1] * len(g.kernel)
        for axis in range(len(g.kernel) - 2, -1, -1):
            along[axis] = along[axis + 1] * g.lengths[axis + 1]
        kernel = [*g.kernel[:-1], 1] if merged else g.kernel
        places = np.indices(kernel).reshape(len(kernel), -1)
        steps = [step * dilation * g.element for step, dilation in zip(along, g.dilations, strict=True)]
        within = (np.array(steps)[:, None] * places).sum(axis=0)
    return (within + 4 * words * np.arange(groups)[:, None]).reshape(-1).astype(np.int64)


# The time to look up the address of an element of a window, in products of vectors; the share of the work that copying takes.
LOOKUP_WORK, COPY_SHARE = 2.5, 0.04


class CopiedLines(Descriptor):
    """The copies of a chunk's lines: lines per kernel plane, bytes per line, and bytes in all."""

    lines: i64
    pitch: i64
    size: i64


class CopyPlan(NamedTuple):
    """The record in the kernels' layout, and the byte offset of each tap."""

    record: Array
    tap_offsets: Array

    @classmethod
    def of(cls, windows: Windows, chunk: int) -> CopyPlan:
        """Return the plan for chunks of that many windows."""
        planes, tall, wide = windows.volume("kernel")
        _, out_tall, out_wide = windows.volume("out")
        _, down, across = windows.volume("strides")
        lines = (min(out_tall, (chunk - 2) // out_wide + 2) - 1) * down + tall
        width = (out_wide - 1) * across + wide
        parts = (chunk - 2) // (out_tall * out_wide) + 2
        pitch = width * windows.element
        copied = windows._replace(lengths=(planes, lines, width)[-len(windows.kernel) :])
        offsets = tap_offsets(copied, Layout.VALID, True, 1, 1)
        return cls(CopiedLines.fill(lines=lines, pitch=pitch, size=parts * planes * lines * pitch), offsets)


def are_better_copied(windows: Windows, vectors: int, share: float) -> bool:
    """Return whether copying is faster for this many result vectors, given the fraction of taps that are not skipped."""
    if any(n != 1 for n in windows.dilations) or min(windows.pads) < 0:
        return False
    return windows.element // 4 * vectors * (1 - share + COPY_SHARE) < LOOKUP_WORK


@device
def _copy_line(source: int, count: int, target: int, before: int, pitch: int) -> None:
    """Copy a line padded with zeros; sizes are in bytes, and a negative ``count`` stores only zeros."""
    if count < 0:
        clear_row(target, pitch // 4)
        return
    begin = min(before, pitch)
    inside = min(count, pitch - begin)
    clear_row(target, begin // 4)
    copy_row(source, inside // 4, target + begin)
    clear_row(target + begin + inside, (pitch - begin - inside) // 4)


@device
def _copy_lines(
    x: int, g: WindowRecord, copied: CopiedLines, room: int, image: int, plane: int, line: int, count: int
) -> None:
    """Copy the data read by ``count`` lines of windows of a plane."""
    element, tall = g.element, load_i64(g, WindowRecord.lengths + 1)
    deep, wide = load_i64(g, WindowRecord.lengths), load_i64(g, WindowRecord.lengths + 2)
    lines, pitch = copied.lines, copied.pitch
    down, size = load_i64(g, WindowRecord.strides + 1), wide * element
    first = plane * load_i64(g, WindowRecord.strides) - load_i64(g, WindowRecord.pads)
    top = line * down - load_i64(g, WindowRecord.pads + 1)
    before = load_i64(g, WindowRecord.pads + 2) * element
    start = x + image * g.image
    for a in range(load_i64(g, WindowRecord.kernel)):
        for b in range((count - 1) * down + load_i64(g, WindowRecord.kernel + 1)):
            inside = 0 <= first + a < deep and 0 <= top + b < tall
            source = start + ((first + a) * tall + top + b) * size
            _copy_line(source, size if inside else -1, room + (a * lines + b) * pitch, before, pitch)


@device
def copied_windows(places: int, x: int, job: GemmJob, first: int, rows: int, room: int) -> None:
    """Copy the data read by windows to ``room``, and write the addresses of their first elements there."""
    g, copied = WindowRecord.at(job.windows), CopiedLines.at(job.copied)
    deep, tall = load_i64(g, WindowRecord.out), load_i64(g, WindowRecord.out + 1)
    wide, pitch = load_i64(g, WindowRecord.out + 2), copied.pitch
    step = load_i64(g, WindowRecord.strides + 2) * g.element
    down = load_i64(g, WindowRecord.strides + 1) * pitch
    r = 0
    while r < rows:
        line, column = (first + r) // wide, (first + r) % wide
        plane, above = line // tall, line % tall
        some = min((tall - above) * wide - column, rows - r)
        count = (column + some + wide - 1) // wide
        _copy_lines(x, g, copied, room, plane // deep, plane % deep, above, count)
        for b in range(count):
            begin, end = max(column, b * wide), min((b + 1) * wide, column + some)
            for i in range(begin, end):
                store_i64(places, r + i - column, room + b * down + (i - b * wide) * step)
        room += load_i64(g, WindowRecord.kernel) * copied.lines * pitch
        r += some
