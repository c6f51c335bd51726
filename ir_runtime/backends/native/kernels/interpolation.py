"""Interpolation over two spatial axes in NHWC layout: each result row along the height, then along the width.

Along the width, a vector holds channels of one pixel. Images with few channels, and planes of channels-first
maps, instead gather vectors by a table with the index and weight of each tap of each element of a result row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TypeAlias

import numpy as np

from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, Value
from ....ops.image import Interpolate4, Interpolate11
from ....ops.kernels.resample import Taps
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64, scratch_memory
from ..codegen.vectors import F32, I64, INTS, LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit
from ._copy import contiguous

__all__: list[str] = []

MODES = ("nearest", "linear", "linear_onnx", "cubic")
# Number of shapes whose plans are cached.
MAX_PLANS = 32


class _Layout(Enum):
    """The memory layout of a rank-4 tensor to resize."""

    IMAGE = 0
    """Contiguous ``[N, height, width, C]``."""
    CHANNELS_LAST = 1
    """``[N, C, height, width]``, stored channels-last."""
    PLANES = 2
    """Contiguous ``[N, C, height, width]``; each plane counts as an image."""

    @property
    def before_height(self) -> int:
        """The number of axes between the batch axis and the height."""
        return 0 if self is _Layout.IMAGE else 1

    def image(self, shape: Sequence[int]) -> tuple[int, ...]:
        """Return the lengths ``[N, height, width, C]`` for a tensor shape."""
        if self is _Layout.PLANES:
            return (shape[0] * shape[1], *shape[2:], 1)
        return tuple(shape) if self is _Layout.IMAGE else (shape[0], *shape[2:], shape[1])


@dataclass(frozen=True)
class _ResizePlan:
    """A plan for resizing feature maps of one shape.

    Args:
        before: the shape of the data, ``[N, height, width, C]``.
        after: the shape of the result, likewise.
        steps: the taps along height and width (axes 1 and 2), if these are resized.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    steps: tuple[Taps, ...]


Resize: TypeAlias = Callable[[Array], Array]
"""A function that resizes contiguous ``[N, height, width, C]``."""


def _resize_kernel(op: Interpolate4 | Interpolate11) -> Kernel | None:
    """Return a kernel that resizes height and width; padding and other axes are left to the reference."""
    if op.mode not in MODES or any(op.pads_begin + op.pads_end):
        return None
    axes_input = 2 if isinstance(op, Interpolate4) else 1
    target_input = 1 if axes_input == 2 and op.shape_calculation_mode == "scales" else 0
    resizes: dict[tuple[object, ...], tuple[Resize, _Layout] | None] = {}

    def kernel(x: Array, *others: Array) -> Array:
        target, axes = others[target_input], others[axes_input] if len(others) > axes_input else None
        stored = x.flags.c_contiguous, channels_last(x).flags.c_contiguous
        key = (x.shape, stored, target.tobytes(), None if axes is None else axes.tobytes())
        if key not in resizes:
            if len(resizes) >= MAX_PLANS:
                resizes.clear()
            plan = _plan(op, x.shape, stored, target, axes) if x.size else None
            resizes[key] = None if plan is None else (_make_resize(plan[0]), plan[1])
        resize = resizes[key]
        if resize is None:
            return op.evaluate(x, *others)
        run, layout = resize
        if layout is _Layout.CHANNELS_LAST:
            return channels_first(run(channels_last(x)))
        if layout is _Layout.IMAGE:
            return run(x)
        y = run(x.reshape(-1, *x.shape[2:], 1))
        return y.reshape(*x.shape[:2], *y.shape[1:3])

    return Kernel(kernel)


def _plan(
    op: Interpolate4 | Interpolate11,
    shape: tuple[int, ...],
    stored: tuple[bool, bool],
    target: Array,
    axes: Array | None,
) -> tuple[_ResizePlan, _Layout] | None:
    """Return the plan for a tensor, and the tensor's memory layout.

    Returns ``None`` if axes other than height and width are resized, or if the result is empty.

    Args:
        op: the operation.
        shape: the shape of the data.
        stored: whether the data is contiguous, and whether it is channels-last.
        target: the sizes or scales.
        axes: the axes of ``target``; ``None`` for all.
    """
    data = Value.unknown(ElementType.f32, PartialShape(shape))
    after = op.shape(data, Value.constant(target), None if axes is None else Value.constant(axes)).static
    steps = op.filter().steps(op.plan(shape, after, target, axes))
    numbers = {step.number for step in steps}
    if 0 in after:
        return None
    layout = _choose_layout(stored, numbers)
    if layout is None:
        return None
    moved = [
        replace(step.normalize() if op.mode == "linear" else step, number=step.number - layout.before_height)
        for step in steps
    ]
    before, result = (layout.image(lengths) for lengths in (shape, after))
    return _ResizePlan(before, result, tuple(moved)), layout


