"""Scaled dot-product attention (SDPA) without materialising all scores (as in FlashAttention, Dao et al. 2022)."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ....ir.graph import Layer, Port
from ....ir.tensor import Array, Value
from ....ops.matrix import Einsum, MatMul
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Fusion, Kernel, MatchContext, Refusal
from ...common.kept_memory import empty
from ...common.sdpa import Attend, Factor, sdpa_kernel
from ...core import precision
from ...patterns.attention import AttentionKernel, HeadsLayout, match_attention
from ...patterns.grouped_query_attention import match_grouped_queries
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.parallel import (
    RECORD,
    parallel_for,
    pays_to_share,
    replayed,
    threads,
    uses_constant,
    workspace,
)
from ..threading.task import UNUSED, Task, each_counted, shared_counters
from ._attention import BLOCKED, BLOCKED_BF16, DECODE, AttentionJob
from ._copy import COPY, MAX_SIZE, contiguous, contiguous_rows
from ._gemm_tile import WIDE

__all__ = [
    "MAX_DECODE_ROWS",
    "SCALE",
    "attention",
    "bf16_attention",
    "decode",
    "followed",
    "grouped_attention",
    "shared_contents",
]

_I8 = ir.I8


class MaskJob(Descriptor):
    """The job of `_mask`: the number of rows and of elements per row."""

    rows: i64
    width: i64


@instruction(types.int64, types.int64)
def _add_or_hide(emit: Emit, seen: Register, out: Register) -> None:
    """Store 0 for a nonzero byte, else minus infinity."""
    is_seen = emit.builder.icmp_signed("!=", emit.load(seen, _I8, 1), ir.Constant(_I8, 0))
    hidden = ir.Constant(F32, float("-inf"))
    emit.store(emit.builder.select(is_seen, ir.Constant(F32, 0.0), hidden), out)


@Task
def _mask(call: int, job: MaskJob, out: int, x: int) -> None:
    """Convert a boolean mask."""
    counter = shared_counters(call)
    width = job.width
    for row in each_counted(counter, job.rows):
        for index in range(width * row, width * (row + 1)):
            _add_or_hide(x + index, out + 4 * index)


_last: tuple[weakref.ref[Array], Array] | None = None


def additive_mask(mask: Array, keys: int) -> Array:
    """Return a mask to add to scores; the last boolean mask is cached, since the next layer often uses the same."""
    global _last
    if mask.dtype != np.bool_:
        return _of_all_keys(mask, keys)
    if RECORD.get() is not None and 0 < mask.size <= MAX_SIZE and mask.shape[-1] == keys:
        return _converted(contiguous(mask), keys)
    last = _last
    if last is not None and last[0]() is mask and last[1].shape[-1] == keys:
        return last[1]
    added = _of_all_keys(np.where(mask, np.float32(0), np.float32(-np.inf)), keys)
    _last = weakref.ref(mask), added
    return added


def _converted(mask: Array, keys: int) -> Array:
    """Convert a mask with a task, so that the conversion can be replayed."""
    added = workspace(mask.size)
    parallel_for(
        _mask.address, MaskJob.fill(rows=mask.size // keys, width=keys), added, mask, UNUSED, UNUSED, 1
    )
    return added.reshape(mask.shape)


def _of_all_keys(mask: Array, keys: int) -> Array:
    """Return a mask with a number for each key, in contiguous rows."""
    return contiguous_rows(mask if mask.shape[-1] == keys else np.repeat(mask, keys, -1))


# Inputs whose contents affect the computation: the scale; with shared heads, all but keys, values and mask.
SCALE, SHARED_DATA = 4, (1, 5, 9)
# Scores of a block: with keys and values they fit the L2 cache.
BLOCK_SCORES = 1 << 16
# Most queries for which keys are not packed.
MAX_DECODE_ROWS = 4
_ZEROS = np.zeros(WIDE * LANES, np.float32)
_ZEROS_ADDRESS = int(_ZEROS.ctypes.data)


@backend.accelerates(ScaledDotProductAttention)
def attention(op: ScaledDotProductAttention, *inputs: Value) -> Kernel | None:
    """Return a kernel that computes in blocks of scores or head by head, for inputs of supported types."""
    attend, name = followed()
    kernel = sdpa_kernel(op, inputs, attend)
    return None if kernel is None else replace(kernel, name=name, replay=replayed([SCALE]))


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match attention whose keys and values are repeated for the query heads that share them."""
    attend, name = followed()
    found = match_grouped_queries(context, layer, attention, attend)
    if not isinstance(found, Fusion):
        return found
    kernel = replace(found.kernel.prepare(), name=name, replay=replayed(shared_contents(found.reads)))
    return replace(found, kernel=kernel)


def shared_contents(reads: Sequence[Port]) -> list[int]:
    """Return the inputs whose contents affect shared heads: all except queries, keys, values and mask."""
    return [index for index in range(1, len(reads)) if index not in SHARED_DATA]


def grouped_attention(
    q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool
) -> Array:
    """Return the attention of queries ``[batch, heads, queries, width]`` to ``[batch, shared heads, keys, values]``.

    The number of heads is a multiple of the shared heads. In memory, the heads of a token are contiguous.
    """
    if q.shape[2] <= MAX_DECODE_ROWS:
        return decode(DECODE, q, k, v, mask, factor, causal, v.shape[3])
    return _blocked(BLOCKED, 1, q, k, v, mask, factor, causal)


