"""Scaled dot-product attention (SDPA) without materialising all scores (as in FlashAttention, Dao et al. 2022).

Each head is computed by itself: scores of a block of queries, softmax, and the product with the values.
A block of scores stays in the cache. Keys are transposed and packed in panels for GEMM tiles; the last packed
head is reused by the next queries. For few queries (decoding), keys and values are read once, without packing.
Products are f32, or bf16 with f32 sums.
"""

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
from ...core import precision
from ...patterns.attention import (
    Attend,
    AttentionKernel,
    Factor,
    HeadsLayout,
    match_attention,
    match_grouped_queries,
    sdpa_kernel,
)
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import Device, Instruction, device, instruction, types
from ..codegen.memory import load_f32, scratch_memory, store_i64
from ..codegen.vectors import F32, LANES, Emit
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import RECORD, parallel_for, pays_to_share, threads, uses_constant, workspace
from ..threading.task import UNUSED, Task, each_counted, each_unit, shared_counters
from ._copy import COPY, MAX_SIZE, contiguous, contiguous_rows
from ._gemm_tile import WIDE, bf16_panel, round_row
from ._panels import (
    multiply_panels,
    next_panel,
    pack_rows,
    pack_transposed,
    pair_rows,
    panels_product,
    zero_tail,
)
from ._reductions import scale_row, softmax_terms
from ._rows import add_weighted_rows, copy_row, dot_rows

__all__ = [
    "attention",
    "bf16_attention",
    "decode",
    "decode_task",
    "choose_attention",
    "grouped_attention",
    "MAX_DECODE_ROWS",
    "SCALE",
    "shared_contents",
]


class Strides(Descriptor):
    """The strides of a tensor in bytes."""

    batch: i64
    head: i64
    row: i64


class AttentionJob(Descriptor):
    """Parameters of `BLOCKED` and `DECODE`: ``shared_heads`` query heads share one key head.

    ``masked`` says whether the fourth input is a mask; ``zeros`` is the address of a row of zeros. Scores are
    multiplied by ``factor``, or, if ``factors`` is not 0, by the factor of their head in the row at that address.
    """

    batch: i64
    heads: i64
    shared_heads: i64
    queries: i64
    keys: i64
    key_width: i64
    value_width: i64
    query: Strides
    key: Strides
    value: Strides
    out: Strides
    masked: i64
    mask_strides: Strides
    causal: i64
    block: i64
    scratch_bytes: i64
    zeros: i64
    factors: i64
    factor: f32


# Keys of a block, which several queries read while it is in the L1 cache.
KEY_BLOCK = 32


@device
def _head(base: int, strides: Strides, batch: int, head: int) -> int:
    """Return the address of the first row of a head."""
    place: int = base + batch * strides.batch
    place += head * strides.head
    return place


@device
def _mask_row(job: AttentionJob, mask: int, batch: int, head: int, row: int) -> int:
    """Return the address of a row of the mask, or 0 if there is none."""
    place: int = _head(mask, job.mask_strides, batch, head) + row * job.mask_strides.row
    return place if job.masked != 0 else 0


@device
def _factor(job: AttentionJob, head: int) -> np.float32:
    """Return the score factor of a head."""
    by_head = job.factors
    factor: np.float32 = job.factor
    if by_head != 0:
        factor = load_f32(by_head, head)
    return factor


