"""The GEMM kernels: they write row addresses to an indirection buffer and multiply the rows by packed panels.

A unit of work is a chunk of rows by one panel. Convolution is an implicit GEMM: instead of copying windows (im2col), the
kernel fills a buffer with pointers to their taps, the contiguous pieces of a window (Dukhan 2019, "The Indirect Convolution
Algorithm", arXiv:1907.02129). If all windows lie inside the data, a tap is a row of the window. Otherwise a tap is one
element of the window, and elements in the padding point to a row of zeros.

With few channels, an address for each element of each window is slow. Then the lines that a chunk of windows reads are
copied and padded with zeros; the copies stay in the cache. In a copy, a row of a window is contiguous again and is one tap.

The left operand is f32 or bf16, the packed operand f32 or bf16; sums are f32.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ...core.precision import current
from ..codegen.bf16 import IS_FASTER
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Device, Routine, device, routine, types
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk, each_unit
from ._copy import contiguous
from ._epilogue import Bf16Tensors, apply_post_ops
from ._gemm_tile import (
    ROW_MULTIPLE,
    GemmJob,
    OutputLines,
    StoredTypes,
    WindowRecord,
    bf16_panel,
    gemm_panel,
    round_row,
    round_rows,
    widened_panel,
)
from ._panels import PackedPanels, Panel, pack_bf16_panels, pack_panels, unit_place
from ._rows import clear_row, copy_row

__all__ = [
    "are_better_copied",
    "requested_products",
    "BF16_PRODUCTS",
    "Bf16Rows",
    "CopiedLines",
    "CopyPlan",
    "F32_PRODUCTS",
    "few_row_products",
    "GEMM",
    "GEMM_OF_RUN",
    "Layout",
    "Products",
    "tap_offsets",
    "WIDENED_PRODUCTS",
    "Windows",
]


class Layout(IntEnum):
    """How to find the rows of the left operand: as rows of a matrix, or as the windows of a convolution.

    `VALID` windows lie inside the data, `PADDED` windows have an address per element, `COPIED` windows are read from
    copies of lines.
    """

    MATRIX = 0
    VALID = 1
    PADDED = 2
    COPIED = 3


class Windows(NamedTuple):
    """The geometry of the windows of a convolution over one to three spatial axes.

    Args:
        lengths: the spatial shape of the data.
        out: the spatial shape of the result.
        strides: the stride of the windows along each axis.
        pads: the padding before the data along each axis.
        kernel: the shape of a window.
        dilations: the dilation along each axis.
        element: the bytes of a pixel: the distance of neighbours along the last axis.
        image: the bytes of an image.
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
        """Return the mean fraction of a window that lies inside the data, ignoring padding along the last axis."""
        if 0 in self.out:
            return 0.0
        share = 1.0
        for axis in range(len(self.kernel) - 1):
            first = np.arange(self.out[axis]) * self.strides[axis] - self.pads[axis]
            places = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            share *= float(((places >= 0) & (places < self.lengths[axis])).mean())
        return share

    def volume(self, name: str) -> tuple[int, ...]:
        """Return a field expanded to three spatial axes: missing axes have length, stride and dilation 1 and no padding."""
        numbers = getattr(self, name)
        return (*[int(name != "pads")] * (3 - len(numbers)), *numbers)

    def record(self) -> Array:
        """Return the geometry as a `WindowRecord`."""
        axes = {name: self.volume(name) for name in self._fields[:-2]}
        return WindowRecord.fill(**axes, element=self.element, image=self.image)


def tap_offsets(g: Windows, layout: Layout, merged: bool, groups: int, words: int) -> Array:
    """Return the byte offset of each tap from the address of its window, for all channel groups.

    Args:
        g: the geometry of the windows.
        layout: where windows are read from.
        merged: whether a row of a window is one tap.
        groups: the number of channel groups.
        words: the 32-bit words of a pixel in one group.
    """
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


# The cost of looking up an address, in vector multiply-adds; the cost of copying lines as a fraction of that of the products.
LOOKUP_WORK, COPY_SHARE = 2.5, 0.04


class CopiedLines(Descriptor):
    """The buffer that holds the copies of the lines which a chunk of windows reads.

    ``lines`` is the number of copied lines for each plane of the kernel, ``pitch`` the bytes of a copied line with its padding,
    and ``size`` the bytes of the buffer.
    """

    lines: i64
    pitch: i64
    size: i64


