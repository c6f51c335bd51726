"""8-bit caches of keys and values (see `ir.quantized_cache`): packing and unpacking rows, and attention over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ....ir.graph import Layer
from ....ir.quantized_cache import PREFIX, unpack_rows, unpacked_shape
from ....ir.tensor import Array
from ....ops.sequence.attention import ScaledDotProductAttention
from ... import Compute, Fusion, Kernel, MatchContext, Offer
from ...common.kept_memory import empty
from ...core.backend import CachedAttention, CacheKernels
from ...core.kernel import attention_lengths
from ...patterns.attention import (
    Attend,
    Factor,
    SharedHeads,
    mask_and_scale,
    mask_fits,
    match_grouped_queries,
)
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import Instruction, device, instruction, types
from ..codegen.memory import load_f32
from ..codegen.vectors import F32, I32, INTS, LANES, VECTOR, Emit, Value
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk
from ._copy import contiguous
from ._reductions import sum_row
from .sdpa import (
    MAX_DECODE_ROWS,
    SCALE,
    attention,
    choose_attention,
    decode,
    decode_task,
    grouped_attention,
    shared_contents,
)

__all__ = ["pack", "packed_attention", "unpack"]


def match_cached_attention(
    context: MatchContext, layer: Layer, offer: Offer, attend: Attend, packed: Attend
) -> CachedAttention | None:
    """Match attention, including heads that share keys, if a kernel supports its types.

    Args:
        context: the graph around the layer, and the values of its ports.
        layer: the attention.
        offer: the factory of kernels for attention without shared heads.
        attend: computes attention with shared heads.
        packed: computes attention over packed keys and values.
    """
    if not isinstance(layer.op, ScaledDotProductAttention):
        return None
    shared = match_grouped_queries(context, layer, offer, attend)
    if isinstance(shared, Fusion):
        exact = shared.kernel.prepare().whole
        return CachedAttention(shared.layers, shared.reads, 5, _kernel(layer.op, exact, packed, 5))
    reads = context.sources(layer)
    plain = offer(layer.op, *map(context.value, reads))
    if plain is None:
        return None
    return CachedAttention((layer,), reads, 2, _kernel(layer.op, plain.prepare().whole, packed, 2))


def _kernel(op: ScaledDotProductAttention, exact: Compute, attend: Attend, value: int) -> Kernel:
    return Kernel(_PackedAttention(op, exact, attend, value), name="sdpa_u8", checks_inputs=True)


class _PackedAttention:
    """Attention whose keys and values are both f32 or both packed.

    Shapes depend on the contents of a variable, so the kernel checks all of them itself.

    Args:
        op: the attention.
        exact: computes f32 attention: `SharedHeads`, or a kernel without shared heads.
        attend: computes attention over packed rows.
        value: the index of the values input.
    """

    def __init__(self, op: ScaledDotProductAttention, exact: Compute, attend: Attend, value: int) -> None:
        self._op, self._exact, self._attend, self._value = op, exact, attend, value

    def __call__(self, *inputs: Array) -> Array:
        q, *arrays = inputs
        k, v = arrays[0], arrays[self._value - 1]
        if k.dtype == v.dtype == np.uint8:
            mask, scale = mask_and_scale(self._op, q, arrays[self._rest :])
            if self._fits(q, unpacked_shape(k), unpacked_shape(v), arrays, mask):
                return self._attend(q, k, v, mask, scale, self._op.causal)
        return self._attend_unpacked(q, *(unpack_rows(x) if x.dtype == np.uint8 else x for x in arrays))

    @property
    def _rest(self) -> int:
        """The index, among the inputs after the queries, of the first that concerns neither keys nor values."""
        return 8 if isinstance(self._exact, SharedHeads) else 2

    def _fits(
        self, q: Array, k: tuple[int, ...], v: tuple[int, ...], arrays: Sequence[Array], mask: Array | None
    ) -> bool:
        if isinstance(self._exact, SharedHeads):
            return self._exact.shares(q, k, v, arrays, mask)
        fits = q.shape[:2] == k[:2] == v[:2] and q.shape[3] == k[3] and k[2] == v[2]
        return bool(fits and q.size and k[2] and v[3] and mask_fits(mask, (*q.shape[:3], k[2])))

    def _attend_unpacked(self, q: Array, *arrays: Array) -> Array:
        """Compute attention over f32 keys and values."""
        is_checked = isinstance(self._exact, SharedHeads) or attention_lengths(q, *arrays)
        return np.asarray((self._exact if is_checked else self._op.evaluate)(q, *arrays))


_CODES = ir.VectorType(ir.I8, LANES)
_MOST = 255.0


@instruction(*[types.int64] * 3)
def pack_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Pack a row of ``count`` f32 elements: its scale, its minimum, and a u8 code for each element."""
    builder = emit.builder
    low, high, wrong = _extremes(emit, x, count)
    scale = builder.fdiv(builder.fsub(high, low), ir.Constant(F32, _MOST))
    _store(emit, scale, out)
    # A scale that is not finite makes the row NaN, as its difference from itself is NaN.
    _store(emit, builder.fadd(builder.fadd(low, wrong), builder.fsub(scale, scale)), emit.at(out, 4))
    is_usable = builder.and_(
        builder.fcmp_ordered(">", scale, ir.Constant(F32, 0.0)),
        builder.fcmp_ordered("<", builder.fadd(scale, wrong), ir.Constant(F32, float("inf"))),
    )
    usable = emit.splat(builder.sext(is_usable, I32))
    first, step = emit.splat(low), emit.splat(builder.select(is_usable, scale, ir.Constant(F32, 1.0)))
    codes = emit.at(out, PREFIX)

    for done, _, mask in emit.masked_strips(count):
        values = _load_row(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
        levels = emit.round(builder.fdiv(emit.subtract(values, first), step))
        bits = builder.bitcast(emit.minimum(levels, emit.constant(_MOST)), INTS)
        integers = builder.fptosi(builder.bitcast(builder.and_(bits, usable), VECTOR), INTS)
        _store_codes(emit, builder.trunc(integers, _CODES), emit.at(codes, done), mask)


@instruction(*[types.int64] * 3)
def unpack_row(emit: Emit, x: Value, count: Value, out: Value) -> None:
    """Unpack a row of ``count`` elements to f32."""
    scale, low = (emit.splat(field) for field in _load_prefix(emit, x))

    for done, _, mask in emit.masked_strips(count):
        values = emit.add(emit.multiply(_codes(emit, emit.at(emit.at(x, PREFIX), done), mask), scale), low)
        place = emit.at(out, emit.builder.mul(done, emit.i64(4)))
        if mask is None:
            emit.store(values, place)
        else:
            emit.masked_store(values, place, mask)


@instruction(*[types.int64] * 6, types.float32)
def dot_packed(
    emit: Emit, x: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value, total: Value
) -> None:  # fmt: skip
    """Store the dot products of an f32 row with ``rows`` packed rows that are ``stride`` bytes apart.

    ``total`` is the sum of the ``count`` elements of the f32 row.
    """
    builder = emit.builder
    at_once = 4

    def multiply(rows_here: int, start: Value, target: Value) -> None:
        places = [emit.at(start, builder.mul(stride, emit.i64(r))) for r in range(rows_here)]
        sums = [emit.constant(0)] * rows_here

        for done, _, mask in emit.masked_strips(count, sums=sums):
            factor = _load_row(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
            for r, place in enumerate(places):
                sums[r] = emit.fma(factor, _codes(emit, emit.at(emit.at(place, PREFIX), done), mask), sums[r])
        for r, (place, sum) in enumerate(zip(places, sums, strict=True)):
            scale, low = _load_prefix(emit, place)
            product = builder.fadd(builder.fmul(emit.reduce_add(sum), scale), builder.fmul(total, low))
            emit.store(product, emit.at(target, 4 * r))

    many = builder.sdiv(rows, emit.i64(at_once))
    with emit.loop(many, [y, out]) as (_, (start, target), following):
        multiply(at_once, start, target)
        following += [emit.at(start, builder.mul(stride, emit.i64(at_once))), emit.at(target, 4 * at_once)]
    left = builder.sub(rows, builder.mul(many, emit.i64(at_once)))
    with emit.loop(left, list(following)) as (_, (start, target), after):
        multiply(1, start, target)
        after += [emit.at(start, stride), emit.at(target, 4)]


@instruction(*[types.int64] * 6)
def add_weighted_packed(
    emit: Emit, weights: Value, y: Value, stride: Value, rows: Value, count: Value, out: Value
) -> None:
    """Add the weighted sum of ``rows`` packed rows of ``count`` elements, ``stride`` bytes apart, to the f32 row ``out``."""
    builder = emit.builder

    for done, vectors, mask in emit.masked_strips(count, 8, 4):
        target = emit.at(out, builder.mul(done, emit.i64(4)))
        places = [emit.at(target, 4 * LANES * j) for j in range(vectors)]
        start = [y, weights, ir.Constant(F32, 0.0), *(_load_row(emit, place, mask) for place in places)]
        with emit.loop(rows, start) as (_, (at, weight, lows, *sums), following):
            scale, low = _load_prefix(emit, at)
            loaded = emit.load(weight, F32)
            factor = emit.splat(builder.fmul(loaded, scale))
            codes = emit.at(emit.at(at, PREFIX), done)
            following += [
                emit.at(at, stride),
                emit.at(weight, 4),
                builder.fadd(lows, builder.fmul(loaded, low)),
            ]
            following += [
                emit.fma(factor, _codes(emit, emit.at(codes, LANES * j), mask), sum)
                for j, sum in enumerate(sums)
            ]
        lowest = emit.splat(following[2])
        for place, sum in zip(places, following[3:], strict=True):
            total = emit.add(sum, lowest)
            if mask is None:
                emit.store(total, place)
            else:
                emit.masked_store(total, place, mask)


def _extremes(emit: Emit, x: Value, count: Value) -> tuple[Value, Value, Value]:
    """Return the minimum and the maximum of a row, and a number that is NaN if an element is not finite, else 0."""
    builder = emit.builder

    def smaller(a: Value, b: Value) -> Value:
        return builder.select(builder.fcmp_ordered("<", b, a), b, a)

    def larger(a: Value, b: Value) -> Value:
        return builder.select(builder.fcmp_ordered(">", b, a), b, a)

    ends = [emit.constant(float("inf")), emit.constant(float("-inf")), emit.constant(0)]
    for done, _, mask in emit.masked_strips(count, sums=ends):
        low, high, wrong = ends
        values = _load_row(emit, emit.at(x, builder.mul(done, emit.i64(4))), mask)
        ends[:] = smaller(low, values), larger(high, values), emit.fma(values, emit.constant(0), wrong)
    return emit.reduce(ends[0], smaller), emit.reduce(ends[1], larger), emit.reduce_add(ends[2])


def _load_row(emit: Emit, address: Value, mask: Value | None) -> Value:
    return emit.load(address) if mask is None else emit.masked_load(address, mask)


def _codes(emit: Emit, address: Value, mask: Value | None) -> Value:
    """Load a vector of codes as f32; lanes outside the mask are 0."""
    codes = emit.load(address, _CODES, 1) if mask is None else emit.masked_load(address, mask, _CODES, 1)
    return emit.builder.sitofp(emit.builder.zext(codes, INTS), VECTOR)


def _store_codes(emit: Emit, codes: Value, address: Value, mask: Value | None) -> None:
    if mask is None:
        emit.store(codes, address, 1)
    else:
        emit.masked_store(codes, address, mask, 1)


def _load_prefix(emit: Emit, row: Value) -> tuple[Value, Value]:
    """Load the scale and the minimum of a packed row."""
    return emit.load(row, F32, 1), emit.load(emit.at(row, 4), F32, 1)


def _store(emit: Emit, number: Value, address: Value) -> None:
    """Store an f32, possibly unaligned."""
    emit.store(number, address, 1)


class RowsJob(Descriptor):
    """Parameters of `PACK` and `UNPACK`.

    There are ``rows`` rows of ``width`` elements; they are ``source_stride`` bytes apart where they are read, and ``target_stride``
    bytes where they are written. A unit of work is ``chunk`` rows.
    """

    rows: i64
    width: i64
    source_stride: i64
    target_stride: i64
    chunk: i64


def _rows_task(name: str, convert: Instruction) -> Task:
    """Return a task that converts rows; a work unit is a chunk of rows."""

    def rows_task(call: int, job: RowsJob, out: int, x: int) -> None:
        rows, chunk = job.rows, job.chunk
        source, target = job.source_stride, job.target_stride
        for start, end in each_chunk(call, rows, chunk):
            for row in range(start, end):
                convert(x + source * row, job.width, out + target * row)

    return Task(rows_task, name)


@device
def _sum(query: int, width: int, place: int) -> None:
    sum_row(query, width, place)


@device
def _dot(query: int, total: int, keys: int, stride: int, count: int, width: int, out: int) -> None:
    dot_packed(query, keys, stride, count, width, out, load_f32(total, 0))


PACK, UNPACK = _rows_task("_pack_rows", pack_row), _rows_task("_unpack_rows", unpack_row)
DECODE_PACKED = decode_task("_decode_packed", _sum, _dot, add_weighted_packed)


# Elements of a unit.
CHUNK = 1 << 13


def pack(x: Array) -> Array:
    """Pack f32 rows, like `ir.quantized_cache.pack_rows`."""
    return _convert_rows(PACK, x, empty((*x.shape[:-1], x.shape[-1] + PREFIX), np.uint8), x.shape[-1])


def unpack(x: Array) -> Array:
    """Unpack rows to f32, like `ir.quantized_cache.unpack_rows`."""
    return _convert_rows(UNPACK, x, empty(unpacked_shape(x), np.float32), x.shape[-1] - PREFIX)


def _convert_rows(task: Task, x: Array, out: Array, width: int) -> Array:
    rows = math.prod(x.shape[:-1])
    if not rows * width:
        return out
    job = RowsJob.fill(
        rows=rows, width=width, source_stride=x.shape[-1] * x.itemsize,
        target_stride=out.shape[-1] * out.itemsize, chunk=max(CHUNK // width, 1),
    )  # fmt: skip
    count = threads_for(moved=4 * rows * width)
    parallel_for(task.address, job, out.reshape(-1), contiguous(x).reshape(-1), UNUSED, UNUSED, count)
    return out


def packed_attention(
    q: Array,
    k: Array,
    v: Array,
    mask: Array | None,
    factor: Factor,
    causal: bool,
    attend: Attend = grouped_attention,
) -> Array:
    """Compute attention over packed keys and values; for many queries, ``attend`` computes it over unpacked ones."""
    if q.shape[2] > MAX_DECODE_ROWS:
        return attend(q, unpack(k), unpack(v), mask, factor, causal)
    return decode(DECODE_PACKED, q, k, v, mask, factor, causal, v.shape[3] - PREFIX)


def cached_attention(context: MatchContext, layer: Layer) -> CachedAttention | None:
    """Match attention with keys and values that may be packed."""
    attend, _ = choose_attention()
    match = match_cached_attention(
        context, layer, attention, attend, partial(packed_attention, attend=attend)
    )
    if match is None:
        return None
    contents = [SCALE] if len(match.layers) == 1 else shared_contents(match.reads)
    return replace(match, kernel=replace(match.kernel, replay=replayed(contents)))


KERNELS = CacheKernels(pack, cached_attention)