def blocked_task(
    name: str, words: Device[..., int], multiply: Device[..., None], pack_keys: Device[..., None],
    pack_values: Device[..., None], convert: Device[..., int],
) -> Task:  # fmt: skip
    """Return the attention task for many queries; a work unit is a block of queries of one head.

    Args:
        name: the name of the task.
        words: returns the number of 32-bit words that hold this many elements of an operand of products.
        multiply: multiplies rows by panels like `multiply_panels`; depths are in words.
        pack_keys: packs keys; takes the rows, their stride in bytes, their count, the width, the address of
            the panels, and spare memory.
        pack_values: packs values; takes the same arguments and a row of zeros.
        convert: converts a row to the operand type of products; takes the f32 row, its length, and memory, and
            returns the address of the result.
    """

    def blocked(call: int, job: AttentionJob, out: int, q: int, k: int, v: int, mask: int) -> None:
        heads, shared = job.heads, job.shared_heads
        queries, keys = job.queries, job.keys
        width, values = job.key_width, job.value_width
        q_strides, k_strides, v_strides, out_strides = job.query, job.key, job.value, job.out
        causal, block = job.causal, job.block
        zero_row = job.zeros
        k_row, v_row = k_strides.row, v_strides.row
        q_row, out_row = q_strides.row, out_strides.row
        padded_keys = (keys + LANES - 1) // LANES * LANES
        padded_values = (values + LANES - 1) // LANES * LANES
        depth = words(width)
        scores = scratch_memory(job.scratch_bytes)
        transposed_keys = scores + 4 * block * padded_keys
        packed = transposed_keys + 4 * padded_keys * depth
        statistics = packed + 4 * padded_values * words(keys)
        places = statistics + 8 * block
        offset = places + 8 * block
        converted = offset + 8
        spare = converted + 4 * depth * block
        store_i64(offset, 0, 0)
        blocks = (queries + block - 1) // block
        units = job.batch * heads * blocks
        before = -1
        for unit in each_unit(call, units):
            index, first = unit // blocks, unit % blocks * block
            batch, head = index // heads, index % heads
            rows, factor = min(block, queries - first), _factor(job, head)
            seen = min(keys, first + rows) if causal != 0 else keys
            key_head = batch * heads + head // shared
            if key_head != before:
                pack_keys(
                    _head(k, k_strides, batch, head // shared), k_row, keys, width, transposed_keys, spare
                )
                pack_values(
                    _head(v, v_strides, batch, head // shared), v_row, keys, values, packed, spare, zero_row
                )
                before = key_head
            start = _head(q, q_strides, batch, head) + first * q_row
            for row in range(rows):
                store_i64(places, row, convert(start + row * q_row, width, converted + 4 * depth * row))
            multiply(
                places, rows, transposed_keys, depth, depth, keys, seen, offset, zero_row, scores, 4 *
                padded_keys,
            )  # fmt: skip
            for row in range(rows):
                line, adding = scores + 4 * padded_keys * row, _mask_row(job, mask, batch, head, first + row)
                count = min(keys, first + row + 1) if causal != 0 else keys
                softmax_terms(line, adding, count, line, statistics + 8 * row, factor)
                zero_tail(line, count, seen, zero_row)
                store_i64(places, row, convert(line, seen, line))
            target = _head(out, out_strides, batch, head) + first * out_row
            multiply(
                places, rows, packed, words(keys), words(seen), values, values, offset, zero_row, target,
                out_row,
            )  # fmt: skip
            for row in range(rows):
                scale_row(target + row * out_row, values, np.float32(1) / load_f32(statistics, 2 * row))

    return Task(blocked, name)


def decode_task(
    name: str, prepare: Device[..., None], dot: Device[..., None], add_weighted: Instruction
) -> Task:
    """Return the attention task for few queries; a work unit is all queries of the heads that share keys.

    Args:
        name: the name of the task.
        prepare: precomputes a scalar for a query; takes the query, its width, and the address of the scalar.
        dot: computes dot products; takes the query, the address of its scalar, the keys, their stride in
            bytes, their count, the width, and the address of the products.
        add_weighted: adds weighted values like `add_weighted_rows`.
    """

    def decode(call: int, job: AttentionJob, out: int, q: int, k: int, v: int, mask: int) -> None:
        heads, shared = job.heads, job.shared_heads
        queries, keys = job.queries, job.keys
        width, values = job.key_width, job.value_width
        q_strides, k_strides, v_strides, out_strides = job.query, job.key, job.value, job.out
        causal, zero_row = job.causal, job.zeros
        k_row, v_row = k_strides.row, v_strides.row
        out_row = out_strides.row
        scores = scratch_memory(job.scratch_bytes)
        padded_keys = (keys + LANES - 1) // LANES * LANES
        statistics = scores + 4 * padded_keys * shared * queries
        scalars = statistics + 8
        groups = heads // shared
        units = job.batch * groups
        for unit in each_unit(call, units):
            batch, group = unit // groups, unit % groups
            key, value = _head(k, k_strides, batch, group), _head(v, v_strides, batch, group)
            for line in range(shared * queries):
                prepare(_query(q, q_strides, batch, group * shared, line, queries), width, scalars + 4 * line)
            for first in range(0, keys, KEY_BLOCK):
                block_keys = min(KEY_BLOCK, keys - first)
                for line in range(shared * queries):
                    source = _query(q, q_strides, batch, group * shared, line, queries)
                    place = scores + 4 * (padded_keys * line + first)
                    dot(source, scalars + 4 * line, key + first * k_row, k_row, block_keys, width, place)
            for line in range(shared * queries):
                head, row = group * shared + line // queries, line % queries
                place, adding = scores + 4 * padded_keys * line, _mask_row(job, mask, batch, head, row)
                count = min(keys, row + 1) if causal != 0 else keys
                softmax_terms(place, adding, count, place, statistics, _factor(job, head))
                scale_row(place, count, np.float32(1) / load_f32(statistics, 0))
                zero_tail(place, count, keys, zero_row)
                zero_tail(_head(out, out_strides, batch, head) + row * out_row, 0, values, zero_row)
            for first in range(0, keys, KEY_BLOCK):
                block_keys = min(KEY_BLOCK, keys - first)
                for line in range(shared * queries):
                    target = _query(out, out_strides, batch, group * shared, line, queries)
                    place = scores + 4 * (padded_keys * line + first)
                    add_weighted(place, value + first * v_row, v_row, block_keys, values, target)

    return Task(decode, name)


@device
def _query(base: int, strides: Strides, batch: int, head: int, line: int, queries: int) -> int:
    """Return the address of row ``line`` of the queries of the adjacent heads that share keys, from ``head`` on.

    The rows are counted head by head, ``queries`` for each.
    """
    place: int = _head(base, strides, batch, head + line // queries)
    place += line % queries * strides.row
    return place


@device
def _keep_nothing(query: int, width: int, place: int) -> None:
    """Precompute nothing: dot products with f32 keys need only the query."""


@device
def _dot(query: int, scalar: int, keys: int, stride: int, count: int, width: int, out: int) -> None:
    dot_rows(query, keys, stride, count, width, out)


@device
def _count(count: int) -> int:
    return count


@device
def _pack_keys(x: int, stride: int, rows: int, width: int, out: int, spare: int) -> None:
    pack_transposed(x, stride, rows, width, out)


@device
def _pack_values(x: int, stride: int, rows: int, width: int, out: int, spare: int, zeros: int) -> None:
    pack_rows(x, stride, rows, width, out)


@device
def _identity(row: int, count: int, out: int) -> int:
    return row


BLOCKED = blocked_task("_blocked", _count, multiply_panels, _pack_keys, _pack_values, _identity)
DECODE = decode_task("_decode", _keep_nothing, _dot, add_weighted_rows)


@device
def _bf16_panel(  # noqa: PLR0913 (values in registers)
    vectors: int, rows: int, places: int, step: int, zeros: int, taps: int, count: int, depth: int, panel: int, out: int,
    stride: int, bias: int, bias_stride: int, other: int, last: int, low: float, high: float,
) -> None:  # fmt: skip
    """Multiply bf16 rows by a panel; the result is f32."""
    bf16_panel(
        vectors, rows, places, step, zeros, taps, count, depth, panel, out, stride, bias, bias_stride, other, last, low,
        high, 0, 0,
    )  # fmt: skip


@device
def _words(count: int) -> int:
    return (count + 1) // 2


@device
def _round(row: int, count: int, out: int) -> int:
    """Round a row to bf16, possibly in place; an odd length is padded with a zero."""
    round_row(row, count, out, 2 * _words(count))
    return out


@device
def _pack_bf16_keys(x: int, stride: int, rows: int, width: int, out: int, spare: int) -> None:
    """Pack keys as the columns of panels; a column holds the words of a row rounded to bf16."""
    words = _words(width)
    for row in range(rows):
        _round(x + row * stride, width, spare + 4 * words * row)
    pack_transposed(spare, 4 * words, rows, words, out)


@device
def _pack_bf16_values(x: int, stride: int, rows: int, width: int, out: int, spare: int, zeros: int) -> None:
    """Pack values as the rows of panels; each word of a panel row holds elements of two rows of values."""
    done, second_spare = 0, spare + 4 * WIDE * LANES
    while done < width:
        vectors, columns = next_panel(width - done)
        for row in range(0, rows, 2):
            first = x + row * stride + 4 * done
            second = first + stride if row + 1 < rows else zeros
            if columns < vectors * LANES:  # whole vectors would read beyond the row
                copy_row(first, columns, spare)
                copy_row(second, columns, second_spare)
                first, second = spare, second_spare
            pair_rows(out, first, second, vectors * LANES)
            out += 4 * LANES * vectors
        done += columns


BLOCKED_BF16 = blocked_task(
    "_blocked_bf16", _words, panels_product(_bf16_panel), _pack_bf16_keys, _pack_bf16_values, _round
)  # fmt: skip


_I8 = ir.I8


class MaskJob(Descriptor):
    """Parameters of `_mask`: the number of rows and of elements per row."""

    rows: i64
    width: i64


@instruction(types.int64, types.int64)
def _add_or_hide(emit: Emit, seen: Register, out: Register) -> None:
    """Store 0 if a byte is nonzero, else minus infinity."""
    is_seen = emit.builder.icmp_signed("!=", emit.load(seen, _I8, 1), ir.Constant(_I8, 0))
    hidden = ir.Constant(F32, float("-inf"))
    emit.store(emit.builder.select(is_seen, ir.Constant(F32, 0.0), hidden), out)


@Task
def _mask(call: int, job: MaskJob, out: int, x: int) -> None:
    """Convert the boolean mask A to one that is added to scores; a work unit is a row."""
    counter = shared_counters(call)
    width = job.width
    for row in each_counted(counter, job.rows):
        for index in range(width * row, width * (row + 1)):
            _add_or_hide(x + index, out + 4 * index)


_last: tuple[weakref.ref[Array], Array] | None = None


def additive_mask(mask: Array, keys: int) -> Array:
    """Return a mask to add to scores; the last boolean mask is cached, as the next layer often has the same."""
    global _last
    if mask.dtype != np.bool_:
        return _expand_keys(mask, keys)
    if RECORD.get() is not None and 0 < mask.size <= MAX_SIZE and mask.shape[-1] == keys:
        return _convert_mask(contiguous(mask), keys)
    last = _last
    if last is not None and last[0]() is mask and last[1].shape[-1] == keys:
        return last[1]
    added = _expand_keys(np.where(mask, np.float32(0), np.float32(-np.inf)), keys)
    _last = weakref.ref(mask), added
    return added


def _convert_mask(mask: Array, keys: int) -> Array:
    """Convert a boolean mask with a task, so that the conversion can be replayed."""
    added = workspace(mask.size)
    parallel_for(
        _mask.address, MaskJob.fill(rows=mask.size // keys, width=keys), added, mask, UNUSED, UNUSED, 1
    )
    return added.reshape(mask.shape)


def _expand_keys(mask: Array, keys: int) -> Array:
    """Expand the last axis of a mask to all keys; the result has contiguous rows."""
    return contiguous_rows(mask if mask.shape[-1] == keys else np.repeat(mask, keys, -1))


# The index of the scale, the only input whose contents affect the job; with shared heads, the indices of keys, values and mask,
# the only inputs besides queries whose contents do not.
SCALE, SHARED_DATA = 4, (1, 5, 9)
# Scores of a block, which fit in the L2 cache with keys and values.
BLOCK_SCORES = 1 << 16
# Maximum number of queries for which keys are not packed.
MAX_DECODE_ROWS = 4
_ZEROS = np.zeros(WIDE * LANES, np.float32)
_ZEROS_ADDRESS = int(_ZEROS.ctypes.data)


@backend.accelerates(ScaledDotProductAttention)
def attention(op: ScaledDotProductAttention, *inputs: Value) -> Kernel | None:
    """Return a ScaledDotProductAttention kernel in the precision of the current compilation."""
    attend, name = choose_attention()
    kernel = sdpa_kernel(op, inputs, attend)
    return None if kernel is None else replace(kernel, name=name, replay=replayed([SCALE]))


@backend.pattern(ScaledDotProductAttention)
def grouped_query_attention(context: MatchContext, layer: Layer) -> Fusion | Refusal | None:
    """Match attention whose keys and values are repeated for the query heads that share them."""
    attend, name = choose_attention()
    match = match_grouped_queries(context, layer, attention, attend)
    if not isinstance(match, Fusion):
        return match
    kernel = replace(match.kernel.prepare(), name=name, replay=replayed(shared_contents(match.reads)))
    return replace(match, kernel=kernel)


def shared_contents(reads: Sequence[Port]) -> list[int]:
    """Return the indices of inputs whose contents affect a job with shared heads.

    These are all inputs but queries, keys, values and mask.
    """
    return [index for index in range(1, len(reads)) if index not in SHARED_DATA]


def grouped_attention(
    q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool
) -> Array:
    """Compute attention of ``q[batch, heads, queries, width]`` over ``k`` and ``v[batch, shared heads, keys, width]``.

    The number of heads is a multiple of the shared heads. In the memory of the result, the heads of a token are
    contiguous.
    """
    if q.shape[2] <= MAX_DECODE_ROWS:
        return decode(DECODE, q, k, v, mask, factor, causal, v.shape[3])
    return _attend_by_blocks(BLOCKED, 1, q, k, v, mask, factor, causal)


def bf16_attention(q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool) -> Array:
    """Compute `grouped_attention`, with bf16 products unless there are few queries."""
    if q.shape[2] <= MAX_DECODE_ROWS:
        return decode(DECODE, q, k, v, mask, factor, causal, v.shape[3])
    return _attend_by_blocks(BLOCKED_BF16, 2, q, k, v, mask, factor, causal)


def choose_attention() -> tuple[Attend, str]:
    """Return the attention function for the current precision, and the name of its kernels in profiles."""
    for task in (_mask, COPY):  # called in recorded runs
        task.prepare()
    is_bf16 = precision.current().products == "bf16"
    return (bf16_attention, "sdpa_bf16") if is_bf16 else (grouped_attention, "")


def _attend_by_blocks(
    task: Task, per_word: int, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool
) -> Array:
    """Compute attention of many queries with a `blocked_task`, whose words hold ``per_word`` elements."""
    batch, heads, rows, width = q.shape
    keys, values = k.shape[2], v.shape[3]
    block, lines = _block(rows, keys, batch * heads), _round_up(keys)
    depth, length = -(-width // per_word), -(-keys // per_word)
    size = block * lines + lines * depth + _round_up(values) * length + 4 * block
    if per_word > 1:  # rows are converted
        size += block * depth + max(keys * depth, 2 * _ZEROS.size)
    units = batch * heads * -(-rows // block)
    return _attend(task, q, k, v, mask, factor, causal, values, block, units, size)


def decode(
    task: Task, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool, values: int
) -> Array:
    """Compute attention of few queries with a `decode_task`; ``values`` is the length of a row of values."""
    batch, heads, rows, _ = q.shape
    groups, lines = k.shape[1], heads // k.shape[1] * rows
    size = (_round_up(k.shape[2]) + 1) * lines
    return _attend(task, q, k, v, mask, factor, causal, values, 0, batch * groups, size)


def _attend(  # noqa: PLR0913 (one place that fills the job)
    task: Task, q: Array, k: Array, v: Array, mask: Array | None, factor: Factor, causal: bool, values: int, block: int,
    units: int, size: int,
) -> Array:  # fmt: skip
    """Run an attention task.

    Args:
        task: a `blocked_task` or a `decode_task`.
        q: the queries.
        k: the keys.
        v: the values.
        mask: the mask, if any.
        factor: the factor of the scores, or one for each head.
        causal: whether a query only attends to keys up to its own position.
        values: the number of elements of a row of values.
        block: the number of queries in a block.
        units: the number of work units.
        size: the number of f32 elements that a thread needs as scratch memory.
    """
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
    """Return the strides of a mask along batch, heads and queries; 0 for axes along which it broadcasts."""
    strides = [0 if n == 1 else stride for n, stride in zip(mask.shape[:-1], mask.strides, strict=False)]
    return (*[0] * (3 - len(strides)), *strides)


def _round_up(count: int) -> int:
    """Round a length up to whole vectors."""
    return -(-count // LANES) * LANES


def _block(rows: int, keys: int, heads: int) -> int:
    """Return the number of queries in a block: as many as fit the cache, at least 16.

    If threads cannot share the heads evenly, there are about as many blocks as threads, of at least 32 queries if possible.
    """
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
    """Return an attention kernel in the precision of the current compilation."""
    attend, name = choose_attention()
    run = _AttentionKernel(factor, added, given, layout, attend)
    return Kernel(run, name=name, replay=replayed())


@dataclass(frozen=True)
class _AttentionKernel(AttentionKernel):
    """An attention kernel whose runs can be recorded."""

    def __call__(self, *arrays: Array) -> Array:
        if self.added is not None:
            uses_constant(self.added)
        return super().__call__(*arrays)
