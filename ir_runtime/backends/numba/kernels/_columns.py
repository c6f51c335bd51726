"""Reductions and softmax of tensors ``[outer, length, inner]`` along the axis in the middle: vectors of columns."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from functools import partial

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import fetch_add, load_i64
from ..codegen.vectors import LANES, VECTOR, Emit, Load, Store, Value
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args
from ._activation_code import exp

__all__ = ["REDUCE", "SOFTMAX_COLUMNS", "Reduction", "reduce_columns", "softmax_columns"]

# Elements of a unit of work, and from how many on several threads are faster.
UNIT_SIZE = 1 << 12
MIN_PARALLEL_WORK = 1 << 15
# Sums are accumulated in f64, as in the reference.
F64 = ir.DoubleType()
DOUBLES = ir.VectorType(F64, LANES)


class Reduction(IntEnum):
    """What columns are reduced to."""

    MEAN = 0
    """The sum, divided by a number: for sums 1."""
    MAXIMUM = 1
    """The maximum, at least the lowest finite number; NaN is passed over."""
    MINIMUM = 2
    """The minimum; NaN is passed over."""


class ColumnsJob(Descriptor):
    """The job of `REDUCE` and `SOFTMAX_COLUMNS`.

    ``block`` is the number of columns of a unit, if ``inner`` is 1 that of elements of ``outer``; ``code`` is a `Reduction`.
    """

    outer: i64
    length: i64
    inner: i64
    block: i64
    code: i64
    divisor: i64


def _widened(emit: Emit, x: Value) -> Value:
    return emit.builder.fpext(x, DOUBLES)


def _extreme(sign: str, emit: Emit, so_far: Value, x: Value) -> Value:
    return emit.builder.select(emit.builder.fcmp_ordered(sign, x, so_far), x, so_far)


_STEPS: dict[Reduction, Callable[[Emit, Value, Value], Value]] = {
    Reduction.MEAN: lambda emit, so_far, x: emit.builder.fadd(so_far, _widened(emit, x)),
    Reduction.MAXIMUM: partial(_extreme, ">"),
    Reduction.MINIMUM: partial(_extreme, "<"),
}


def _start(emit: Emit, code: Reduction) -> Value:
    if code is Reduction.MEAN:
        return ir.Constant(DOUBLES, [0.0] * LANES)
    return emit.constant(float(np.finfo(np.float32).min) if code is Reduction.MAXIMUM else float("inf"))


@instruction(*[types.int64] * 7)
def _reduce_columns(
    emit: Emit, code: Value, x: Value, stride: Value, length: Value, count: Value, out: Value, divisor: Value
) -> None:  # fmt: skip
    """Reduce ``count`` columns of ``length`` elements, which are ``stride`` bytes apart."""
    builder = emit.builder

    def go(code: Reduction) -> None:
        def body(offset: Value, load: Load, store: Store) -> None:
            with emit.loop(length, [emit.at(x, offset), _start(emit, code)]) as (_, (at, so_far), following):
                following += [emit.at(at, stride), _STEPS[code](emit, so_far, load(at))]
            found = following[1]
            if code is Reduction.MEAN:
                parts = emit.builder.sitofp(divisor, F64)
                same = ir.Constant(DOUBLES, ir.Undefined)
                for lane in range(LANES):
                    same = builder.insert_element(same, parts, ir.Constant(ir.IntType(32), lane))
                found = builder.fptrunc(builder.fdiv(found, same), emit.constant(0).type)
            store(found, emit.at(out, offset))

        emit.vector_loop(count, body)

    emit.switch(code, {c: partial(go, c) for c in Reduction})


@instruction(*[types.int64] * 5)
def _reduce_row(emit: Emit, code: Value, x: Value, count: Value, out: Value, divisor: Value) -> None:
    """Reduce ``count`` elements that are next to each other."""
    builder = emit.builder

    def go(code: Reduction) -> None:
        step = partial(_STEPS[code], emit)
        whole = builder.sdiv(count, emit.i64(LANES))
        with emit.loop(whole, [x, _start(emit, code)]) as (_, (at, so_far), following):
            following += [emit.at(at, 4 * LANES), step(so_far, emit.load(at))]
        at, so_far = following
        rest = builder.sub(count, builder.mul(whole, emit.i64(LANES)))

        def last() -> list[Value]:
            load, _ = emit.masked_access(rest)
            return [builder.select(emit.lane_mask(rest), step(so_far, load(at)), so_far)]

        (so_far,) = emit.if_else(builder.icmp_signed(">", rest, emit.i64(0)), last, lambda: [so_far])
        if code is Reduction.MEAN:
            sum = emit.reduce(so_far, builder.fadd)
            found = builder.fptrunc(builder.fdiv(sum, builder.sitofp(divisor, F64)), ir.FloatType())
        else:
            found = emit.reduce(so_far, partial(_extreme, ">" if code is Reduction.MAXIMUM else "<", emit))
        emit.store(found, out)

    emit.switch(code, {c: partial(go, c) for c in Reduction})


@instruction(*[types.int64] * 5)
def _softmax_columns(emit: Emit, x: Value, stride: Value, length: Value, count: Value, out: Value) -> None:
    """Compute softmax along ``count`` columns of ``length`` elements, which are ``stride`` bytes apart."""

    def body(offset: Value, load: Load, store: Store) -> None:
        source, target = emit.at(x, offset), emit.at(out, offset)
        with emit.loop(length, [source, emit.constant(float("-inf"))]) as (_, (at, so_far), following):
            following += [emit.at(at, stride), _extreme(">", emit, so_far, load(at))]
        top = following[1]
        with emit.loop(length, [source, target, _start(emit, Reduction.MEAN)]) as (
            _,
            (at, to, sum),
            following,
        ):
            power = exp(emit, emit.subtract(load(at), top))
            store(power, to)
            following += [emit.at(at, stride), emit.at(to, stride), _STEPS[Reduction.MEAN](emit, sum, power)]
        factor = emit.divide(emit.constant(1), emit.builder.fptrunc(following[2], VECTOR))
        with emit.loop(length, [target]) as (_, (to,), following):
            store(emit.multiply(load(to), factor), to)
            following.append(emit.at(to, stride))

    emit.vector_loop(count, body)


@device
def _load_sizes(job: int) -> tuple[int, int, int, int]:
    """Load the lengths of A ``[outer, length, inner]``, and the number of columns of a unit."""
    return (
        load_i64(job, ColumnsJob.outer),
        load_i64(job, ColumnsJob.length),
        load_i64(job, ColumnsJob.inner),
        load_i64(job, ColumnsJob.block),
    )


def _reduce(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    outer, length, inner, block = _load_sizes(job)
    code, divisor = load_i64(job, ColumnsJob.code), load_i64(job, ColumnsJob.divisor)
    unit = fetch_add(counter)
    if inner == 1:
        while unit * block < outer:
            for row in range(unit * block, min((unit + 1) * block, outer)):
                _reduce_row(code, x + 4 * length * row, length, out + 4 * row, divisor)
            unit = fetch_add(counter)
        return
    across = (inner + block - 1) // block
    while unit < outer * across:
        row = unit // across
        column = (unit - row * across) * block
        _reduce_columns(
            code, x + 4 * (row * length * inner + column), 4 * inner, length, min(block, inner - column),
            out + 4 * (row * inner + column), divisor,
        )  # fmt: skip
        unit = fetch_add(counter)


REDUCE = Task(_reduce)
"""Reduce A ``[outer, length, inner]`` to ``[outer, inner]``."""


def _softmax(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    outer, length, inner, block = _load_sizes(job)
    across = (inner + block - 1) // block
    unit = fetch_add(counter)
    while unit < outer * across:
        row = unit // across
        column = (unit - row * across) * block
        at = 4 * (row * length * inner + column)
        _softmax_columns(x + at, 4 * inner, length, min(block, inner - column), out + at)
        unit = fetch_add(counter)


SOFTMAX_COLUMNS = Task(_softmax)
"""Compute softmax of A ``[outer, length, inner]`` along the axis in the middle."""


def reduce_columns(x: Array, out: Array, sizes: tuple[int, int, int], code: int, divisor: int) -> None:
    """Reduce a contiguous array of sizes ``[outer, length, inner]``; see `Reduction`."""
    _run(REDUCE, x, out, sizes, code, divisor)


def softmax_columns(x: Array, out: Array, sizes: tuple[int, int, int]) -> None:
    """Compute softmax along the axis in the middle of a contiguous array of sizes ``[outer, length, inner]``."""
    _run(SOFTMAX_COLUMNS, x, out, sizes, 0, 1)


def _run(task: Task, x: Array, out: Array, sizes: tuple[int, int, int], code: int, divisor: int) -> None:
    outer, length, inner = sizes
    some = max(UNIT_SIZE // length, 1)
    job = ColumnsJob.fill(
        outer=outer, length=length, inner=inner, block=some if inner == 1 else -(-some // LANES) * LANES, code=code,
        divisor=divisor,
    )  # fmt: skip
    parallel_for(task.address, job, out, x, UNUSED, UNUSED, threads() if x.size >= MIN_PARALLEL_WORK else 1)
