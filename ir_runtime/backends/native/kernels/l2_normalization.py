"""Division by the L2 norm over axes (NormalizeL2, GRN), with the sum of squares and its root in f64, as in the reference."""

from __future__ import annotations

from functools import partial

import numpy as np

from ....ir.tensor import Value
from ....ops.normalization import GRN, NormalizeL2
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, VECTOR, Emit, Load, Store
from ..codegen.vectors import Value as Emitted
from ._columns import (
    ABREAST,
    ColumnsJob,
    ColumnsPlan,
    column_sizes,
    columns_kernel,
    columns_task,
    known_axes,
    load_sizes,
    plan_axes,
)
from ._reductions import F64, STEPS, Reduction, doubles, reduce_row, spread, square_root, widened

__all__: list[str] = []


class L2Job(ColumnsJob):
    """The job of `NORMALIZE_L2`; ``epsilon`` holds f64 bits; it is added if ``adds``, else a lower bound."""

    epsilon: i64
    adds: i64


def _factor(emit: Emit, squares: Emitted, epsilon: Emitted, adds: Emitted) -> Emitted:
    """Return the f64 factor for sums of squares; NaN stays NaN."""
    builder = emit.builder
    guard = spread(emit, builder.bitcast(epsilon, F64))
    is_larger = builder.fcmp_unordered(">", squares, guard)
    most = builder.select(is_larger, squares, guard)
    is_sum = builder.icmp_signed("!=", adds, emit.i64(0))
    guarded = builder.select(is_sum, builder.fadd(squares, guard), most)
    return builder.fdiv(doubles(1), square_root(emit, guarded))


def _scaled(emit: Emit, x: Emitted, factor: Emitted) -> Emitted:
    return emit.builder.fptrunc(emit.builder.fmul(widened(emit, x), factor), VECTOR)


@instruction(*[types.int64] * 7)
def _normalize_columns(
    emit: Emit, x: Emitted, stride: Emitted, length: Emitted, count: Emitted, out: Emitted, epsilon: Emitted,
    adds: Emitted,
) -> None:  # fmt: skip
    """Divide ``count`` columns of ``length`` elements, with a stride of ``stride`` bytes, by their norms."""
    steps = STEPS[Reduction.L2]

    for offset, access in emit.strips(count, ABREAST):
        places, source = [4 * LANES * j for j in range(len(access))], emit.at(x, offset)
        with emit.loop(length, [source, *[steps.start] * len(access)]) as (_, (at, *now), following):
            following.append(emit.at(at, stride))
            for (load, _), sum, place in zip(access, now, places, strict=True):
                following.append(steps.step(emit, sum, load(emit.at(at, place))))
        factors = [_factor(emit, squares, epsilon, adds) for squares in following[1:]]
        with emit.loop(length, [source, emit.at(out, offset)]) as (_, (at, to), following):
            for (load, store), factor, place in zip(access, factors, places, strict=True):
                store(_scaled(emit, load(emit.at(at, place)), factor), emit.at(to, place))
            following += [emit.at(at, stride), emit.at(to, stride)]


@instruction(*[types.int64] * 5)
def _normalize_row(
    emit: Emit, x: Emitted, count: Emitted, out: Emitted, epsilon: Emitted, adds: Emitted
) -> None:
    """Divide ``count`` contiguous elements by their norm."""
    steps = STEPS[Reduction.L2]

    def step(sum: Emitted, offset: Emitted, load: Load, _: Store) -> Emitted:
        return steps.step(emit, sum, load(emit.at(x, offset)))

    join = partial(steps.join, emit)
    squares = emit.reduce(reduce_row(emit, count, steps.start, step, join), join)
    factor = _factor(emit, spread(emit, squares), epsilon, adds)
    for offset, load, store in emit.vectors(count):
        store(_scaled(emit, load(emit.at(x, offset)), factor), emit.at(out, offset))


@device
def _normalize_some(job: L2Job, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    epsilon, adds = job.epsilon, job.adds
    at = 4 * (row * length * inner + column)
    _normalize_columns(x + at, 4 * inner, length, min(block, inner - column), out + at, epsilon, adds)


@device
def _normalize_rows(job: L2Job, x: int, out: int, first: int, end: int) -> None:
    length = job.length
    epsilon, adds = job.epsilon, job.adds
    for row in range(first, end):
        at = 4 * length * row
        _normalize_row(x + at, length, out + at, epsilon, adds)


NORMALIZE_L2 = columns_task("normalize_l2", _normalize_some, _normalize_rows)
"""Divide A ``[outer, length, inner]`` by its norm along the middle axis."""


@backend.accelerates(NormalizeL2)
def normalize_l2(op: NormalizeL2, data: Value, axes: Value) -> Kernel | None:
    """Support f32 over at least one constant axis."""
    along = known_axes(data, axes)
    return None if along is None else _kernel(along, op.eps, op.eps_mode == "add")


@backend.accelerates(GRN)
def grn(op: GRN, data: Value) -> Kernel | None:
    """Support f32."""
    rank = data.shape.rank
    return _kernel(frozenset({1}), op.bias, True) if is_f32(data) and rank is not None and rank > 1 else None


def _kernel(along: frozenset[int], epsilon: float, adds: bool) -> Kernel:
    bits = int(np.float64(epsilon).view(np.int64))

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        order, sizes, _, back = plan_axes(shape, strides, along, True)
        return ColumnsPlan(order, back, L2Job.fill(**column_sizes(sizes), epsilon=bits, adds=adds))

    return columns_kernel(NORMALIZE_L2, plan)