def bf16_attention(q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool) -> Array:
    """Return `grouped_attention` with bf16 products, for more than a few queries."""
    if q.shape[2] <= MAX_DECODE_ROWS:
        return decode(DECODE, q, k, v, mask, factor, causal, v.shape[3])
    return _blocked(BLOCKED_BF16, 2, q, k, v, mask, factor, causal)


def followed() -> tuple[Attend, str]:
    """Return the attention function for the current precision, and its kernels' name in profiles."""
    for task in (_mask, COPY):  # which the first recording calls
        task.prepare()
    is_bf16 = precision.current().products == "bf16"
    return (bf16_attention, "sdpa_bf16") if is_bf16 else (grouped_attention, "")


def _blocked(
    task: Task, per_word: int, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool
) -> Array:
    """Return the attention of many queries by a `blocked_task` with ``per_word`` numbers in a word."""
    batch, heads, rows, width = q.shape
    keys, values = k.shape[2], v.shape[3]
    block, lines = _block(rows, keys, batch * heads), _padded(keys)
    depth, length = -(-width // per_word), -(-keys // per_word)
    size = block * lines + lines * depth + _padded(values) * length + 4 * block
    if per_word > 1:  # rows are converted
        size += block * depth + max(keys * depth, 2 * _ZEROS.size)
    units = batch * heads * -(-rows // block)
    return _attend(task, q, k, v, mask, factor, causal, values, block, units, size)


def decode(
    task: Task, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool, values: int
) -> Array:
    """Return the attention of few queries by a `decode_task`; ``values`` is the length of a value."""
    batch, heads, rows, _ = q.shape
    groups, lines = k.shape[1], heads // k.shape[1] * rows
    size = (_padded(k.shape[2]) + 1) * lines
    return _attend(task, q, k, v, mask, factor, causal, values, 0, batch * groups, size)


def _attend(  # noqa: PLR0913 (one place that fills the job)
    task: Task, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool, values: int, block: int,
    units: int, size: int,
) -> Array:  # fmt: skip
    """Run a task with ``size`` numbers of scratch memory per thread."""
    batch, heads, rows, width = q.shape
    keys = k.shape[2]
    out = empty((batch, rows, heads, values), np.float32)
    q, k, v = map(contiguous_rows, (q, k, v))
    added = None if mask is None else additive_mask(mask, keys)
    by_row = 4 * values
    by_head = None
    if not isinstance(factor, float):  # one for each head
        by_head = np.ascontiguousarray(np.broadcast_to(factor, (heads,)), np.float32)
    job = AttentionJob.fill(
        batch=batch, heads=heads, shared_heads=heads // k.shape[1], queries=rows, keys=keys, key_width=width,
        value_width=values, query=q.strides[:3], key=k.strides[:3], value=v.strides[:3],
        out=(rows * heads * by_row, by_row, heads * by_row), masked=added is not None,
        mask_strides=(0, 0, 0) if added is None else _broadcast_strides(added), causal=causal, block=block,
        scratch_bytes=4 * (size + 32), zeros=_ZEROS_ADDRESS, factors=0 if by_head is None else by_head,
        factor=factor if by_head is None else 1.0,
    )  # fmt: skip
    worth = pays_to_share(computed=2 * batch * heads * rows * keys * (width + values))
    shared = min(threads(), units) if worth else 1
    parallel_for(task.address, job, out, q, k, v, shared, UNUSED if added is None else added)
    return out.transpose(0, 2, 1, 3)


def _broadcast_strides(mask: Array) -> tuple[int, ...]:
    """Return a mask's strides along batch, heads and queries; 0 for axes that share a row."""
    strides = [0 if n == 1 else stride for n, stride in zip(mask.shape[:-1], mask.strides, strict=False)]
    return (*[0] * (3 - len(strides)), *strides)


def _padded(count: int) -> int:
    """Round a length up to whole vectors."""
    return -(-count // LANES) * LANES


def _block(rows: int, keys: int, heads: int) -> int:
    """Return the number of queries in a block: as many as fit the cache, with at least one block per thread."""
    most = max(BLOCK_SCORES // keys, 16)
    parts = -(-rows // most)
    if heads % threads():
        parts = max(parts, min(threads(), -(-rows // 32)))
    return -(-rows // parts)


@backend.pattern(MatMul, Einsum, after="SoftMax")
def sdpa(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match f32 ``softmax((q @ kᵀ) * factor + masks) @ v`` of batched heads."""
    return match_attention(context, layer, _kernel)


def _kernel(factor: Factor, added: Array | None, given: bool, layout: HeadsLayout) -> Kernel:
    """Return the kernel for the precision of the current compilation."""
    from .sdpa import followed  # most matrix products are not those of attention

    attend, name = followed()
    run = _AttentionKernel(factor, added, given, layout, attend)
    return Kernel(run, name=name, replay=replayed())


@dataclass(frozen=True)
class _AttentionKernel(AttentionKernel):
    """An attention kernel with recorded runs."""

    def __call__(self, *arrays: Array) -> Array:
        if self.added is not None:
            uses_constant(self.added)
        return super().__call__(*arrays)
