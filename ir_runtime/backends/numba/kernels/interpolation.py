"""Maps of channels resized along their spatial axes, in one pass over the result."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ....ir.tensor import Array, Value
from ....kernels.resample import Taps
from ....ops.image.interpolate import Interpolate4, Interpolate11
from ... import Kernel
from ...common.interpolation import ResizePlan, resize, resize_kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen.language import instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_i64, store_i64
from ..codegen.vectors import F32, I64, Emit, Load, Store
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, contiguous, load_args

__all__ = ["blend"]

# Multiplications that are worth a second thread.
WORTH = 1 << 17
# Neighbours of an element, along both axes, beyond which one axis after the other is faster.
MOST = 36

Number = Any


@instruction(*[types.int64] * 8)
def blend(
    emit: Emit, out: Number, lines: Number, weights: Number, tall: Number, columns: Number, factors: Number,
    wide: Number, count: Number,
) -> None:  # fmt: skip
    """The channels of one element: weighted sums over some rows, of some columns each.

    Arguments: the result; addresses of rows, their weights, how many; offsets of columns, their weights, how
    many; channels.
    """
    none = emit.constant(0)

    def at(place: Number, index: Number, kind: Any, size: int) -> Number:
        return emit.load(emit.at(place, emit.builder.mul(index, emit.i64(size))), kind)

    def body(offset: Number, load: Load, store: Store) -> None:
        with emit.loop(tall, [none]) as (i, (total,), below):
            row = emit.at(at(lines, i, I64, 8), offset)
            with emit.loop(wide, [none]) as (j, (part,), following):
                found = load(emit.at(row, at(columns, j, I64, 8)))
                following.append(emit.fma(emit.splat(at(factors, j, F32, 4)), found, part))
            below.append(emit.fma(emit.splat(at(weights, i, F32, 4)), following[0], total))
        store(below[0], emit.at(out, offset))

    emit.vector_loop(count, body)


def _resize(call: int) -> None:
    job, out, x, _, _, counter = load_args(call)
    image, channels = load_i64(job, 0), load_i64(job, 1)
    count, lines, columns = load_i64(job, 2), load_i64(job, 3), load_i64(job, 4)
    tall, wide, rows, weights = load_i64(job, 5), load_i64(job, 6), load_i64(job, 7), load_i64(job, 8)
    places, factors = load_i64(job, 9), load_i64(job, 10)
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
"""Takes rows of the result through all images.

Its job: bytes of an image, channels; rows of the result through all images, of one image, and their elements;
neighbours along both axes; addresses of the offsets of rows in bytes and of their weights, and those of columns.
"""


@backend.accelerates(Interpolate4, Interpolate11)
def interpolation(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """f32 over two spatial axes."""
    if not is_f32(data) or data.shape.rank != 4:
        return None
    RESIZE.prepare()
    return resize_kernel(op, _planned)


def _planned(plan: ResizePlan) -> Callable[[Array], Array]:
    axes = [next((step for step in plan.steps if step.number == axis), None) for axis in (1, 2)]
    taps = math.prod(1 if step is None else len(step) for step in axes)
    if not plan.steps or taps > MOST:
        return partial(resize, plan)
    images, height, width, channels = plan.before
    row = 4 * channels * width
    tall, wide = (
        _neighbours(step, length, size)
        for step, length, size in zip(axes, (height, width), (row, 4 * channels), strict=True)
    )
    words = [
        row * height, channels, images * plan.after[1], *plan.after[1:3], tall[0].shape[1], wide[0].shape[1],
        *(array.ctypes.data for array in (*tall, *wide)),
    ]  # fmt: skip
    job, kept = np.array(words, np.int64), (tall, wide)
    work = math.prod(plan.after) * taps

    def run(rows: Array) -> Array:
        y = np.empty(plan.after, np.float32)
        shared = threads() if work >= WORTH else 1
        parallel_for(RESIZE.address, job, y.reshape(-1), contiguous(rows), UNUSED, UNUSED, shared)
        return y

    run.kept = kept  # type: ignore[attr-defined]
    return run


def _neighbours(step: Taps | None, length: int, size: int) -> tuple[Array, Array]:
    """For each place its neighbours, in bytes, and their weights; an axis that stays has one for each."""
    if step is None:
        return np.arange(length, dtype=np.int64)[:, None] * size, np.ones((length, 1), np.float32)
    return np.ascontiguousarray(step.index * size, np.int64), np.ascontiguousarray(step.weight, np.float32)
