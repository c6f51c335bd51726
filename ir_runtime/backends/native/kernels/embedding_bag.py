"""Embedding bags: sums and means of table rows, accumulated in registers."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.sparse import (
    EmbeddingBagOffsets,
    EmbeddingBagOffsetsSum,
    EmbeddingBagPacked,
    EmbeddingBagPackedSum,
    EmbeddingSegmentsSum,
    OffsetBags,
    PackedBags,
)
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import is_f32
from ...core.kernel import any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import F32, I64, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for, uses_constant, was_refused
from ..threading.task import Task, each_counted, shared_counters
from ._copy import contiguous
from ._rows import copy_row

__all__: list[str] = []

_ONE = np.ones(1, np.float32)
_ONE_ADDRESS = int(_ONE.ctypes.data)


class BagsJob(Descriptor):
    """Parameters of `_bags`.

    ``count`` is the number of indices; the table has ``rows`` rows of ``width`` elements. An empty bag gives table row
    ``default``, or zeros if it is negative. Weights are ``weight_step`` bytes apart, 0 if all indices share one. ``refused``
    counts bags with an index or offset out of range.
    """

    bags: i64
    count: i64
    rows: i64
    width: i64
    default: i64
    is_mean: i64
    weights: i64
    weight_step: i64
    refused: i64


@instruction(*[types.int64] * 9)
def _add_up(  # noqa: PLR0913 (values in registers)
    emit: Emit, table: Any, size: Any, indices: Any, count: Any, weights: Any, step: Any, divisor: Any, width: Any,
    out: Any,
) -> None:  # fmt: skip
    """Store the weighted sum of ``count`` table rows of ``width`` elements, divided by the integer ``divisor``.

    ``size`` is the bytes between table rows, ``step`` the bytes between weights, 0 if all rows share one.
    """
    builder = emit.builder
    divisors = emit.splat(builder.sitofp(divisor, F32))

    for offset, load, store in emit.vectors(width):
        with emit.loop(count, [indices, weights, emit.constant(0)]) as (_, (index, weight, total), following):
            row = emit.at(table, builder.mul(emit.load(index, I64), size))
            factor = emit.splat(emit.load(weight, F32))
            more = emit.fma(load(emit.at(row, offset)), factor, total)
            following += [emit.at(index, 8), emit.at(weight, step), more]
        store(emit.divide(following[2], divisors), emit.at(out, offset))


@device
def _is_inside(indices: int, first: int, last: int, rows: int) -> bool:
    """Return whether indices ``first`` to ``last``, excluding ``last``, are those of a table with ``rows`` rows."""
    inside = True
    for i in range(first, last):
        index = load_i64(indices, i)
        inside = inside and 0 <= index < rows
    return inside


@Task
def _bags(call: int, job: BagsJob, out: int, table: int, indices: int, offsets: int) -> None:
    """Sum or average the rows of ``table`` at ``indices``, optionally weighted, in bags that start at ``offsets``.

    A unit of work is one bag.
    """
    counter = shared_counters(call)
    bags, count = job.bags, job.count
    rows, width = job.rows, job.width
    weights, step = job.weights, job.weight_step
    default, size = job.default, 4 * width
    for bag in each_counted(counter, bags):
        first = load_i64(offsets, bag)
        last = load_i64(offsets, bag + 1) if bag + 1 < bags else count
        checked = first if bag > 0 else 0  # indices before the first bag must be in range, too
        if not 0 <= first <= last <= count or not _is_inside(indices, checked, last, rows):
            fetch_add(job + 8 * BagsJob.refused)
        elif first == last and default >= 0:
            copy_row(table + default * size, width, out + bag * size)
        else:
            divisor = max(last - first, 1) if job.is_mean != 0 else 1
            _add_up(
                table, size, indices + 8 * first, last - first, weights + step * first, step, divisor, width,
                out + bag * size,
            )  # fmt: skip


@backend.accelerates(EmbeddingBagOffsetsSum, EmbeddingBagOffsets)
def bags(op: OffsetBags, table: Value, indices: Value, offsets: Value, *others: Value) -> Kernel | None:
    """Return an EmbeddingBagOffsets kernel for f32, else ``None``; the reference reports indices and offsets out of range."""
    if not _is_supported(table, indices, *others[1:]) or offsets.shape.rank != 1:
        return None
    _bags.prepare()
    is_mean = op.reduction == "mean"

    def kernel(table: Array, indices: Array, offsets: Array, *others: Array) -> Array:
        default = int(others[0].item()) if others else -1
        sums = _reduce_bags(table, indices, offsets, is_mean, default, others[1] if len(others) > 1 else None)
        return op.evaluate(table, indices, offsets, *others) if sums is None else sums

    # A replay repeats the job: it must hold no weights, and the default index must be constant.
    fixed = not others[1:] and all(value.known() is not None for value in others)
    return Kernel(kernel, accepts=any_lengths, replay=replayed() if fixed else None)


@backend.accelerates(EmbeddingBagPackedSum, EmbeddingBagPacked)
def packed_bags(op: PackedBags, table: Value, indices: Value, *weights: Value) -> Kernel | None:
    """Return an EmbeddingBagPacked kernel for f32, else ``None``; the reference reports indices out of range."""
    if not _is_supported(table, indices, *weights):
        return None
    _bags.prepare()
    is_mean = op.reduction == "mean"

    def kernel(table: Array, indices: Array, *weights: Array) -> Array:
        offsets = _equal_offsets(*indices.shape)
        uses_constant(offsets)
        sums = _reduce_bags(table, indices, offsets, is_mean, -1, weights[0] if weights else None)
        return op.evaluate(table, indices, *weights) if sums is None else sums

    return Kernel(kernel, accepts=any_lengths, replay=None if weights else replayed())


@backend.accelerates(EmbeddingSegmentsSum)
def segments(
    op: EmbeddingSegmentsSum, table: Value, indices: Value, ids: Value, count: Value, *others: Value
) -> Kernel | None:
    """Return an EmbeddingSegmentsSum kernel for f32, else ``None``; unsorted segment ids are left to the reference."""
    if not _is_supported(table, indices, *others[1:]) or ids.shape.rank != 1:
        return None
    _bags.prepare()

    def kernel(table: Array, indices: Array, ids: Array, count: Array, *others: Array) -> Array:
        sums, weights = None, others[1] if len(others) > 1 else None
        if ids.size and ids.shape == indices.shape and _is_ascending(ids, int(count.item())):
            offsets = ids.searchsorted(np.arange(int(count.item())))
            default = int(others[0].item()) if others else -1
            sums = _reduce_bags(table, indices, offsets, False, default, weights)
        return op.evaluate(table, indices, ids, count, *others) if sums is None else sums

    return Kernel(kernel, accepts=any_lengths)


def _is_ascending(ids: Array, count: int) -> bool:
    """Return whether segment ids are ascending, nonnegative, and below ``count``."""
    return bool(ids[0] >= 0 and ids[-1] < count and (ids[1:] >= ids[:-1]).all())


def _is_supported(table: Value, indices: Value, *weights: Value) -> bool:
    return is_f32(table, *weights) and bool(table.shape.rank) and indices.shape.rank is not None


@lru_cache(maxsize=64)
def _equal_offsets(bags: int, length: int) -> Array:
    return np.arange(bags, dtype=np.int64) * length


def _reduce_bags(
    table: Array, indices: Array, offsets: Array, is_mean: bool, default: int, weights: Array | None
) -> Array | None:
    """Return the sum or mean of each bag; ``None`` to leave empty, unsupported and invalid inputs to the reference.

    Empty bags give table row ``default``, or zeros if it is negative.
    """
    count, (rows, *lengths) = len(offsets), table.shape
    if not count or default >= rows or (weights is not None and (is_mean or weights.shape != indices.shape)):
        return None
    out = empty((count, *lengths), np.float32)
    factors = None if weights is None else contiguous(weights)
    width = math.prod(lengths)
    job = BagsJob.fill(
        bags=count, count=indices.size, rows=rows, width=width, default=default, is_mean=is_mean,
        weights=_ONE_ADDRESS if factors is None else factors,
        weight_step=0 if factors is None else factors.itemsize, refused=0,
    )  # fmt: skip
    shared = threads_for(moved=4 * indices.size * width)
    parallel_for(_bags.address, job, out, contiguous(table), _words(indices), _words(offsets), shared)
    return None if was_refused(job, BagsJob.refused) else out


def _words(integers: Array) -> Array:
    """Return integers as contiguous i64."""
    return np.ascontiguousarray(integers, np.int64)
