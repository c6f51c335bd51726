"""Local response normalization (LRN) along an axis: sums of squares of a window, and powers of them, in f64 as in the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Value
from ....ops.normalization import LRN
from ... import Kernel
from .._backend import backend
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import LANES, VECTOR, Emit, Load, Store
from ..codegen.vectors import Value as Emitted
from ._axes_plan import known_axes, plan_axes
from ._column_loop import column_loop
from ._columns_kernel import ColumnsPlan, columns_kernel
from ._columns_task import ColumnsJob, column_sizes, columns_task, load_sizes
from ._f64_power import negative_power
from ._reduction_steps import F64, STEPS, Reduction, doubles, spread, widened

__all__: list[str] = []

# The greatest exponent, and the least bias, whose power is far from overflow.
MOST_BETA = 8.0
LEAST_BIAS = 1e-9


class ResponseJob(ColumnsJob):
    """The job of `RESPONSE`: elements of a window before and after its own; numbers by the bits of an f64."""

    reach: i64
    bias: i64
    scale: i64
    beta: i64


@instruction(*[types.int64] * 9)
def _normalize(  # noqa: PLR0913 (values in registers)
    emit: Emit,
    x: Emitted,
    stride: Emitted,
    before: Emitted,
    window: Emitted,
    count: Emitted,
    out: Emitted,
    bias: Emitted,
    scale: Emitted,
    beta: Emitted,
) -> None:
    """Normalize ``count`` neighbours in a row by windows of as many rows, ``stride`` bytes apart, which begin some bytes before."""
    builder = emit.builder
    low, factor, exponent = (spread(emit, builder.bitcast(bits, F64)) for bits in (bias, scale, beta))
    square = STEPS[Reduction.L2].step

    def body(offset: Emitted, access: Sequence[tuple[Load, Store]]) -> None:
        places, source = [4 * LANES * j for j in range(len(access))], emit.at(x, offset)
        start = [doubles(0)] * len(access)
        with emit.loop(window, [builder.sub(source, before), *start]) as (_, (at, *sums), following):
            following.append(emit.at(at, stride))
            for (load, _), sum, place in zip(access, sums, places, strict=True):
                following.append(square(emit, sum, load(emit.at(at, place))))
        for (load, store), sum, place in zip(access, following[1:], places, strict=True):
            power = negative_power(emit, builder.fadd(low, builder.fmul(factor, sum)), exponent)
            wide = builder.fmul(widened(emit, load(emit.at(source, place))), power)
            store(builder.fptrunc(wide, VECTOR), emit.at(emit.at(out, offset), place))

    column_loop(emit, count, body)


@device
def _respond(job: ResponseJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    reach, bias, scale, beta = (
        job.reach,
        job.bias,
        job.scale,
        job.beta,
    )
    stride = 4 * inner
    for place in range(length):
        at = 4 * ((row * length + place) * inner + column)
        first, end = max(place - reach, 0), min(place + reach + 1, length)
        _normalize(
            x + at, stride, (place - first) * stride, end - first, min(block, inner - column), out + at, bias,
            scale, beta,
        )  # fmt: skip


RESPONSE = columns_task("response", _respond)
"""Normalize A ``[outer, length, inner]`` by windows along the axis in the middle."""


@backend.accelerates(LRN)
def local_response(op: LRN, data: Value, axes: Value) -> Kernel | None:
    """f32 along one known axis, for sums that are positive and powers that are not extreme."""
    along = known_axes(data, axes)
    if along is None or len(along) > 1 or not 0 <= op.alpha < np.inf or not LEAST_BIAS <= op.bias < np.inf:
        return None
    if op.beta > MOST_BETA:
        return None
    numbers = np.array([op.bias, op.alpha / op.size, op.beta]).view(np.int64).tolist()
    (axis,) = along

    def plan(shape: tuple[int, ...], strides: tuple[int, ...]) -> ColumnsPlan:
        """Rows are read as columns."""
        order = [*plan_axes(shape, strides, along, True).order]
        if order[-1] == axis:
            order.insert(0, order.pop())
        place = order.index(axis)
        lengths = [shape[axis] for axis in order]
        sizes = int(np.prod(lengths[:place])), lengths[place], int(np.prod(lengths[place + 1 :]))
        job = ResponseJob.fill(
            **column_sizes(sizes),
            reach=(op.size - 1) // 2,
            bias=numbers[0],
            scale=numbers[1],
            beta=numbers[2],
        )
        return ColumnsPlan(order, np.argsort(order).tolist(), job)

    return columns_kernel(RESPONSE, plan)
