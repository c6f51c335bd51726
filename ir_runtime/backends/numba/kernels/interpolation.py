"""Interpolation over two spatial axes in NHWC layout, in one pass over the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....kernels.resample import Taps
from ....ops.image.interpolate import Interpolate4, Interpolate11
from ... import Kernel
from ...common.interpolation import ResizePlan, resize, resize_kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64, keeping
from ..codegen.language import instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_i64, store_i64
from ..codegen.vectors import F32, I64, Emit, Load, Store
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args

__all__ = ["blend"]

# Multiplications from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 17
# Taps of an element, along both axes, beyond which one axis after the other is faster.
MAX_TAPS = 36


@instruction(*[types.int64] * 8)
def blend(  # noqa: PLR0913 (values in registers)
    emit: Emit, out: ir.Value, lines: ir.Value, weights: ir.Value, tall: ir.Value, columns: ir.Value, factors: ir.Value,
    wide: ir.Value, count: ir.Value,
) -> None:  # fmt: skip
    """Compute the channels of one element: a weighted sum of ``tall`` rows of ``wide`` columns each.

    ``lines`` are addresses of rows with ``weights``; ``columns`` are byte offsets with ``factors``.
    """
    none = emit.constant(0)

    def at(place: ir.Value, index: ir.Value, kind: ir.Type, size: int) -> ir.Value:
        return emit.load(emit.at(place, emit.builder.mul(index, emit.i64(size))), kind)

    def body(offset: ir.Value, load: Load, store: Store) -> None:
        with emit.loop(tall, [none]) as (i, (total,), below):
            row = emit.at(at(lines, i, I64, 8), offset)
            with emit.loop(wide, [none]) as (j, (part,), following):
                found = load(emit.at(row, at(columns, j, I64, 8)))
                following.append(emit.fma(emit.splat(at(factors, j, F32, 4)), found, part))
            below.append(emit.fma(emit.splat(at(weights, i, F32, 4)), following[0], total))
        store(below[0], emit.at(out, offset))

    emit.vector_loop(count, body)


class ResizeJob(Descriptor):
    """The job of `RESIZE`: sizes, taps per element along both axes, and addresses of byte offsets and weights."""

    image_bytes: i64
    channels: i64
    rows: i64
    image_rows: i64
    columns: i64
    height_taps: i64
    width_taps: i64
    row_offsets: i64
    row_weights: i64
    column_offsets: i64
    column_weights: i64


def _resize(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    image, channels = load_i64(job, ResizeJob.image_bytes), load_i64(job, ResizeJob.channels)
    count, lines, columns = (
        load_i64(job, ResizeJob.rows),
        load_i64(job, ResizeJob.image_rows),
        load_i64(job, ResizeJob.columns),
    )
    tall, wide, rows, weights = (
        load_i64(job, ResizeJob.height_taps),
        load_i64(job, ResizeJob.width_taps),
        load_i64(job, ResizeJob.row_offsets),
        load_i64(job, ResizeJob.row_weights),
    )
    places, factors = load_i64(job, ResizeJob.column_offsets), load_i64(job, ResizeJob.column_weights)
    table = alloc(8 * tall)
    index = fetch_add(counter)
    while index < count:
        n = index // lines
        h = index - n * lines
        for i in range(tall):
            store_i64(table, i, x + n * image + load_i64(rows, h * tall + i))
        target = out + index * columns * 4 * channels
        for w in range(columns):
            blend(
                target + w * 4 * channels, table, weights + 4 * h * tall, tall, places + 8 * w * wide,
                factors + 4 * w * wide, wide, channels,
            )  # fmt: skip
        index = fetch_add(counter)
    free(table)


RESIZE = Task(_resize)
"""Compute rows of the results of all images."""


@backend.accelerates(Interpolate4, Interpolate11)
def interpolation(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """f32 over two spatial axes."""
    if not is_f32(data) or data.shape.rank != 4:
        return None
    RESIZE.prepare()
    return resize_kernel(op, _kernel)


def _kernel(plan: ResizePlan) -> Callable[[Array], Array]:
    axes = [next((step for step in plan.steps if step.number == axis), None) for axis in (1, 2)]
    taps = math.prod(1 if step is None else len(step) for step in axes)
    if not plan.steps or taps > MAX_TAPS:
        return partial(resize, plan)
    images, height, width, channels = plan.before
    row = 4 * channels * width
    tall, wide = (
        _taps(step, length, size)
        for step, length, size in zip(axes, (height, width), (row, 4 * channels), strict=True)
    )
    job = ResizeJob.fill(
        image_bytes=row * height, channels=channels, rows=images * plan.after[1], image_rows=plan.after[1],
        columns=plan.after[2], height_taps=tall[0].shape[1], width_taps=wide[0].shape[1],
        row_offsets=tall[0].ctypes.data, row_weights=tall[1].ctypes.data,
        column_offsets=wide[0].ctypes.data, column_weights=wide[1].ctypes.data,
    )  # fmt: skip
    work = math.prod(plan.after) * taps

    def run(rows: Array) -> Array:
        y = np.empty(plan.after, np.float32)
        shared = threads() if work >= MIN_PARALLEL_WORK else 1
        parallel_for(RESIZE.address, job, y.reshape(-1), contiguous(rows), UNUSED, UNUSED, shared)
        return y

    return keeping(run, tall, wide)


def _taps(step: Taps | None, length: int, size: int) -> tuple[Array, Array]:
    """Return the byte offsets of the taps of each element, and their weights; an unchanged axis has one tap."""
    if step is None:
        return np.arange(length, dtype=np.int64)[:, None] * size, np.ones((length, 1), np.float32)
    return np.ascontiguousarray(step.index * size, np.int64), np.ascontiguousarray(step.weight, np.float32)
