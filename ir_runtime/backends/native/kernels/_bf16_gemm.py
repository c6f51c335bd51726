"""Products of bf16 with sums of f32: rows are rounded, then multiplied with packed columns, two numbers at a time.

Rows that another kernel stored in bf16 are taken as they are, and the result may be stored so.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device
from ..codegen.memory import scratch_memory
from ..codegen.vectors import LANES
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._bf16_tile import bf16_panel, round_row, round_rows
from ._gemm_job import GemmJob, StoredTypes
from ._gemm_kernel import gemm_task, skipped_zeros
from ._gemm_tile import ROW_MULTIPLE
from ._packed_epilogue import Bounds, EpilogueHeader, apply_post_ops
from ._panels import Panel
from .contiguous import contiguous

__all__ = ["BF16_GEMM", "Bf16Rows"]

# Numbers that a thread rounds at a time.
CHUNK = 1 << 14
# Integers, as kernels cannot use enumerations.
RESULT, RESIDUAL = int(StoredTypes.RESULT), int(StoredTypes.RESIDUAL)

# Rows of a block that is computed in f32 before it is rounded: they stay in the cache, and are a multiple of every tile.
STAGED_ROWS = ROW_MULTIPLE


@device
def _staged(
    job: GemmJob, entry: Panel, places: int, step: int, count: int, out: int, other: int, stored: int
) -> None:
    """Compute some rows of a panel in f32, with all post-ops, and round them."""
    words, numbers = job.epilogue_words, Bounds.at(job.epilogue_numbers)
    vectors, last = entry.vectors, entry.last_columns
    width, column = (vectors - 1) * LANES + last, 4 * entry.column
    stride, apart = job.out_stride, job.residual_stride
    block = scratch_memory(4 * STAGED_ROWS * width)
    for row in range(0, count, STAGED_ROWS):
        rows = min(STAGED_ROWS, count - row)
        bf16_panel(
            vectors, rows, places + 8 * row, step, skipped_zeros(job),
            job.tap_offsets + entry.tap_offset, job.taps,
            job.depth, job.weights + entry.start,
            block, 4 * width, job.bias + entry.bias, 0,
            other + row * apart if other != 0 else 0, last, numbers.low, numbers.high,
            apart, stored & RESIDUAL,
        )  # fmt: skip
        apply_post_ops(words, numbers, 0, 0, block, 0, column, rows, width, 4 * width)
        round_rows(block, out + row * stride, stride, rows, width)


@device
def _block(  # noqa: PLR0913 (values in registers)
    job: GemmJob,
    entry: Panel,
    places: int,
    step: int,
    count: int,
    start: int,
    out: int,
    first: int,
    second: int,
) -> None:
    """Multiply some rows with a panel, and apply the epilogue; the result and the residual may be bf16."""
    words, numbers = EpilogueHeader.at(job.epilogue_words), Bounds.at(job.epilogue_numbers)
    vectors, last = entry.vectors, entry.last_columns
    stride, apart = job.out_stride, job.residual_stride
    stored, column, stages = (
        job.types,
        entry.column,
        words.post_ops,
    )
    at = start * stride + column * (2 if stored & RESULT != 0 else 4)
    other = 0
    if words.has_residual != 0:
        other = first + start * apart + column * (2 if stored & RESIDUAL != 0 else 4)
    if stages > 0 and stored & RESULT != 0:
        _staged(job, entry, places, step, count, out + at, other, stored)
        return
    bf16_panel(
        vectors, count, places, step, skipped_zeros(job), job.tap_offsets + entry.tap_offset,
        job.taps, job.depth, job.weights + entry.start,
        out + at, stride, job.bias + entry.bias, 0, other, last,
        numbers.low, numbers.high, apart, stored,
    )  # fmt: skip
    if stages > 0:
        width = (vectors - 1) * LANES + last
        apply_post_ops(words, numbers, first, second, out, at, 4 * column, count, width, stride)


BF16_GEMM = gemm_task("_bf16_gemm", _block)
"""Multiplies rows of bf16 with a matrix that is packed in bf16; the result and the residual are f32 or bf16."""


class RoundJob(Descriptor):
    """The job of `_ROUND`: rows, the numbers in each and those that are stored, and rows of a unit."""

    rows: i64
    depth: i64
    stored: i64
    chunk: i64


@device
def _round_rows(x: int, out: int, rows: int, depth: int, stored: int) -> None:
    if stored == depth:  # contiguous rows are one
        round_row(x, rows * depth, out, rows * depth)
    else:
        for row in range(rows):
            round_row(x + 4 * row * depth, depth, out + 2 * row * stored, stored)


def _round_all(call: int) -> None:
    """Round rows to bf16; a unit is a chunk of them."""
    address, out, x, _, _, _ = load_args(call)
    job = RoundJob.at(address)
    rows, chunk = job.rows, job.chunk
    depth, stored = job.depth, job.stored
    for start, end in each_chunk(call, rows, chunk):
        _round_rows(x + 4 * start * depth, out + 2 * start * stored, end - start, depth, stored)


_ROUND = Task(_round_all)


@dataclass(frozen=True)
class Bf16Rows:
    """Rounds rows of ``depth`` numbers to bf16; rows of an odd number get a zero."""

    depth: int
    _jobs: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ROUND.prepare()

    def __call__(self, x: Array) -> Array:
        """Return contiguous f32 as 32-bit words of two bf16, ``[rows, words]``; bf16 as it is, if rows are whole words."""
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
        parallel_for(_ROUND.address, job, words, x, UNUSED, UNUSED, count)
        return words
