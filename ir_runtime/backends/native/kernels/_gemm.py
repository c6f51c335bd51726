"""Products with packed weights: of matrices, and of NHWC windows with filters (convolution as implicit GEMM).

A row of the left operand is read in taps: contiguous pieces of equal length, whose distances in memory may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution import ForwardConvolution
from ...common.kept_memory import empty
from ...common.layout import channels_first, moveaxis
from ...common.windows import window_fit
from ..codegen.vectors import LANES
from ..packed_memory import aligned_empty
from ..threading.parallel import parallel_for, pays_to_share, threads
from ..threading.task import Task
from ._copy import contiguous
from ._epilogue import Epilogue, PackedEpilogue
from ._gemm_kernel import GEMM, CopyPlan, Layout, Products, Windows, are_better_copied, tap_offsets
from ._gemm_tile import GemmJob, StoredTypes
from ._panels import CachedBytes, PackedPanels, chunk_rows

__all__ = ["NO_OFFSET", "Gemm", "Rows", "WindowProduct", "flat"]

# The fraction of taps in padding from which checking for them, in order to skip them, is faster.
MIN_SKIPPED = 0.1
CACHED = CachedBytes(rows=1 << 18, weights=1 << 19)
# The panels of products of at least MIN_PARTED_WORDS words do not fit the L2 cache, so they are used in parts of at most
# PART_WORDS words: a part multiplies all rows of a unit before the next part. Partial sums go through memory, in the same
# order of additions.
MIN_PARTED_WORDS, PART_WORDS = 1 << 12, 1 << 9
F32_SIZE = 4
NO_OFFSET = np.zeros(1, np.int64)
"""The tap offsets of a matrix."""


class Rows(NamedTuple):
    """The rows of the left operand in memory.

    Args:
        rows: the number of rows.
        layout: how to find a row in memory.
        stride: the bytes between rows of a matrix.
        tap_offsets: the byte offset of each tap from the address of its row.
        windows: the geometry, if rows are the windows of a convolution.
        lines: the `OutputLines` that place the result rows; ``None`` if result rows are equally spaced.
    """

    rows: int
    layout: Layout
    stride: int
    tap_offsets: Array
    windows: Windows | None = None
    lines: Array | None = None

    @property
    def bytes_per_row(self) -> int:
        """The bytes of data that each further row adds, on average."""
        return self.windows.element * math.prod(self.windows.strides) if self.windows else self.stride


class _Parts(NamedTuple):
    """The division of a row into taps.

    Args:
        taps: the number of taps.
        depth: the words of a tap.
        offsets: the byte offset of each tap.
        part_taps: the number of taps whose part of a panel is used for all rows of a unit before the next part.
    """

    taps: int
    depth: int
    offsets: Array
    part_taps: int


@dataclass(frozen=True)
class Gemm:
    """A matrix product with a packed right operand, followed by an epilogue.

    Args:
        panels: the packed right operand.
        epilogue: the layers applied to the product.
        columns: the number of columns of the result.
        taps: the number of taps of a row: contiguous pieces of ``depth`` words.
        depth: the length of a tap in 32-bit words, each one f32 or two bf16.
        zeros: a row of zeros, read in place of padding.
        task: the `gemm_task` for the type of the packed operand.
    """

    panels: PackedPanels
    epilogue: Epilogue
    columns: int
    taps: int
    depth: int
    zeros: Array
    task: Task = GEMM
    packed_epilogue: PackedEpilogue = field(init=False)
    _jobs: dict[tuple[Hashable, int], tuple[Array, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "packed_epilogue", PackedEpilogue.of(self.epilogue))
        self.task.prepare()

    def run(
        self,
        x: Array,
        out: Array,
        extras: Sequence[Array],
        axis: int,
        key: Hashable,
        describe: Callable[[], Rows],
        weights: Array | None = None,
    ) -> None:
        """Multiply rows of ``x`` by the packed operand and store the result.

        Args:
            x: the left operand.
            out: the result, contiguous unless `Rows.lines` places its rows.
            extras: the additional inputs of fused layers.
            axis: the axis of ``extras`` that holds the columns.
            key: the cache key of the job: calls with equal keys must describe equal rows.
            describe: returns the rows if no job is cached.
            weights: the right operand if it was packed in this run; the task reads it in place of a second extra input.
        """
        count = threads()
        first, second = self.packed_epilogue.extra_arrays(extras, axis)
        if weights is not None:
            second = weights
        if first.itemsize != F32_SIZE:
            key = key, first.itemsize
        entry = self._jobs.get((key, count))
        if entry is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            entry = self._jobs[key, count] = self._job(count, describe(), first.itemsize)
        job, shared = entry
        parallel_for(self.task.address, job, out, x, first, second, shared)

    def multiply(
        self, x: Array, out: Array, extras: Sequence[Array] = (), axis: int = -1, weights: Array | None = None
    ) -> None:
        """Multiply the rows of a contiguous matrix, each one tap; see `run` for the arguments."""
        rows = out.size // self.columns
        if rows:
            describe = partial(Rows, rows, Layout.MATRIX, x.nbytes // rows, NO_OFFSET)
            self.run(x, out, extras, axis, rows, describe, weights)

    def _job(self, count: int, rows: Rows, residual: int) -> tuple[Array, int]:
        """Return a `GemmJob` and the number of threads to run it.

        Args:
            count: the most threads to use.
            rows: the rows of the left operand.
            residual: the size of a residual's element in bytes.
        """
        windows = np.zeros(1, np.int64) if rows.windows is None else rows.windows.record()
        work = rows.rows * self.columns * (self.taps * self.depth + self.packed_epilogue.cost)
        shared = count if pays_to_share(computed=work) else 1
        taps, depth, offsets, part = self._parts(rows)
        chunk, by_panel = chunk_rows(
            rows.rows, min(rows.bytes_per_row, 4 * depth * part) if part < taps else rows.bytes_per_row,
            self.panels.numbers.nbytes, len(self.panels), shared, CACHED,
        )  # fmt: skip
        copied = None
        if rows.layout is Layout.COPIED:
            assert rows.windows is not None
            copied, offsets = CopyPlan.of(rows.windows, chunk)
        result, lines = self.epilogue.dtype.itemsize, rows.lines
        apart = self.columns if lines is None else int(lines["pitch"][0])
        stored = StoredTypes.RESULT * (result < F32_SIZE) | StoredTypes.RESIDUAL * (residual < F32_SIZE)
        job = GemmJob.fill(
            rows=rows.rows, chunk=chunk, panels=len(self.panels), by_panel=by_panel, taps=taps, depth=depth,
            layout=rows.layout, row_stride=rows.stride, table=self.panels.table, weights=self.panels.numbers,
            bias=self.panels.bias, tap_offsets=offsets, out_stride=result * apart,
            epilogue=self.packed_epilogue.record, zeros=self.zeros, skips_zeros=self._skips_zeros(rows),
            windows=windows, residual_stride=residual * self.columns, types=int(stored), lines=lines,
            copied=copied, part_taps=part,
        )  # fmt: skip
        return job, shared

    def _parts(self, rows: Rows) -> _Parts:
        """Divide rows into taps; a long row of a matrix becomes several consecutive taps."""
        words = self.taps * self.depth
        if self.task is not GEMM or words < MIN_PARTED_WORDS:
            return _Parts(self.taps, self.depth, rows.tap_offsets, self.taps)
        if rows.layout is not Layout.MATRIX:
            return _Parts(self.taps, self.depth, rows.tap_offsets, max(PART_WORDS // self.depth, 1))
        counts = range(-(-words // PART_WORDS), 4 * words // PART_WORDS)
        taps = next((count for count in counts if words % count == 0), 1)
        depth = words // taps
        return _Parts(taps, depth, 4 * depth * np.arange(taps), max(PART_WORDS // depth, 1))

    def _skips_zeros(self, rows: Rows) -> bool:
        return rows.layout is Layout.PADDED and rows.windows is not None and self.can_skip(rows.windows)

    def can_skip(self, windows: Windows) -> bool:
        """Return whether to skip taps in padding: if enough of them lie there, and the weights are finite."""
        return windows.share_inside() < 1 - MIN_SKIPPED and self.panels.is_finite


# The most window geometries that a `WindowProduct` caches, one per shape of the data.
MAX_GEOMETRIES = 64


class WindowProduct:
    """A convolution as a product of windows with packed filters ``[G, C_out, C_in, kernel...]``, and its epilogue."""

    def __init__(
        self, op: ForwardConvolution, shape: Sequence[int], panels: PackedPanels, epilogue: Epilogue,
        products: Products, task: Task | None = None,
    ) -> None:  # fmt: skip
        """Create the product.

        Args:
            op: the convolution.
            shape: the shape of the filters.
            panels: the packed filters, one matrix per group.
            epilogue: the layers applied to the product.
            products: the operand types of the multiplication.
            task: the `gemm_task`; by default that of ``products``.
        """
        self._groups, outputs, channels, *kernel = shape
        self._op, self._kernel, self._dtype = op, tuple(kernel), epilogue.dtype
        self._outputs, self._words = self._groups * outputs, products.words(channels)
        # Without dilation, a row of a window is contiguous: one tap.
        self._merged = self._groups == 1 and op.dilations[-1] == 1
        self._rows, self._fit = products.rows_of(self._groups * channels), window_fit(op, self._kernel)
        zeros = aligned_empty(self._groups * channels)
        zeros[...] = 0
        used, taps, wide = task or products.task, math.prod(kernel), kernel[-1]
        self._padded = Gemm(panels, epilogue, self._outputs, taps, self._words, zeros, used)
        self._inside = (
            Gemm(panels, epilogue, self._outputs, taps // wide, self._words * wide, zeros, used)
            if self._merged
            else self._padded
        )
        self._geometries: dict[tuple[int, ...], tuple[Gemm, Layout, Windows]] = {}

    def __call__(self, x: Array, extras: Sequence[Array], weights: Array | None = None) -> Array:
        """Convolve ``x[N, C, ...]``; ``weights`` are the packed filters if they were packed in this run."""
        gemm, layout, geometry = self._windows(x.shape[2:])
        y = empty((len(x), *geometry.out, self._outputs), self._dtype)

        def describe() -> Rows:
            offsets = tap_offsets(geometry, layout, self._merged, self._groups, self._words)
            return Rows(math.prod(y.shape[:-1]), layout, 0, offsets, geometry)

        if y.size:
            gemm.run(self._rows(flat(x)), y, extras, 1, x.shape, describe, weights)
        return channels_first(y)

    def _windows(self, lengths: tuple[int, ...]) -> tuple[Gemm, Layout, Windows]:
        """Return the product, row layout and window geometry for spatial axes of these lengths, from a cache."""
        if (entry := self._geometries.get(lengths)) is None:
            if len(self._geometries) >= MAX_GEOMETRIES:
                self._geometries.clear()
            entry = self._geometries[lengths] = self._plan_windows(lengths)
        return entry

    def _plan_windows(self, lengths: tuple[int, ...]) -> tuple[Gemm, Layout, Windows]:
        op, pixel = self._op, 4 * self._groups * self._words
        pads, out = self._fit(lengths)
        geometry = Windows(
            lengths, out, op.strides, [before for before, _ in pads], self._kernel, op.dilations, pixel,
            pixel * math.prod(lengths),
        )  # fmt: skip
        if not any(map(any, pads)):
            return self._inside, Layout.VALID, geometry
        share = geometry.share_inside() if self._padded.can_skip(geometry) else 1.0
        if self._merged and are_better_copied(geometry, -(-self._outputs // LANES), share):
            return self._inside, Layout.COPIED, geometry
        return self._padded, Layout.PADDED, geometry


def flat(x: Array) -> Array:
    """Return a map ``x[N, C, ...]`` contiguous in NHWC order, as ``[N, ..., C]``."""
    return contiguous(moveaxis(x, 1, -1))
