"""Cumulative sums of f32 in the reference's order of additions: one vector of columns, or of rows, at a time."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Value
from ....ops.arithmetic import CumSum
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, store_f32
from ..codegen.vectors import LANES, Emit, Load, Store
from ..codegen.vectors import Value as Emitted
from ._columns import (
    ABREAST,
    ColumnsJob,
    ColumnsPlan,
    column_sizes,
    columns_kernel,
    columns_task,
    load_sizes,
    plan_axes,
)
from ._rows import transpose_vectors

__all__: list[str] = []

# Sums start at -0, the identity of addition: 0 would change -0.
_NONE = -0.0


class CumSumJob(ColumnsJob):
    """Parameters of `CUMSUM`; ``exclusive`` and ``reverse`` are the operation's attributes."""

    exclusive: i64
    reverse: i64


@instruction(*[types.int64] * 6)
def _sum_columns(
    emit: Emit, x: Emitted, stride: Emitted, length: Emitted, count: Emitted, out: Emitted, exclusive: Emitted
) -> None:  # fmt: skip
    """Store the cumulative sums of ``count`` columns of ``length`` elements.

    Rows are ``stride`` bytes apart; a negative stride sums backwards.
    """
    builder = emit.builder
    is_exclusive = builder.icmp_signed("!=", exclusive, emit.i64(0))

    for offset, access in emit.strips(count, ABREAST):
        places = [4 * LANES * j for j in range(len(access))]
        target, start = emit.at(out, offset), [emit.constant(_NONE)] * len(access)
        with emit.loop(length, [emit.at(x, offset), target, *start]) as (_, (at, to, *sums), following):
            following += [emit.at(at, stride), emit.at(to, stride)]
            for (load, store), sum, place in zip(access, sums, places, strict=True):
                total = emit.add(sum, load(emit.at(at, place)))
                store(builder.select(is_exclusive, sum, total), emit.at(to, place))
                following.append(total)
        with builder.if_then(is_exclusive):
            for (_, store), place in zip(access, places, strict=True):
                store(emit.constant(0), emit.at(target, place))


@instruction(*[types.int64] * 5)
def _sum_rows(
    emit: Emit, x: Emitted, stride: Emitted, length: Emitted, out: Emitted, exclusive: Emitted
) -> None:
    """Store the cumulative sums of `LANES` rows of ``length`` elements, which are ``stride`` bytes apart.

    Squares are transposed in registers, so that each vector holds one element of all rows.
    """
    builder = emit.builder
    is_exclusive = builder.icmp_signed("!=", exclusive, emit.i64(0))
    steps = [builder.mul(stride, emit.i64(i)) for i in range(LANES)]

    def square(offset: Emitted, sum: Emitted, load: Load, store: Store) -> Emitted:
        source, target = emit.at(x, offset), emit.at(out, offset)
        columns, sums = transpose_vectors(emit, [load(emit.at(source, step)) for step in steps]), []
        for column in columns:
            total = emit.add(sum, column)
            sums.append(builder.select(is_exclusive, sum, total))
            sum = total
        for step, row in zip(steps, transpose_vectors(emit, sums), strict=True):
            store(row, emit.at(target, step))
        return sum

    whole = builder.sdiv(length, emit.i64(LANES))
    with emit.loop(whole, [emit.i64(0), emit.constant(_NONE)]) as (_, (offset, sum), following):
        following += [emit.at(offset, 4 * LANES), square(offset, sum, emit.load, emit.store)]
    rest = builder.sub(length, builder.mul(whole, emit.i64(LANES)))
    with builder.if_then(builder.icmp_signed(">", rest, emit.i64(0))):
        square(following[0], following[1], *emit.masked_access(rest))
    with builder.if_then(is_exclusive):
        for step in steps:
            emit.store(ir.Constant(ir.F32, 0.0), emit.at(out, step))


@device
def _sum_row(x: int, length: int, out: int, exclusive: int, reverse: int) -> None:
    """Store the cumulative sums of one row."""
    sum = np.float32(_NONE)
    for index in range(length):
        place = length - 1 - index if reverse != 0 else index
        total = sum + load_f32(x, place)
        store_f32(out, place, sum if exclusive != 0 else total)
        sum = total
    if exclusive != 0:
        store_f32(out, length - 1 if reverse != 0 else 0, np.float32(0))


@device
def _sum_block(job: CumSumJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    reverse, stride = job.reverse, 4 * inner
    at = 4 * (row * length * inner + column)
    if reverse != 0:
        at += (length - 1) * stride
    _sum_columns(
        x + at, -stride if reverse != 0 else stride, length, min(block, inner - column), out + at,
        job.exclusive,
    )  # fmt: skip


@device
def _sum_several_rows(job: CumSumJob, x: int, out: int, first: int, end: int) -> None:
    length = job.length
    exclusive, reverse = job.exclusive, job.reverse
    row = first
    while row < end:
        at = 4 * length * row
        if reverse == 0 and end - row >= LANES:
            _sum_rows(x + at, 4 * length, length, out + at, exclusive)
            row += LANES
        else:
            _sum_row(x + at, length, out + at, exclusive, reverse)
            row += 1


CUMSUM = columns_task("cumsum", _sum_block, _sum_several_rows)
"""Compute the cumulative sums of A ``[outer, length, inner]`` along the middle axis."""


@backend.accelerates(CumSum)
def cumsum(op: CumSum, data: Value, axis: Value | None = None) -> Kernel | None:
    """Return a CumSum kernel for f32 data of known rank along a constant axis, else ``None``."""
    axes, rank = (0,) if axis is None else axis.ints(), data.shape.rank
    if not is_f32(data) or not rank or axes is None or len(axes) != 1 or not -rank <= axes[0] < rank:
        return None
    along = frozenset({axes[0] % rank})

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        order, sizes, _, back = plan_axes(shape, strides, along, True)
        fields = column_sizes(sizes)
        if sizes[2] == 1:
            fields["block"] = -(-fields["block"] // LANES) * LANES
        return ColumnsPlan(order, back, CumSumJob.fill(**fields, exclusive=op.exclusive, reverse=op.reverse))

    return columns_kernel(CUMSUM, plan)
