"""Matrix products with packed weights: dense layers and convolutions (implicit GEMM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array
from ..codegen.descriptor import Job
from ..threading.parallel import parallel_for, threads
from ..threading.task import Task
from ._epilogue import Epilogue
from ._gemm_job import GemmJob, StoredTypes, WindowRecord
from ._gemm_kernel import GEMM
from ._packed_epilogue import PackedEpilogue
from ._panels import CachedBytes, PackedPanels, chunk_rows

__all__ = ["NO_OFFSET", "Gemm", "Layout", "Rows", "Windows", "tap_offsets"]

# Multiplications from which on several threads are faster.
MIN_PARALLEL_WORK = 100_000
# The share of taps in padding from which on it is faster to look for them.
MIN_SKIPPED = 0.1
CACHED = CachedBytes(rows=1 << 18, weights=1 << 19)
F32_SIZE = 4
NO_OFFSET = np.zeros(1, np.int64)
"""The tap offsets of a matrix."""


class Layout(IntEnum):
    """How rows are stored in the data."""

    MATRIX = 0
    VALID = 1
    PADDED = 2


@dataclass(frozen=True)
class Windows:
    """The windows of a convolution; up to three numbers for spatial axes, and missing axes have length 1.

    Args:
        lengths: of the data.
        out: of the result.
        strides: between windows.
        pads: before the data.
        kernel: lengths of a window.
        dilations: between elements of a window.
        element: bytes between neighbours along the last axis.
        image: bytes between images.
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
        """Return how much of the kernel is inside the data on average, along all axes but that of rows."""
        share = 1.0
        for axis in range(len(self.kernel) - 1):
            first = np.arange(self.out[axis]) * self.strides[axis] - self.pads[axis]
            places = first[:, None] + np.arange(self.kernel[axis]) * self.dilations[axis]
            share *= float(((places >= 0) & (places < self.lengths[axis])).mean())
        return share

    def record(self) -> Array:
        """Return the record that kernels read."""
        axes = {
            name: (*[int(name != "pads")] * (3 - len(numbers)), *numbers)
            for name, numbers in vars(self).items()
            if isinstance(numbers, Sequence)
        }
        return WindowRecord.fill(**axes, element=self.element, image=self.image)


class Rows(NamedTuple):
    """The rows of the left operand: their number, layout and stride in bytes; byte offsets of taps; windows.

    ``lines`` says where the rows of the result are: `OutputLines`, or ``None`` for at equal distances.
    """

    rows: int
    layout: Layout
    stride: int
    tap_offsets: Array
    windows: Windows | None = None
    lines: Array | None = None

    @property
    def bytes_per_row(self) -> int:
        """Bytes of the data from one row to the next."""
        return self.windows.element * math.prod(self.windows.strides) if self.windows else self.stride


@dataclass(frozen=True)
class Gemm:
    """A product with a packed matrix, and its epilogue. Ten fields: the last two are made of the others.

    Args:
        panels: the packed matrix.
        epilogue: is applied to the product.
        columns: of the result.
        taps: contiguous pieces of a row, ``depth`` words each.
        depth: 32-bit words of a tap: of f32, or of two bf16.
        zeros: a row of zeros, read in place of padding.
        task: what multiplies, in the type in which the matrix is packed.
        spread: the rows of the result that it computes are this many rows apart.
    """

    panels: PackedPanels
    epilogue: Epilogue
    columns: int
    taps: int
    depth: int
    zeros: Array
    task: Task = GEMM
    spread: int = 1
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
    ) -> None:
        """Multiply rows of ``x`` and write the results to ``out``, both contiguous but for its ``spread``.

        Args:
            x: the data.
            out: the result.
            extras: the other inputs of fused layers.
            axis: their columns.
            key: identifies a job; everything in it depends on the key only.
            describe: returns the rows of a new job.
        """
        count = threads()
        first, second = self.packed_epilogue.extra_arrays(extras, axis)
        if first.itemsize != F32_SIZE:
            key = key, first.itemsize
        found = self._jobs.get((key, count))
        if found is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            found = self._jobs[key, count] = self._job(count, describe(), first.itemsize)
        job, shared = found
        parallel_for(self.task.address, job, out, x, first, second, shared)

    def multiply(self, x: Array, out: Array, extras: Sequence[Array] = (), axis: int = -1) -> None:
        """Multiply the rows of a contiguous matrix; for products of one tap."""
        rows = out.size // self.columns
        if rows:
            describe = partial(Rows, rows, Layout.MATRIX, 4 * self.depth, NO_OFFSET)
            self.run(x, out, extras, axis, rows, describe)

    def _job(self, count: int, rows: Rows, residual: int) -> tuple[Array, int]:
        """Return a job, and how many threads share it, for residuals of that many bytes."""
        windows = np.zeros(1, np.int64) if rows.windows is None else rows.windows.record()
        work = rows.rows * self.columns * (self.taps * self.depth + self.packed_epilogue.cost)
        shared = count if work >= MIN_PARALLEL_WORK else 1
        chunk, by_panel = chunk_rows(
            rows.rows, rows.bytes_per_row, self.panels.numbers.nbytes, len(self.panels), shared, CACHED
        )
        result, lines = self.epilogue.dtype.itemsize, rows.lines
        apart = self.columns * self.spread if lines is None else int(lines["columns"][0])
        stored = StoredTypes.RESULT * (result < F32_SIZE) | StoredTypes.RESIDUAL * (residual < F32_SIZE)
        job = GemmJob.fill(
            rows=rows.rows, chunk=chunk, panels=len(self.panels), by_panel=by_panel, taps=self.taps,
            depth=self.depth, layout=rows.layout, row_stride=rows.stride, table=self.panels.table.ctypes.data,
            weights=self.panels.numbers.ctypes.data, bias=self.panels.bias.ctypes.data,
            tap_offsets=rows.tap_offsets.ctypes.data, out_stride=result * apart,
            epilogue_words=self.packed_epilogue.words.ctypes.data,
            epilogue_numbers=self.packed_epilogue.numbers.ctypes.data,
            zeros=self.zeros.ctypes.data, skips_zeros=self._skips_zeros(rows),
            windows=windows.ctypes.data, residual_stride=residual * self.columns, types=int(stored),
            lines=0 if lines is None else lines.ctypes.data,
        )  # fmt: skip
        return Job.of(job, windows, rows.tap_offsets, lines), shared

    def _skips_zeros(self, rows: Rows) -> bool:
        """Return whether to skip taps in padding; where there are few, looking for them takes longer."""
        if rows.layout is not Layout.PADDED or rows.windows is None:
            return False
        return rows.windows.share_inside() < 1 - MIN_SKIPPED and self.panels.is_finite


def tap_offsets(g: Windows, layout: Layout, merged: bool, groups: int, words: int) -> Array:
    """Return the byte offset of each tap from the address of a row, for each group of ``words`` words of a pixel."""
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
