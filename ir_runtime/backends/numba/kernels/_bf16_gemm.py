"""Products of bf16 with sums of f32: rows are rounded, then multiplied with packed columns, two numbers at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ....ir.tensor import Array
from ..codegen.bf16 import add_pairs, as_bf16, store_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, routine, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import INTS, LANES, Emit, Value
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._gemm_kernel import gemm_task
from ._gemm_tile import PANEL_KINDS, WordProduct, panel_instruction

__all__ = ["BF16_GEMM", "Bf16Rows"]

# Numbers that a thread rounds at a time, and from which on several threads are faster.
CHUNK = 1 << 14
MIN_PARALLEL_SIZE = 1 << 16

_panel = panel_instruction(WordProduct(INTS, Emit.splat_word, add_pairs))


@routine(*PANEL_KINDS)
def bf16_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply rows of bf16 by a panel of bf16; parameters as those of `gemm_panel`."""
    _panel(vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, other, last, low, high)  # fmt: skip


BF16_GEMM = gemm_task("_bf16_gemm", bf16_panel)
"""Multiplies rows of bf16 with a matrix that is packed in bf16; the result is f32."""


class RoundJob(Descriptor):
    """The job of `_ROUND`: rows, the numbers in each and those that are stored, and rows of a unit."""

    rows: i64
    depth: i64
    stored: i64
    chunk: i64


@instruction(*[types.int64] * 4)
def _round(emit: Emit, x: Value, count: Value, out: Value, stored: Value) -> None:
    """Round ``count`` numbers to bf16, and store them with zeros after them, ``stored`` in all."""
    builder = emit.builder
    whole = builder.sdiv(count, emit.i64(LANES))
    with emit.loop(whole) as (i, _, _following):
        halves = as_bf16(emit, emit.load(emit.at(x, builder.mul(i, emit.i64(4 * LANES)))))
        store_bf16(emit, halves, emit.at(out, builder.mul(i, emit.i64(2 * LANES))))
    done = builder.mul(whole, emit.i64(LANES))
    rest = builder.sub(stored, done)
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        load, _ = emit.masked_access(builder.sub(count, done))
        halves = as_bf16(emit, load(emit.at(x, builder.mul(done, emit.i64(4)))))
        store_bf16(emit, halves, emit.at(out, builder.mul(done, emit.i64(2))), rest)


@device
def _round_rows(x: int, out: int, rows: int, depth: int, stored: int) -> None:
    if stored == depth:  # contiguous rows are one
        _round(x, rows * depth, out, rows * depth)
    else:
        for row in range(rows):
            _round(x + 4 * row * depth, depth, out + 2 * row * stored, stored)


def _round_all(call: int) -> None:
    """Round rows to bf16; a unit is a chunk of them."""
    job, out, x, _, _, counter = load_args(call)
    rows, chunk = load_i64(job, RoundJob.rows), load_i64(job, RoundJob.chunk)
    depth, stored = load_i64(job, RoundJob.depth), load_i64(job, RoundJob.stored)
    while True:
        start = chunk * fetch_add(counter)
        if start >= rows:
            break
        _round_rows(x + 4 * start * depth, out + 2 * start * stored, min(chunk, rows - start), depth, stored)


_ROUND = Task(_round_all)


@dataclass(frozen=True)
class Bf16Rows:
    """Rounds rows of ``depth`` numbers to bf16; rows of an odd number get a zero."""

    depth: int
    _jobs: dict[int, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _ROUND.prepare()

    def __call__(self, x: Array) -> Array:
        """Return contiguous f32 as 32-bit words of two bf16, ``[rows, words]``."""
        rows, stored = x.size // self.depth, self.depth + self.depth % 2
        if (job := self._jobs.get(rows)) is None:
            if len(self._jobs) >= 64:
                self._jobs.clear()
            chunk = max(CHUNK // self.depth, 1)
            job = self._jobs[rows] = RoundJob.fill(rows=rows, depth=self.depth, stored=stored, chunk=chunk)
        words = np.empty((rows, stored // 2), np.int32)
        count = threads() if x.size >= MIN_PARALLEL_SIZE else 1
        parallel_for(_ROUND.address, job, words, x, UNUSED, UNUSED, count)
        return words