class CopyPlan(NamedTuple):
    """A `CopiedLines` record, and the byte offset of each tap in the copies."""

    record: Array
    tap_offsets: Array

    @classmethod
    def of(cls, windows: Windows, chunk: int) -> CopyPlan:
        """Return the plan for chunks of ``chunk`` windows."""
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
    """Return whether copying lines is faster than looking up the address of each window element.

    Args:
        windows: the geometry of the windows.
        vectors: the number of vectors of a result row.
        share: the fraction of taps that would not be skipped as padding.
    """
    if any(n != 1 for n in windows.dilations) or min(windows.pads) < 0:
        return False
    return windows.element // 4 * vectors * (1 - share + COPY_SHARE) < LOOKUP_WORK


@device
def _copy_line(source: int, count: int, target: int, before: int, pitch: int) -> None:
    """Copy a line of ``count`` bytes to a line of ``pitch`` bytes, after ``before`` bytes of zeros, and zero the remainder.

    A negative ``count`` stores only zeros.
    """
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
    """Copy the lines of data that ``count`` lines of windows read to the buffer ``room``.

    ``image``, ``plane`` and ``line`` are the indices of the first of these lines in the result.
    """
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
def _copy_windows(places: int, x: int, job: GemmJob, first: int, rows: int, room: int) -> None:
    """Copy the lines that windows read to ``room``, and write the address of each window's first element to ``places``.

    The windows are those of ``rows`` result rows, the first of which is ``first``.
    """
    g, copied = WindowRecord.at(job.windows), CopiedLines.at(job.copied)
    deep, tall = load_i64(g, WindowRecord.out), load_i64(g, WindowRecord.out + 1)
    wide, pitch = load_i64(g, WindowRecord.out + 2), copied.pitch
    step = load_i64(g, WindowRecord.strides + 2) * g.element
    down = load_i64(g, WindowRecord.strides + 1) * pitch
    r = 0
    while r < rows:
        line, column = (first + r) // wide, (first + r) % wide
        plane, above = line // tall, line % tall
        windows = min((tall - above) * wide - column, rows - r)
        count = (column + windows + wide - 1) // wide
        _copy_lines(x, g, copied, room, plane // deep, plane % deep, above, count)
        for b in range(count):
            begin, end = max(column, b * wide), min((b + 1) * wide, column + windows)
            for i in range(begin, end):
                store_i64(places, r + i - column, room + b * down + (i - b * wide) * step)
        room += load_i64(g, WindowRecord.kernel) * copied.lines * pitch
        r += windows


_INFINITY = np.float32(np.inf)


@device
def _place_matrix(places: int, base: int, rows: int, apart: int) -> None:
    """Write the addresses of ``rows`` rows of a matrix, which are ``apart`` bytes apart."""
    for r in range(rows):
        store_i64(places, r, base + r * apart)


@device
def _window(g: WindowRecord, index: int) -> tuple[int, int, int, int]:
    """Return the image, plane, line and column of window ``index``."""
    deep, tall = load_i64(g.out, 0), load_i64(g.out, 1)
    wide = load_i64(g.out, 2)
    line = index // wide
    plane = line // tall
    image = plane // deep
    return image, plane - image * deep, line - plane * tall, index - line * wide


@device
def _place_valid(places: int, x: int, g: WindowRecord, first: int, rows: int) -> None:
    """Write the address of the first element of each window; all windows lie inside the data."""
    element, image = g.element, g.image
    tall, wide = load_i64(g.lengths, 1), load_i64(g.lengths, 2)
    wide_out = load_i64(g.out, 2)
    r, index = 0, first
    while r < rows:
        n, plane, line, column = _window(g, index)
        d, h = plane * load_i64(g.strides, 0), line * load_i64(g.strides, 1)
        start = x + n * image + (d * tall + h) * wide * element
        step = load_i64(g.strides, 2) * element
        count = min(wide_out - column, rows - r)
        for i in range(count):
            store_i64(places, r + i, start + (column + i) * step)
        r, index = r + count, index + count


@device
def _place_padded(places: int, x: int, g: WindowRecord, first: int, rows: int, step: int, zeros: int) -> None:
    """Write the address of each element of each window: one table of ``step`` bytes per kernel element.

    Elements in the padding get the address ``zeros``.
    """
    element, image = g.element, g.image
    deep, tall = load_i64(g.lengths, 0), load_i64(g.lengths, 1)
    wide, wide_out = load_i64(g.lengths, 2), load_i64(g.out, 2)
    r, index = 0, first
    while r < rows:
        n, plane, line, column = _window(g, index)
        top = plane * load_i64(g.strides, 0) - load_i64(g.pads, 0)
        left = line * load_i64(g.strides, 1) - load_i64(g.pads, 1)
        count = min(wide_out - column, rows - r)
        stride, before = load_i64(g.strides, 2), load_i64(g.pads, 2)
        table = places + 8 * r
        for a in range(load_i64(g.kernel, 0)):
            d = top + a * load_i64(g.dilations, 0)
            for b in range(load_i64(g.kernel, 1)):
                h = left + b * load_i64(g.dilations, 1)
                has_line = 0 <= d < deep and 0 <= h < tall
                start = x + n * image + (d * tall + h) * wide * element
                for c in range(load_i64(g.kernel, 2)):
                    w = column * stride - before + c * load_i64(g.dilations, 2)
                    for i in range(count):
                        inside = has_line and 0 <= w < wide
                        store_i64(table, i, start + w * element if inside else zeros)
                        w += stride
                    table += step
        r, index = r + count, index + count


@routine(*[types.int64] * 7)
def _place_rows(job: GemmJob, places: int, x: int, start: int, count: int, step: int, room: int) -> None:
    """Fill the indirection buffer ``places`` for ``count`` rows; a routine, so that all kernels share its code.

    ``start`` is the index of the first row, ``step`` the bytes between the tables of two taps, and ``room`` the buffer for
    copies of lines.
    """
    layout, geometry = job.layout, WindowRecord.at(job.windows)
    if layout == 0:
        apart = job.row_stride
        _place_matrix(places, x + start * apart, count, apart)
    elif layout == 1:
        _place_valid(places, x, geometry, start, count)
    elif layout == 3:
        _copy_windows(places, x, job, start, count, room)
    else:
        _place_padded(places, x, geometry, start, count, step, job.zeros)


@device
def _constant_weights(job: GemmJob, second: int) -> int:
    """Return the address of the packed matrix of the job."""
    return job.weights


@device
def _weights_of_run(job: int, second: int) -> int:
    """Return the address of a matrix packed in this run, which takes the place of the second extra tensor."""
    return second


def f32_block(multiply: Routine, weights: Device[..., int] = _constant_weights) -> Device[..., None]:
    """Return a function for `gemm_task` that multiplies rows by a panel and applies the epilogue in f32.

    Args:
        multiply: the panel product, with the parameters of `gemm_panel`.
        weights: returns the address of the packed matrix, given the job and the second extra tensor.
    """

    @device
    def block(  # noqa: PLR0913 (values in registers)
        job: GemmJob, entry: Panel, places: int, step: int, count: int, start: int, out: int, first: int,
        second: int,
    ) -> None:  # fmt: skip
        vectors, last, epilogue = entry.vectors, entry.last_columns, job.epilogue
        stride, column = job.out_stride, 4 * entry.column
        at, zeros = start * stride + column, _zeros_to_skip(job)
        taps, part = job.taps, job.part_taps
        depth, width = job.depth, 4 * LANES * vectors
        offsets = job.tap_offsets + entry.tap_offset
        panel = weights(job, second) + entry.start
        sums, sums_stride = job.bias + entry.bias, 0
        room, done = 0 if part >= taps else scratch_memory(count * width), 0
        while done + part < taps:
            multiply(
                vectors, count, places + done * step, step, zeros, offsets + 8 * done, part, depth,
                panel + done * depth * width, room, width, sums, sums_stride, 0, LANES, -_INFINITY, _INFINITY,
            )  # fmt: skip
            sums, sums_stride, done = room, width, done + part
        multiply(
            vectors, count, places + done * step, step, zeros, offsets + 8 * done, taps - done, depth,
            panel + done * depth * width, out + at, stride, sums, sums_stride,
            first + at if epilogue.has_residual != 0 else 0, last, epilogue.low, epilogue.high,
        )  # fmt: skip
        if epilogue.post_ops > 0:
            width = (vectors - 1) * LANES + last
            apply_post_ops(epilogue, first, second, out, at, column, count, width, stride)

    return block


@device
def _zeros_to_skip(job: GemmJob) -> int:
    """Return the address of the row of zeros if taps in padding are to be skipped, else 0."""
    return job.zeros if job.skips_zeros != 0 else 0


def _split_lines(compute_block: Device[..., None]) -> Device[..., None]:
    """Wrap ``compute_block`` to store result rows where `OutputLines` places them: one call per result line."""

    def compute(  # noqa: PLR0913 (values in registers)
        job: GemmJob, entry: Panel, places: int, step: int, count: int, start: int, out: int, first: int,
        second: int,
    ) -> None:  # fmt: skip
        g, stride = OutputLines.at(job.lines), job.out_stride
        width, height = g.width, g.height
        planes, lines = g.planes, g.lines
        columns, group_lines = g.columns, g.group_lines
        group = entry.column // columns
        down = group // group_lines
        across, done = group - down * group_lines, 0
        # The block adds the offset of its column among the columns of all groups.
        base = out - group * columns * (stride // g.pitch)
        while done < count:
            line = (start + done) // width
            column, plane = start + done - line * width, line // height
            rows = min(width - column, count - done)
            target = ((plane * planes + down) * height + line - plane * height) * lines + across
            compute_block(
                job, entry, places + 8 * done, step, rows, column, base + target * width * stride, first, second
            )  # fmt: skip
            done += rows

    return device(compute)


def gemm_task(name: str, compute_block: Device[..., None]) -> Task:
    """Return a task that multiplies the rows of A by a packed matrix.

    Args:
        name: the name of the task.
        compute_block: multiplies a chunk of rows by a panel; takes the job, the `Panel`, the table of row
            addresses, the bytes between the tables of two taps, the number of rows, the first row, the result, and
            the two extra tensors.
    """
    compute_lines = _split_lines(compute_block)

    def gemm(call: int, job: GemmJob, out: int, x: int, first: int, second: int) -> None:
        """Multiply rows by panels; a unit of work is a chunk of rows by one panel."""
        rows, chunk = job.rows, job.chunk
        panels, taps = job.panels, job.taps
        layout, chunks = job.layout, (rows + chunk - 1) // chunk
        step = 8 * chunk if layout == 2 else 0
        room = scratch_memory(CopiedLines.at(job.copied).size) if layout == 3 else 0
        places = scratch_memory(8 * chunk * (taps if layout == 2 else 1))
        placed = -1
        for unit in each_unit(call, chunks * panels):
            panel, part = unit_place(unit, job.by_panel, chunks, panels)
            start = part * chunk
            count = min(chunk, rows - start)
            if part != placed:
                _place_rows(job, places, x, start, count, step, room)
                placed = part
            entry = job.table + 8 * Panel.words * panel
            if job.lines != 0:
                compute_lines(job, entry, places, step, count, start, out, first, second)
            else:
                compute_block(job, entry, places, step, count, start, out, first, second)

    return Task(gemm, name)


GEMM = gemm_task("_gemm", f32_block(gemm_panel))
"""Multiply rows of A by a packed matrix, all f32; B and C are the extra tensors of post-ops."""

GEMM_OF_RUN = gemm_task("_gemm_of_run", f32_block(gemm_panel, _weights_of_run))
"""Like `GEMM`, but the packed matrix is C, packed in this run, so B is the only extra tensor."""


# Elements that a thread rounds at a time.
CHUNK = 1 << 14
# Integers, as kernels cannot use enumerations.
RESULT, RESIDUAL = int(StoredTypes.RESULT), int(StoredTypes.RESIDUAL)

# Rows of an f32 block that stays in the cache until it is rounded: a multiple of the rows of every tile.
STAGED_ROWS = ROW_MULTIPLE


@device
def _compute_staged(
    job: GemmJob, entry: Panel, places: int, step: int, count: int, out: int, other: int, stored: int
) -> None:
    """Multiply rows by a panel into an f32 block, apply the post-ops there, and round it to the result in bf16.

    ``other`` is the address of the residual, or 0, and ``stored`` a `StoredTypes`; for the others, see `gemm_task`.
    """
    vectors, last, epilogue = entry.vectors, entry.last_columns, job.epilogue
    width, column = (vectors - 1) * LANES + last, 4 * entry.column
    stride, apart = job.out_stride, job.residual_stride
    block = scratch_memory(4 * STAGED_ROWS * width)
    for row in range(0, count, STAGED_ROWS):
        rows = min(STAGED_ROWS, count - row)
        bf16_panel(
            vectors, rows, places + 8 * row, step, _zeros_to_skip(job),
            job.tap_offsets + entry.tap_offset, job.taps,
            job.depth, job.weights + entry.start,
            block, 4 * width, job.bias + entry.bias, 0,
            other + row * apart if other != 0 else 0, last, epilogue.low, epilogue.high,
            apart, stored & RESIDUAL,
        )  # fmt: skip
        apply_post_ops(epilogue, 0, 0, block, 0, column, rows, width, 4 * width)
        round_rows(block, out + row * stride, stride, rows, width)


@device
def _block(  # noqa: PLR0913 (values in registers)
    job: GemmJob, entry: Panel, places: int, step: int, count: int, start: int, out: int, first: int, second:
    int,
) -> None:  # fmt: skip
    """Multiply rows by a panel and apply the epilogue; the result and the residual may be bf16."""
    vectors, last, epilogue = entry.vectors, entry.last_columns, job.epilogue
    stride, apart = job.out_stride, job.residual_stride
    stored, column, stages = job.types, entry.column, epilogue.post_ops
    at = start * stride + column * (2 if stored & RESULT != 0 else 4)
    other = 0
    if epilogue.has_residual != 0:
        other = first + start * apart + column * (2 if stored & RESIDUAL != 0 else 4)
    if stages > 0 and stored & RESULT != 0:
        _compute_staged(job, entry, places, step, count, out + at, other, stored)
        return
    bf16_panel(
        vectors, count, places, step, _zeros_to_skip(job), job.tap_offsets + entry.tap_offset,
        job.taps, job.depth, job.weights + entry.start,
        out + at, stride, job.bias + entry.bias, 0, other, last,
        epilogue.low, epilogue.high, apart, stored,
    )  # fmt: skip
    if stages > 0:
        width = (vectors - 1) * LANES + last
        apply_post_ops(epilogue, first, second, out, at, 4 * column, count, width, stride)


BF16_GEMM = gemm_task("_bf16_gemm", _block)
"""Multiply bf16 rows of A by a packed bf16 matrix; the result and the residual B are f32 or bf16."""


class RoundJob(Descriptor):
    """Parameters of `_round_all`.

    ``depth`` is the number of elements in each of the ``rows`` rows, ``stored`` the same with padding, and ``chunk`` the number of
    rows in a unit of work.
    """

    rows: i64
    depth: i64
    stored: i64
    chunk: i64


@device
def _round_rows(x: int, out: int, rows: int, depth: int, stored: int) -> None:
    if stored == depth:  # process contiguous rows as one
        round_row(x, rows * depth, out, rows * depth)
    else:
        for row in range(rows):
            round_row(x + 4 * row * depth, depth, out + 2 * row * stored, stored)


@Task
def _round_all(call: int, job: RoundJob, out: int, x: int) -> None:
    """Round f32 rows to bf16; a unit of work is a chunk of rows."""
    rows, chunk = job.rows, job.chunk
    depth, stored = job.depth, job.stored
    for start, end in each_chunk(call, rows, chunk):
        _round_rows(x + 4 * start * depth, out + 2 * start * stored, end - start, depth, stored)


@dataclass(frozen=True)
class Bf16Rows:
    """A callable that rounds rows of ``depth`` elements to bf16, padding odd depths with a zero."""

    depth: int
    _jobs: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _round_all.prepare()

    def __call__(self, x: Array) -> Array:
        """Return rows as words of two bf16, ``[rows, words]``; bf16 rows of even depth are returned unchanged."""
        if x.itemsize == 2 and self.depth % 2 == 0:
            return x
        x = contiguous(x.astype(np.float32, copy=False))
        rows, stored = x.size // self.depth, self.depth + self.depth % 2
        if (job := self._jobs.get(rows)) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            chunk = max(CHUNK // self.depth, 1)
            job = self._jobs[rows] = RoundJob.fill(rows=rows, depth=self.depth, stored=stored, chunk=chunk)
        words = empty((rows, stored // 2), np.int32)
        count = threads_for(moved=6 * x.size)
        parallel_for(_round_all.address, job, words, x, UNUSED, UNUSED, count)
        return words


WIDENED_GEMM = gemm_task("_widened_gemm", f32_block(widened_panel))
"""Multiply f32 rows of A by a packed bf16 matrix; the result and the extra tensors are f32."""


# The range of channel counts in which f32 Winograd is faster than bf16 products, which read and store half the bytes.
MIN_WINOGRAD_CHANNELS, MAX_WINOGRAD_CHANNELS = 64, 256


MIN_BF16_WORK = 1 << 18
# The number of rows assumed if it is dynamic.
USUAL_ROWS = 16
# Products of at most MAX_WIDENED_ROWS rows are limited by reading the weights if there are at least MIN_WIDENED_NUMBERS of
# them; fewer stay in the caches of a core.
MAX_WIDENED_ROWS, MIN_WIDENED_NUMBERS = 8, 1 << 18


@dataclass(frozen=True)
class Products:
    """A GEMM variant: the operand types, and the functions that pack and multiply them.

    Args:
        name: the kernel's name in profiles; empty for the backend's name.
        per_word: the elements of a column in a 32-bit word.
        task: the `gemm_task`.
        pack: packs the right operand, with the parameters of `pack_panels`.
        rows_of: given the length of rows, returns a function that converts contiguous f32 to the left operand.
        is_faster: whether the processor multiplies these types faster than f32.
        min_work: the number of multiplications from which converting the left operand pays off.
    """

    name: str
    per_word: int
    task: Task
    pack: Callable[..., PackedPanels]
    rows_of: Callable[[int], Callable[[Array], Array]]
    is_faster: bool = False
    min_work: int = 0

    def bf16_tensors(self, numbers: int) -> Bf16Tensors:
        """Return the tensors that may be stored in bf16, for rows of ``numbers`` elements."""
        is_faster = self.is_faster
        return Bf16Tensors(is_faster and numbers % self.per_word == 0, is_faster, is_faster)

    def words(self, numbers: int) -> int:
        """Return the number of 32-bit words that hold ``numbers`` elements, with padding."""
        return -(-numbers // self.per_word)

    def prefers_winograd(self, filters: Sequence[int]) -> bool:
        """Return whether f32 Winograd, where it beats f32 products, also beats this variant.

        Args:
            filters: the shape of the filters, ``[C_out, C_in, 3, 3]``.
        """
        return not self.is_faster or (
            min(filters[:2]) >= MIN_WINOGRAD_CHANNELS and max(filters[:2]) <= MAX_WINOGRAD_CHANNELS
        )


def _identity(x: Array) -> Array:
    return x


F32_PRODUCTS = Products("", 1, GEMM, pack_panels, lambda _: _identity)
BF16_PRODUCTS = Products("gemm_bf16", 2, BF16_GEMM, pack_bf16_panels, Bf16Rows, IS_FASTER, MIN_BF16_WORK)

WIDENED_PRODUCTS = Products("gemm_bf16_weights", 2, WIDENED_GEMM, pack_bf16_panels, lambda _: _identity)
"""Products of f32 rows with bf16 weights; for rows of even length only, as an odd row would be read beyond its end."""


def requested_products(rows: int | None = None, numbers: int | None = None) -> Products:
    """Return the GEMM variant that the current compilation requests for products of f32 data with constant weights.

    Args:
        rows: the number of rows of the left operand; ``None`` if dynamic.
        numbers: the number of weights; ``None`` to assume that rounding the left operand pays off.
    """
    requested = BF16_PRODUCTS if current().products == "bf16" else F32_PRODUCTS
    work = requested.min_work if numbers is None else numbers * (USUAL_ROWS if rows is None else rows)
    return requested if work >= requested.min_work else F32_PRODUCTS


def few_row_products(requested: Products, rows: int | None, depth: int, numbers: int) -> Products:
    """Return `WIDENED_PRODUCTS` if the current compilation allows bf16 weights and reading them limits the speed.

    Args:
        requested: the variant to return otherwise.
        rows: the number of rows of the left operand; ``None`` if dynamic.
        depth: the length of a row.
        numbers: the number of weights.
    """
    if requested is not F32_PRODUCTS or current().weights != "bf16" or depth % 2 != 0:
        return requested
    waits = rows is not None and rows <= MAX_WIDENED_ROWS and numbers >= MIN_WIDENED_NUMBERS
    return WIDENED_PRODUCTS if waits else requested