def _choose_layout(stored: tuple[bool, bool], numbers: Set[int]) -> _Layout | None:
    """Return the layout of a tensor whose axes ``numbers`` are resized; ``stored`` is as in `_plan`.

    Returns ``None`` if these axes are not height and width, or if the tensor is neither contiguous nor channels-last.
    """
    if stored[0] and not stored[1] and numbers <= {1, 2}:
        return _Layout.IMAGE
    if not numbers <= {2, 3}:
        return None
    if stored[1]:
        return _Layout.CHANNELS_LAST
    return _Layout.PLANES if stored[0] else None


@instruction(*[types.int64] * 6)
def _weighted_sum(
    emit: Emit, out: ir.Value, base: ir.Value, offsets: ir.Value, weights: ir.Value, taps: ir.Value, count: ir.Value
) -> None:  # fmt: skip
    """Compute the weighted sum of ``taps`` rows of ``count`` elements.

    ``offsets`` and ``weights`` are the addresses of the rows' byte offsets from ``base``, i64, and of their weights, f32.
    """
    builder = emit.builder

    def row(tap: ir.Value) -> tuple[ir.Value, ir.Value]:
        start = emit.load(emit.at(offsets, builder.mul(tap, emit.i64(8))), I64)
        weight = emit.load(emit.at(weights, builder.mul(tap, emit.i64(4))), F32)
        return emit.at(base, start), emit.splat(weight)

    def few(number: int) -> None:
        (first, factor), *others = [row(emit.i64(tap)) for tap in range(number)]

        for offset, load, store in emit.vectors(count):
            total = emit.multiply(factor, load(emit.at(first, offset)))
            for start, weight in others:
                total = emit.fma(weight, load(emit.at(start, offset)), total)
            store(total, emit.at(out, offset))

    def many() -> None:
        for offset, load, store in emit.vectors(count):
            with emit.loop(taps, [emit.constant(0)]) as (tap, (total,), following):
                start, weight = row(tap)
                following.append(emit.fma(weight, load(emit.at(start, offset)), total))
            store(following[0], emit.at(out, offset))

    kind = builder.select(builder.icmp_signed("<", taps, emit.i64(3)), taps, emit.i64(3))
    emit.switch(kind, {1: partial(few, 1), 2: partial(few, 2), 3: many})


@instruction(*[types.int64] * 7)
def _gather_sum(
    emit: Emit, out: ir.Value, row: ir.Value, places: ir.Value, weights: ir.Value, taps: ir.Value, apart: ir.Value,
    count: ir.Value,
) -> None:  # fmt: skip
    """Compute ``count`` weighted sums of gathered elements of a row.

    The tables at ``places`` and ``weights`` hold the index and the weight of the first tap of each sum, then,
    ``apart`` bytes later, of the second tap, and so on, each padded to whole vectors.
    """
    builder = emit.builder

    def term(at: ir.Value) -> tuple[ir.Value, ir.Value]:
        return emit.gather(row, emit.load(emit.at(places, at), INTS)), emit.load(emit.at(weights, at))

    for offset, _, store in emit.vectors(count):
        value, weight = term(offset)
        with emit.loop(builder.sub(taps, emit.i64(1)), [offset, emit.multiply(value, weight)]) as (
            _,
            (before, total),
            following,
        ):
            at = emit.at(before, apart)
            value, weight = term(at)
            following += [at, emit.fma(weight, value, total)]
        store(following[1], emit.at(out, offset))


class ResizeJob(Descriptor):
    """Parameters of `_resize`: sizes, taps per element along both axes, and addresses of byte offsets and weights.

    ``sums_rows`` says whether a result row is a sum of data rows rather than a copy of one; ``width_taps`` is
    0 if the width is unchanged. If ``gathers`` is not 0, elements along the width are gathered, and it is the
    byte distance between the tables of successive taps, both of indices (i32) and of weights.
    """

    image_bytes: i64
    row_elements: i64
    channels: i64
    rows: i64
    image_rows: i64
    columns: i64
    sums_rows: i64
    height_taps: i64
    width_taps: i64
    row_offsets: i64
    row_weights: i64
    column_offsets: i64
    column_weights: i64
    gathers: i64


