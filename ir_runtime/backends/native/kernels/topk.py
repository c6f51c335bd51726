"""TopK of f32: a small result, as for experts or tokens, is kept sorted in one pass; for larger ones, rows are sorted.

A pass processes `LANES` columns at once; its state is ``kept`` vectors of elements, followed by as many vectors
of i32 indices.

LSD radix sort orders 64-bit words by bytes: the high half is the element's bits, mapped so that better
elements are smaller, the low half its index. NaN counts as the largest number. In long rows, a first pass by
the highest bits removes all words that cannot be among the best.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sort.topk import TopK1, TopK3, TopK11, TopKBase
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..codegen.vectors import F32, I64, INTS, LANES, VECTOR, Emit, Load, splat_bits
from ..codegen.vectors import Value as Register
from ..threading.capture import replayed
from ..threading.parallel import was_refused
from ..threading.task import Task, each_unit
from ._columns import ColumnsJob, column_sizes, load_sizes, plan_axes, run_columns
from ._copy import contiguous
from ._indices import load_index, store_index
from ._rows import transpose_part

__all__: list[str] = []


class TopKJob(ColumnsJob):
    """Parameters of the tasks that select ``count`` elements along the middle axis of A ``[outer, length, inner]``.

    ``largest`` says whether larger elements are better, ``by_index`` whether the result is ordered by index. It holds
    all indices, of ``index_size`` bytes, then the elements, starting at byte ``values``. ``refused`` is nonzero
    afterwards if a row or column has NaN.
    """

    count: i64
    largest: i64
    by_index: i64
    index_size: i64
    values: i64
    refused: i64


WIDTH = 4 * LANES
"""The size of a vector in bytes."""
# Numbers of vectors that `hold_best` can hold in registers; it takes the smallest that suffices.
REGISTERS = 1, 4, 8
_MASK = ir.VectorType(ir.I1, LANES)
_NO_LANES = ir.Constant(_MASK, [0] * LANES)


def _bits(emit: Emit, mask: Register) -> Register:
    return emit.builder.zext(emit.builder.bitcast(mask, ir.IntType(LANES)), I64)


def _better(emit: Emit, largest: bool, x: Register, other: Register) -> Register:
    """Return a mask of the lanes where ``x`` is better than ``other``, or either is NaN."""
    return emit.builder.fcmp_unordered(">" if largest else "<", x, other)


@instruction(*[types.int64] * 7, returns=types.int64)
def hold_best(
    emit: Emit, x: Register, stride: Register, length: Register, count: Register, held: Register, kept: Register, largest: Register
) -> Register:  # fmt: skip
    """Store the best elements of each lane of several vectors, and their indices; return a bit mask of the lanes with NaN.

    Args:
        emit: the code emitter.
        x: the address of the first vector.
        stride: the bytes between vectors.
        length: the number of vectors.
        count: the number of lanes to read, the first ones.
        held: the address of the result: ``kept`` vectors of elements, best first, then as many of i32 indices.
        kept: the number of elements to store for each lane.
        largest: whether larger elements are better.
    """
    builder = emit.builder

    def hold_in_registers(width: int, largest: bool, load: Load) -> list[Register]:
        """Keep the ``width`` best elements in registers, inserting every vector, and store the best ``kept``."""
        nothing = [emit.constant(float("nan"))] * width + [splat_bits(0)] * width
        with emit.loop(length, [x, splat_bits(0), _NO_LANES, *nothing]) as (_, state, following):
            at, index, is_nan, *best = state
            value = load(at)
            is_nan = builder.or_(is_nan, builder.fcmp_unordered("uno", value, value))
            following += [emit.at(at, stride), builder.add(index, splat_bits(1)), is_nan]
            following += _insert_vector(emit, value, index, best, largest)
        for place, vector in enumerate(following[3:]):
            slot = place % width
            with builder.if_then(builder.icmp_signed(">", kept, emit.i64(slot))):
                skipped = emit.i64(slot) if place < width else builder.add(kept, emit.i64(slot))
                emit.store(vector, emit.at(held, builder.mul(skipped, emit.i64(WIDTH))))
        return [_bits(emit, following[2])]

    def go(largest: bool, load: Load, widths: tuple[int, ...] = REGISTERS) -> list[Register]:
        if not widths:
            return hold_in_memory(largest, load)
        fits = builder.icmp_signed("<=", kept, emit.i64(widths[0]))
        return emit.if_else(
            fits, partial(hold_in_registers, widths[0], largest, load), partial(go, largest, load, widths[1:])
        )

    def hold_in_memory(largest: bool, load: Load) -> list[Register]:
        with emit.loop(kept, [held]) as (_, (place,), following):
            emit.store(emit.constant(float("nan")), place)  # anything is better
            following.append(emit.at(place, WIDTH))
        worst = emit.at(following[0], -WIDTH)
        start = [x, splat_bits(0), _NO_LANES]
        with emit.loop(length, start) as (_, (at, index, is_nan), following):
            value = load(at)
            is_better = _better(emit, largest, value, emit.load(worst))
            any_better = builder.icmp_unsigned("!=", _bits(emit, is_better), emit.i64(0))
            with builder.if_then(any_better):
                _insert_lanes(emit, value, index, held, kept, largest)
            is_nan = builder.or_(is_nan, builder.fcmp_unordered("uno", value, value))
            following += [emit.at(at, stride), builder.add(index, splat_bits(1)), is_nan]
        return [_bits(emit, following[2])]

    def either(load: Load) -> list[Register]:
        is_largest = builder.icmp_signed("!=", largest, emit.i64(0))
        return emit.if_else(is_largest, partial(go, True, load), partial(go, False, load))

    is_whole = builder.icmp_signed(">=", count, emit.i64(LANES))
    return emit.if_else(is_whole, lambda: either(emit.load), lambda: either(emit.masked_access(count)[0]))[0]


def _insert_vector(
    emit: Emit, value: Register, index: Register, best: list[Register], largest: bool
) -> list[Register]:
    """Insert a vector into vectors sorted in each lane, and its index into their indices; drop the worst."""
    count = len(best) // 2
    vectors, indices = best[:count], best[count:]
    is_better = [_better(emit, largest, value, old) for old in vectors]

    def insert(new: Register, held: list[Register]) -> list[Register]:
        select = emit.builder.select
        before = [new, *map(select, is_better, held, [new] * count)]  # the previous vector, where that moves
        return [*map(select, is_better, before, held)]

    return insert(value, vectors) + insert(index, indices)


def _insert_lanes(
    emit: Emit, value: Register, index: Register, held: Register, kept: Register, largest: bool
) -> None:
    """Insert a vector into the kept vectors in memory, in each lane after the elements that are not worse.

    The kept elements are sorted, so each is compared with the new element independently.
    """
    builder, indices = emit.builder, emit.builder.mul(kept, emit.i64(WIDTH))
    with emit.loop(kept, [held, value, index, _NO_LANES]) as (
        _,
        (place, before, before_index, moved),
        following,
    ):
        at = emit.at(place, indices)
        old, old_index = emit.load(place), emit.load(at, INTS)
        is_better = _better(emit, largest, value, old)
        new, new_index = builder.select(moved, before, value), builder.select(moved, before_index, index)
        emit.store(builder.select(is_better, new, old), place)
        emit.store(builder.select(is_better, new_index, old_index), at)
        following += [emit.at(place, WIDTH), old, old_index, is_better]


@instruction(*[types.int64] * 2)
def order_by_index(emit: Emit, held: Register, kept: Register) -> None:
    """Sort the few kept elements by index, lane by lane, swapping neighbours."""
    builder, indices = emit.builder, emit.builder.mul(kept, emit.i64(WIDTH))
    pairs = builder.sub(kept, emit.i64(1))
    with emit.loop(pairs), emit.loop(pairs, [held]) as (_, (place,), following):
        at = emit.at(place, indices)
        first, second = emit.load(at, INTS), emit.load(emit.at(at, WIDTH), INTS)
        is_later = builder.icmp_signed(">", first, second)
        _exchange(emit, is_later, at, first, second)
        _exchange(emit, is_later, place, emit.load(place), emit.load(emit.at(place, WIDTH)))
        following.append(emit.at(place, WIDTH))


def _exchange(emit: Emit, where: Register, place: Register, first: Register, second: Register) -> None:
    emit.store(emit.builder.select(where, second, first), place)
    emit.store(emit.builder.select(where, first, second), emit.at(place, WIDTH))


@instruction(*[types.int64] * 7)
def store_held(
    emit: Emit, held: Register, kept: Register, values: Register, indices: Register, apart: Register, count: Register, size: Register
) -> None:  # fmt: skip
    """Store the first lanes of the vectors from `hold_best` as rows.

    Args:
        emit: the code emitter.
        held: the address of the vectors.
        kept: the number of elements in each lane.
        values: the address of the first row of elements.
        indices: the address of the first row of indices.
        apart: the number of elements between the starts of successive rows.
        count: the number of lanes.
        size: the size of a stored index in bytes.
    """
    builder, (_, store) = emit.builder, emit.masked_access(count)
    twice = builder.mul(count, emit.i64(2))
    _, store_low = emit.masked_access(twice)
    _, store_high = emit.masked_access(builder.sub(twice, emit.i64(LANES)))
    with emit.loop(kept, [held, values, indices]) as (_, (place, value, index), following):
        store(emit.load(place), value)
        integers = emit.load(emit.at(place, builder.mul(kept, emit.i64(WIDTH))), INTS)

        def narrow(integers: Register = integers, index: Register = index) -> None:
            store(builder.bitcast(integers, VECTOR), index)

        def wide(integers: Register = integers, index: Register = index) -> None:
            words = builder.sext(integers, ir.VectorType(I64, LANES))
            both = builder.bitcast(words, ir.VectorType(F32, 2 * LANES))
            low, high = (
                builder.shuffle_vector(both, both, ir.Constant(INTS, list(range(first, first + LANES))))
                for first in (0, LANES)
            )
            store_low(low, index)
            store_high(high, emit.at(index, WIDTH))

        emit.switch(size, {4: narrow, 8: wide})
        following += [
            emit.at(place, WIDTH),
            emit.at(value, builder.mul(apart, emit.i64(4))),
            emit.at(index, builder.mul(apart, size)),
        ]


@instruction(types.int64, types.float32, types.int64, returns=types.int64)
def better_lanes(emit: Emit, x: Register, worst: Register, largest: Register) -> Register:
    """Return a bit mask of the lanes of the vector at ``x`` that are NaN or better than ``worst``."""
    value, other = emit.load(x), emit.splat(worst)
    masks = (_bits(emit, _better(emit, is_largest, value, other)) for is_largest in (True, False))
    return emit.builder.select(emit.builder.icmp_signed("!=", largest, emit.i64(0)), *masks)


# Buckets of the first pass, by the highest bits, and the minimum ratio of row length to result length for it.
BUCKETS = 1 << 12
MIN_RATIO = 4
_INDEX, _LEAST, _MOST = (1 << 32) - 1, -(1 << 31), (1 << 31) - 1
_INFINITE = 0x7F800000


@device
def _rank(bits: int, largest: bool) -> int:
    """Map f32 bits to a 32-bit integer that is smaller for better values; equal values map to the same integer."""
    if bits & _MOST > _INFINITE:
        ordered = _MOST
    elif bits == _LEAST:  # -0
        ordered = 0
    else:
        ordered = bits ^ _MOST if bits < 0 else bits
    return (_MOST - ordered if largest else ordered - _LEAST) & _INDEX


@device
def _clear(counters: int, count: int) -> None:
    for place in range(count):
        store_i64(counters, place, 0)


@device
def _count(counters: int, place: int) -> None:
    store_i64(counters, place, load_i64(counters, place) + 1)


@device
def _sort(words: int, other: int, count: int, counters: int) -> int:
    """Sort words by their high halves, alternating with a buffer of equal size; return the address of the sorted words."""
    _clear(counters, 1024)
    for place in range(count):
        word = load_i64(words, place)
        for byte in range(4):
            _count(counters, 256 * byte + ((word >> (32 + 8 * byte)) & 255))
    for byte in range(4):
        shift, counts = 32 + 8 * byte, counters + 2048 * byte
        if load_i64(counts, (load_i64(words, 0) >> shift) & 255) == count:
            continue  # all words have the same digit
        start = 0
        for digit in range(256):
            digit_count = load_i64(counts, digit)
            store_i64(counts, digit, start)
            start += digit_count
        for place in range(count):
            word = load_i64(words, place)
            digit = (word >> shift) & 255
            target = load_i64(counts, digit)
            store_i64(other, target, word)
            store_i64(counts, digit, target + 1)
        words, other = other, words
    return words


@device
def _drop_worst(words: int, length: int, kept: int, counters: int) -> int:
    """Drop words that cannot be among the best ``kept``, preserving order; return how many words are left."""
    _clear(counters, BUCKETS)
    for place in range(length):
        _count(counters, (load_i64(words, place) >> 52) & (BUCKETS - 1))
    bucket, total = 0, load_i64(counters, 0)
    while total < kept:
        bucket += 1
        total += load_i64(counters, bucket)
    left = 0
    for place in range(length):
        word = load_i64(words, place)
        store_i64(words, left, word)
        left += 1 if (word >> 52) & (BUCKETS - 1) <= bucket else 0
    return left


@Task
def _sort_rows(call: int, job: TopKJob, out: int, x: int) -> None:
    """Select the best elements of rows by sorting; a work unit is a row."""
    rows, length, kept = job.outer, job.length, job.count
    largest, size = job.largest != 0, job.index_size
    scratch = scratch_memory(16 * length + 8 * BUCKETS)
    other, counters = scratch + 8 * length, scratch + 16 * length
    for row in each_unit(call, rows):
        line, indices = x + 4 * length * row, out + size * kept * row
        values = out + job.values + 4 * kept * row
        for index in range(length):
            store_i64(scratch, index, (_rank(load_index(line, index, 4), largest) << 32) | index)
        left = length
        if length >= MIN_RATIO * kept and length >= BUCKETS:
            left = _drop_worst(scratch, length, kept, counters)
        words = _sort(scratch, other, left, counters)
        if job.by_index != 0:
            for place in range(kept):
                index = load_i64(words, place) & _INDEX
                store_i64(words, place, (index << 32) | index)
            words = _sort(words, other if words == scratch else scratch, kept, counters)
        for place in range(kept):
            index = load_i64(words, place) & _INDEX
            store_f32(values, place, load_f32(line, index))
            store_index(indices, place, index, size)


# Maximum number of elements that a pass keeps; maximum length of rows that are transposed, and minimum number of such rows.
MAX_COUNT = 32
MAX_SHORT = 1 << 10
MIN_SHORT_ROWS = LANES // 2
# Number of layouts whose plans are cached.
MAX_PLANS = 16


@device
def _insert(
    values: int, indices: int, size: int, end: int, value: np.float32, index: int, largest: bool
) -> None:
    """Insert an element into ``end`` sorted elements, after those that are not worse."""
    place = end
    while place > 0:
        before = load_f32(values, place - 1)
        if not (value > before if largest else value < before):
            break
        store_f32(values, place, before)
        store_index(indices, place, load_index(indices, place - 1, size), size)
        place -= 1
    store_f32(values, place, value)
    store_index(indices, place, index, size)


@device
def _sort_by_index(values: int, indices: int, size: int, count: int) -> None:
    for end in range(1, count):
        value, index, place = load_f32(values, end), load_index(indices, end, size), end
        while place > 0 and load_index(indices, place - 1, size) > index:
            store_f32(values, place, load_f32(values, place - 1))
            store_index(indices, place, load_index(indices, place - 1, size), size)
            place -= 1
        store_f32(values, place, value)
        store_index(indices, place, index, size)


@device
def _choose(line: int, length: int, count: int, largest: int, values: int, indices: int, size: int) -> bool:
    """Store the best elements of a row, sorted; return whether it has NaN."""
    is_largest, has_nan, index = largest != 0, False, 0
    while index < length:
        is_vector = index >= count and index + LANES <= length
        if is_vector and better_lanes(line + 4 * index, load_f32(values, count - 1), largest) == 0:
            index += LANES
            continue
        for place in range(index, min(index + LANES, length)):
            value = load_f32(line, place)
            has_nan = has_nan or value != value
            if place < count:
                _insert(values, indices, size, place, value, place, is_largest)
            else:
                worst = load_f32(values, count - 1)
                if value > worst if is_largest else value < worst:
                    _insert(values, indices, size, count - 1, value, place, is_largest)
        index += LANES
    return has_nan


def _topk(call: int, job: TopKJob, out: int, x: int) -> None:
    """Select the best elements of rows; a work unit is a row."""
    rows, length, count = job.outer, job.length, job.count
    largest, size = job.largest, job.index_size
    for row in each_unit(call, rows):
        indices = out + size * count * row
        values = out + job.values + 4 * count * row
        if _choose(x + 4 * length * row, length, count, largest, values, indices, size):
            fetch_add(job + 8 * TopKJob.refused)
        if job.by_index != 0:
            _sort_by_index(values, indices, size, count)


def _topk_short(call: int, job: TopKJob, out: int, x: int) -> None:
    """Select the best elements of short rows; a work unit is `LANES` rows, which are transposed."""
    rows, length, count = job.outer, job.length, job.count
    largest, size = job.largest, job.index_size
    held = scratch_memory(WIDTH * (2 * count + length))
    columns, units = held + 2 * WIDTH * count, (rows + LANES - 1) // LANES
    for unit in each_unit(call, units):
        first = LANES * unit
        lanes = min(LANES, rows - first)
        for column in range(0, length, LANES):
            source = x + 4 * (first * length + column)
            transpose_part(
                source, 4 * length, lanes, min(LANES, length - column), columns + WIDTH * column, WIDTH
            )  # fmt: skip
        if hold_best(columns, WIDTH, length, LANES, held, count, largest) != 0:
            fetch_add(job + 8 * TopKJob.refused)
        if job.by_index != 0:
            order_by_index(held, count)
        indices = out + size * count * first
        values = out + job.values + 4 * count * first
        for row in range(lanes):
            for place in range(count):
                at = row * count + place
                store_f32(values, at, load_f32(held, LANES * place + row))
                store_index(indices, at, load_index(held, LANES * (count + place) + row, 4), size)


def _topk_columns(call: int, job: TopKJob, out: int, x: int) -> None:
    """Select the best elements along columns; a work unit is a block of columns."""
    outer, length, inner, block = load_sizes(job)
    count, largest, size = job.count, job.largest, job.index_size
    held, across = scratch_memory(2 * WIDTH * count), (inner + block - 1) // block
    for unit in each_unit(call, outer * across):
        row = unit // across
        begin = (unit - row * across) * block
        for column in range(begin, min(begin + block, inner), LANES):
            source, lanes = x + 4 * (row * length * inner + column), min(LANES, inner - column)
            if hold_best(source, 4 * inner, length, lanes, held, count, largest) != 0:
                fetch_add(job + 8 * TopKJob.refused)
            if job.by_index != 0:
                order_by_index(held, count)
            at = row * count * inner + column
            values = out + job.values + 4 * at
            store_held(held, count, values, out + size * at, inner, lanes, size)


TOPK, TOPK_SHORT, TOPK_COLUMNS = Task(_topk), Task(_topk_short), Task(_topk_columns)
"""Store the indices and values of the best elements of each row or column of A; those with NaN are refused."""


class _Plan(NamedTuple):
    """A plan for selecting elements of data in one layout.

    Args:
        order: the order of axes in which the data is read; it is copied unless its memory has that order.
        sizes: ``[outer, length, inner]``.
        shape: the shape of the result, with its axes in that order.
        back: the permutation that restores the axis order of the result.
        task: the selection task.
    """

    order: list[int]
    sizes: tuple[int, int, int]
    shape: tuple[int, ...]
    back: list[int]
    task: Task


@backend.accelerates(TopK1, TopK3, TopK11)
def topk(op: TopKBase, data: Value, k: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a TopK kernel for a constant number of f32 elements.

    For up to `MAX_COUNT` elements, data with NaN is left to the reference.
    """
    count, rank = k.ints(), data.shape.rank
    if not is_f32(data) or not rank or count is None or len(count) != 1 or not -rank <= op.axis < rank:
        return None
    if count[0] < 1:
        return None
    index, kept, axis = op.index_element_type.dtype, count[0], op.axis % rank
    for task in (_sort_rows,) if kept > MAX_COUNT else (TOPK, TOPK_SHORT, TOPK_COLUMNS):
        task.prepare()

    @lru_cache(maxsize=MAX_PLANS)
    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> _Plan:
        return _plan(shape, strides, axis, kept)

    def kernel(x: Array, k: Array) -> tuple[Array, Array]:
        if not x.size or x.shape[axis] < kept:
            return op.evaluate(x, k)
        order, sizes, shape, back, task = plan(x.shape, x.strides)
        chosen = math.prod(shape)
        values = chosen * index.itemsize
        job = TopKJob.fill(
            **column_sizes(sizes), count=kept, largest=op.mode == "max", by_index=op.sort == "index",
            index_size=index.itemsize, values=values, refused=0,
        )  # fmt: skip
        out = empty(values + 4 * chosen, np.uint8)
        run_columns(task, contiguous(x.transpose(order)), out, job)
        if task is not _sort_rows and was_refused(job, TopKJob.refused):
            return op.evaluate(x, k)
        best, places = out[values:].view(np.float32), out[:values].view(index)
        return best.reshape(shape).transpose(back), places.reshape(shape).transpose(back)

    return Kernel(kernel, accepts=any_lengths, replay=replayed())


def _plan(shape: tuple[int, ...], strides: tuple[int, ...], axis: int, kept: int) -> _Plan:
    axes, sizes, _, _ = plan_axes(shape, strides, frozenset({axis}), True)
    order = [*axes]
    by_columns = sizes[2] >= LANES and kept <= MAX_COUNT
    if not by_columns and sizes[2] > 1:
        order.remove(axis)
        order.append(axis)
    outer, length, inner = sizes if by_columns else (sizes[0] * sizes[2], sizes[1], 1)
    result = tuple(kept if along == axis else shape[along] for along in order)
    task = TOPK_COLUMNS if by_columns else _sort_rows if kept > MAX_COUNT else TOPK
    if task is TOPK and length <= MAX_SHORT and outer >= MIN_SHORT_ROWS:
        task = TOPK_SHORT
    return _Plan(order, (outer, length, inner), result, np.argsort(order).tolist(), task)
