"""Reductions and softmax of tensors ``[outer, length, inner]`` along the axis in the middle: vectors of columns."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import F32, LANES, VECTOR, Emit, Load, Store, Value
from ._activation_code import exp
from ._column_loop import column_loop
from ._columns_task import ColumnsJob, Sizes, column_sizes, columns_task, load_sizes, run_columns
from ._reduction_steps import STEPS, Steps, doubles, larger, widened
from ._reductions import reduce_row

__all__ = ["REDUCE", "SOFTMAX_COLUMNS", "reduce_columns", "softmax_columns"]


class ReductionJob(ColumnsJob):
    """The job of `REDUCE`; ``code`` is a `Reduction`."""

    code: i64
    divisor: i64


@instruction(*[types.int64] * 7)
def _reduce_columns(
    emit: Emit, code: Value, x: Value, stride: Value, length: Value, count: Value, out: Value, divisor: Value
) -> None:  # fmt: skip
    """Reduce ``count`` columns of ``length`` elements, which are ``stride`` bytes apart."""

    def go(steps: Steps) -> None:
        def body(offset: Value, access: Sequence[tuple[Load, Store]]) -> None:
            start = [steps.start] * len(access)
            with emit.loop(length, [emit.at(x, offset), *start]) as (_, (at, *so_far), following):
                following.append(emit.at(at, stride))
                for j, (load, _) in enumerate(access):
                    following.append(steps.step(emit, so_far[j], load(emit.at(at, 4 * LANES * j))))
            for j, (_, store) in enumerate(access):
                found = _narrowed(emit, steps.finish(emit, following[1 + j], divisor), VECTOR)
                store(found, emit.at(emit.at(out, offset), 4 * LANES * j))

        column_loop(emit, count, body)

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


@instruction(*[types.int64] * 5)
def _reduce_row(emit: Emit, code: Value, x: Value, count: Value, out: Value, divisor: Value) -> None:
    """Reduce ``count`` elements that are next to each other."""

    def go(steps: Steps) -> None:
        def step(so_far: Value, offset: Value, load: Load, _: Store) -> Value:
            return steps.step(emit, so_far, load(emit.at(x, offset)))

        join = partial(steps.join, emit)
        found = emit.reduce(reduce_row(emit, count, steps.start, step, join), join)
        emit.store(_narrowed(emit, steps.finish(emit, found, divisor), F32), out)

    emit.switch(code, {code: partial(go, steps) for code, steps in STEPS.items()})


def _narrowed(emit: Emit, found: Value, kind: ir.Type) -> Value:
    return found if found.type == kind else emit.builder.fptrunc(found, kind)


@instruction(*[types.int64] * 5)
def _softmax_columns(emit: Emit, x: Value, stride: Value, length: Value, count: Value, out: Value) -> None:
    """Compute softmax along ``count`` columns of ``length`` elements, which are ``stride`` bytes apart."""

    def body(offset: Value, load: Load, store: Store) -> None:
        source, target = emit.at(x, offset), emit.at(out, offset)
        with emit.loop(length, [source, emit.constant(float("-inf"))]) as (_, (at, so_far), following):
            following += [emit.at(at, stride), larger(emit, so_far, load(at))]
        top = following[1]
        with emit.loop(length, [source, target, doubles(0)]) as (
            _,
            (at, to, sum),
            following,
        ):
            power = exp(emit, emit.subtract(load(at), top))
            store(power, to)
            following += [
                emit.at(at, stride),
                emit.at(to, stride),
                emit.builder.fadd(sum, widened(emit, power)),
            ]
        factor = emit.divide(emit.constant(1), emit.builder.fptrunc(following[2], VECTOR))
        with emit.loop(length, [target]) as (_, (to,), following):
            store(emit.multiply(load(to), factor), to)
            following.append(emit.at(to, stride))

    emit.vector_loop(count, body)


@device
def _reduce_some(job: ReductionJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    code, divisor = job.code, job.divisor
    _reduce_columns(
        code, x + 4 * (row * length * inner + column), 4 * inner, length, min(block, inner - column),
        out + 4 * (row * inner + column), divisor,
    )  # fmt: skip


@device
def _reduce_rows(job: ReductionJob, x: int, out: int, first: int, end: int) -> None:
    length = job.length
    code, divisor = job.code, job.divisor
    for row in range(first, end):
        _reduce_row(code, x + 4 * length * row, length, out + 4 * row, divisor)


REDUCE = columns_task("reduce", _reduce_some, _reduce_rows)
"""Reduce A ``[outer, length, inner]`` to ``[outer, inner]``."""


@device
def _softmax_some(job: ColumnsJob, x: int, out: int, row: int, column: int) -> None:
    _, length, inner, block = load_sizes(job)
    at = 4 * (row * length * inner + column)
    _softmax_columns(x + at, 4 * inner, length, min(block, inner - column), out + at)


SOFTMAX_COLUMNS = columns_task("softmax", _softmax_some)
"""Compute softmax of A ``[outer, length, inner]`` along the axis in the middle."""


def reduce_columns(x: Array, out: Array, sizes: Sizes, code: int, divisor: int) -> None:
    """Reduce a contiguous array of sizes ``[outer, length, inner]``; see `Reduction`."""
    run_columns(REDUCE, x, out, ReductionJob.fill(**column_sizes(sizes), code=code, divisor=divisor))


def softmax_columns(x: Array, out: Array, sizes: Sizes) -> None:
    """Compute softmax along the axis in the middle of a contiguous array of sizes ``[outer, length, inner]``."""
    run_columns(SOFTMAX_COLUMNS, x, out, ColumnsJob.fill(**column_sizes(sizes)))