@Task
def _resize(call: int, job: ResizeJob, out: int, x: int) -> None:
    """Resize along the height, then along the width; a work unit is a row of the result."""
    lines, length = job.image_rows, job.row_elements
    channels, columns = job.channels, job.columns
    tall, wide = job.height_taps, job.width_taps
    places, factors = job.column_offsets, job.column_weights
    gathers = job.gathers
    scratch = scratch_memory(4 * length)
    rows = job.rows
    for index in each_unit(call, rows):
        n = index // lines
        first = (index - n * lines) * tall
        image, target = x + n * job.image_bytes, out + index * columns * 4 * channels
        offsets = job.row_offsets + 8 * first
        weights = job.row_weights + 4 * first
        row = image + load_i64(offsets, 0)
        if job.sums_rows != 0 or wide == 0:
            row = scratch if wide > 0 else target
            _weighted_sum(row, image, offsets, weights, tall, length)
        if wide > 0 and gathers != 0:
            _gather_sum(target, row, places, factors, wide, gathers, columns * channels)
        elif wide > 0:
            for w in range(columns):
                _weighted_sum(target, row, places + 8 * w * wide, factors + 4 * w * wide, wide, channels)
                target += 4 * channels


@backend.accelerates(Interpolate4, Interpolate11)
def interpolation(op: Interpolate4 | Interpolate11, data: Value, *others: Value) -> Kernel | None:
    """Return an Interpolate kernel for f32 of rank 4, resized along height and width."""
    if not is_f32(data) or data.shape.rank != 4:
        return None
    _resize.prepare()
    kernel = _resize_kernel(op)
    fixed = all(value.known() is not None for value in others)
    return replace(kernel, replay=replayed()) if kernel is not None and fixed else kernel


def _make_resize(plan: _ResizePlan) -> Resize:
    if not plan.steps:
        return lambda rows: rows
    images, height, width, channels = plan.before
    by_axis = {step.number: step for step in plan.steps}
    tall = _taps(by_axis.get(1), height, 4 * channels * width)
    wide = _taps(by_axis.get(2), width, 4 * channels)
    taps = tall[1].shape[1], wide[1].shape[1]
    gathers = 2 in by_axis and channels < LANES
    if gathers:
        wide = _gather_tables(by_axis[2], channels)
    job = ResizeJob.fill(
        image_bytes=4 * channels * width * height, row_elements=width * channels, channels=channels,
        rows=images * plan.after[1], image_rows=plan.after[1], columns=plan.after[2],
        sums_rows=taps[0] > 1 or bool((tall[1] != 1).any()), height_taps=taps[0],
        width_taps=taps[1] if 2 in by_axis else 0, row_offsets=tall[0], row_weights=tall[1],
        column_offsets=wide[0], column_weights=wide[1], gathers=wide[1].strides[0] if gathers else 0,
    )  # fmt: skip
    work = images * plan.after[1] * channels * (width * taps[0] + plan.after[2] * taps[1])

    def run(rows: Array) -> Array:
        y = empty(plan.after, np.float32)
        shared = threads_for(computed=work)
        parallel_for(_resize.address, job, y.reshape(-1), contiguous(rows), UNUSED, UNUSED, shared)
        return y

    return run


def _taps(step: Taps | None, length: int, size: int) -> tuple[Array, Array]:
    """Return the byte offsets and weights of each element's taps; an unchanged axis has one tap."""
    if step is None:
        return np.arange(length, dtype=np.int64)[:, None] * size, np.ones((length, 1), np.float32)
    return np.ascontiguousarray(step.index * size, np.int64), np.ascontiguousarray(step.weight, np.float32)


def _gather_tables(step: Taps, channels: int) -> tuple[Array, Array]:
    """Return the indices of the taps of each element of a row, ``[taps, elements]``, and their weights.

    Both are padded to whole vectors.
    """
    places = step.index.T[:, :, None] * channels + np.arange(channels)
    weights = np.repeat(step.weight.T[:, :, None], channels, 2)
    count = places[0].size
    filled = (0, 0), (0, -count % LANES)
    return (
        np.ascontiguousarray(np.pad(places.reshape(-1, count), filled), np.int32),
        np.ascontiguousarray(np.pad(weights.reshape(-1, count), filled), np.float32),
    )
