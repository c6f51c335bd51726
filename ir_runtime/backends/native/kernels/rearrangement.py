"""Reshape, Roll, and rearrangements of batch, depth and space, as copies that recorded runs can replay."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import TypeAlias

import numpy as np

from ....errors import IRError
from ....ir.element import ElementType
from ....ir.shape import PartialShape
from ....ir.tensor import Array, TensorType, Value
from ....ops import Op
from ....ops.detection.yolo import ReorgYolo
from ....ops.movement.blocks import BatchToSpace, DepthToSpace, SpaceToBatch, SpaceToDepth
from ....ops.movement.reorder import Roll
from ....ops.shape import Reshape
from ... import Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import I32, LANES, Emit
from ..threading.capture import replayed
from ..threading.parallel import is_recording, parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_chunk
from ._copy import COPY, MIN_SIZE, SIZES, contiguous, copy, is_view
from ._windows import F32_SIZE
from .padding import pad_images

__all__: list[str] = []

# Minimum rank of data that may be transposed, so that its reshape copies; and minimum elements for a copy by a task. Smaller
# reshapes use the kernel of views, which all shapes share.
MIN_RANK, MIN_COPY = 2, 48
MAP_RANK = 4

_Shape: TypeAlias = tuple[int, ...]
_Region: TypeAlias = tuple[slice, ...]


# Pixels of a unit.
ROWS_PER_UNIT = 64


class ShuffleJob(Descriptor):
    """Parameters of `_shuffle`: pixels (``rows``), and channels of a group."""

    rows: i64
    half_channels: i64


@instruction(types.int64, types.int64, types.int64)
def _interleave(emit: Emit, x: ir.Value, other: ir.Value, y: ir.Value) -> None:
    """Interleave the vectors at two addresses."""
    first, second = emit.load(x), emit.load(other)
    for part in range(2):
        picked = [place // 2 + LANES * (place % 2) for place in range(part * LANES, (part + 1) * LANES)]
        mask = ir.Constant(ir.VectorType(I32, LANES), picked)
        emit.store(emit.builder.shuffle_vector(first, second, mask), emit.at(y, 4 * LANES * part))


@device
def _shuffle_row(x: int, y: int, half: int) -> None:
    for c in range(0, half, LANES):
        at = F32_SIZE * min(c, half - LANES)
        _interleave(x + at, x + F32_SIZE * half + at, y + 2 * at)


@Task
def _shuffle(call: int, job: ShuffleJob, y: int, x: int) -> None:
    """Interleave the two channel groups of each pixel; a work unit is `ROWS_PER_UNIT` pixels."""
    count, half = job.rows, job.half_channels
    for start, end in each_chunk(call, count, ROWS_PER_UNIT):
        for index in range(start, end):
            at = F32_SIZE * 2 * half * index
            _shuffle_row(x + at, y + at, half)


@backend.accelerates(Reshape)
def shuffle(op: Reshape, data: Value, shape: Value) -> Kernel | None:
    """Return a Reshape kernel for f32 ``[N, C/2, 2, H, W]`` stored as ``[N, H, W, 2, C/2]``.

    It interleaves the two channel groups, as in a channel shuffle.
    """
    target = shape.known()
    dims = data.shape
    if data.element is not ElementType.f32 or target is None or target.size != 4 or dims.rank != 5:
        return None
    if not (dims[1].is_static and dims[1].min >= LANES and dims[2] == 2):
        return None

    @lru_cache(maxsize=16)
    def result(lengths: tuple[int, ...]) -> tuple[int, ...]:
        return op.infer(Value(TensorType(ElementType.f32, PartialShape(lengths))), shape).static

    def kernel(x: Array, _: Array) -> Array:
        images, half, groups, height, width = x.shape
        stored = x.transpose(0, 3, 4, 2, 1)
        if not stored.flags.c_contiguous or result(x.shape) != (images, half * groups, height, width):
            return op.evaluate(x, target)
        y = empty((images, height, width, groups * half), np.float32)
        job = ShuffleJob.fill(rows=images * height * width, half_channels=half)
        shared = threads_for(moved=2 * y.nbytes)
        parallel_for(_shuffle.address, job, y, contiguous(stored), UNUSED, UNUSED, shared)
        return channels_first(y)

    return Kernel(kernel)


@backend.accelerates(Reshape)
def reshape(op: Reshape, data: Value, shape: Value) -> Kernel | None:
    """Return a Reshape kernel for static shapes of several axes.

    The result is a view if possible, else a copy; channels-last maps stay channels-last.
    """
    constant, rank = shape.known(), data.shape.rank or 0
    if data.element.dtype.itemsize not in SIZES or data.element.dtype.hasobject:
        return None
    if constant is None or rank < MIN_RANK or not data.shape.is_static:
        return None
    lengths = data.shape.static
    if np.prod(lengths) < MIN_COPY:
        return None
    is_large = is_f32(data) and np.prod(lengths) >= MIN_SIZE  # else NumPy copies as fast
    try:
        target = op.infer(data, shape).static
    except IRError:
        return None  # the operation raises it when it runs

    def kernel(x: Array, _: Array) -> Array:
        if x.shape != lengths:
            return op.evaluate(x, constant)
        if x.flags.c_contiguous or not (is_large or is_recording()) or is_view(x, target):
            return x.reshape(target)
        result = _channels_last_copy(x, target) if is_f32(data) else None
        return contiguous(x).reshape(target) if result is None else result

    COPY.prepare()
    return Kernel(kernel, replay=replayed(alone=False))


def _channels_last_copy(x: Array, target: _Shape) -> Array | None:
    """Reshape ``x`` to the shape ``target`` of a feature map, as a copy in channels-last memory.

    Return ``None`` if channels are few or not last in the memory of ``x``, or if there are too many axes to copy.
    """
    order = _channels_last_order(x.shape, x.strides, target)
    if order is None:
        return None
    view = x.transpose(order)
    y = empty(view.shape, view.dtype)
    if not copy(view, y, np.inf):
        return None
    return channels_first(y.reshape(target[0], *target[2:], target[1]))


@lru_cache(maxsize=256)
def _channels_last_order(shape: _Shape, strides: _Shape, target: _Shape) -> _Shape | None:
    """Return the axis order of a copy to a channels-last map; ``None`` if channels are few or not last in the data.

    Channels are last if the first axis merged into them has a smaller stride than the first axis merged into
    each spatial axis.
    """
    groups = _group_axes(shape, target)
    if groups is None or len(target) < MAP_RANK or target[1] < LANES:
        return None
    _, channels, *spatial = [[strides[axis] for axis in group if shape[axis] != 1] for group in groups]
    steps = [group[0] for group in spatial if group]
    if not channels or not steps or channels[0] >= min(steps):
        return None
    return tuple(axis for group in (groups[0], *groups[2:], groups[1]) for axis in group)


def _group_axes(shape: _Shape, target: _Shape) -> list[list[int]] | None:
    """Return the source axes that each target axis merges; ``None`` if the reshape splits an axis."""
    groups, axis = list[list[int]](), 0
    for length in target:
        group, size = list[int](), 1
        while axis < len(shape) and size * shape[axis] <= length:
            size *= shape[axis]
            group.append(axis)
            axis += 1
        if size != length:
            return None
        groups.append(group)
    groups[-1] += range(axis, len(shape))  # trailing axes of length 1
    return groups


@backend.accelerates(Roll)
def roll(op: Roll, data: Value, shift: Value, axes: Value) -> Kernel | None:
    """Return a Roll kernel for f32 of static shape with constant shifts, which copies each contiguous piece."""
    shifts, along = shift.known(), axes.known()
    if not is_f32(data) or shifts is None or along is None or not data.shape.is_static:
        return None
    shape = data.shape.static
    if not data.shape.rank or np.prod(shape) < MIN_SIZE:
        return None
    pieces = list(_pieces(shape, *np.broadcast_arrays(shifts, np.atleast_1d(along))))
    COPY.prepare()

    def kernel(x: Array, shift: Array, axes: Array) -> Array:
        if x.shape != shape:
            return op.evaluate(x, shift, axes)
        x, y = contiguous(x), empty(shape, np.float32)
        if all(copy(x[source], y[place], np.inf) for source, place in pieces):
            return y
        return op.evaluate(x, shift, axes)  # too many axes for a copy

    return Kernel(kernel, replay=replayed(alone=False))


def _pieces(shape: _Shape, shifts: Array, axes: Array) -> Iterator[tuple[_Region, _Region]]:
    """Yield the source and destination of each piece of rolled data."""
    total = [0] * len(shape)
    for shift, axis in zip(shifts.tolist(), axes.tolist(), strict=True):
        total[axis] += shift
    ranges: list[Sequence[tuple[slice, slice]]] = []
    for length, shift in zip(shape, total, strict=True):
        by = shift % length
        halves = (slice(0, length - by), slice(by, length)), (slice(length - by, length), slice(0, by))
        ranges.append(halves if by else halves[:1])
    for pairs in product(*ranges):
        sources, places = zip(*pairs, strict=True)
        yield sources, places


@backend.accelerates(DepthToSpace)
def depth_to_space(op: DepthToSpace, data: Value) -> Kernel | None:
    """Return a DepthToSpace kernel for f32 of static shape."""
    return _copy_kernel(op, data, op.parts)


@backend.accelerates(SpaceToDepth)
def space_to_depth(op: SpaceToDepth, data: Value) -> Kernel | None:
    """Return a SpaceToDepth kernel for f32 of static shape."""
    shape = _static_result(op, data)
    return _copy_kernel(op, data, lambda x: (op.parts(x), shape)) if shape else None


@backend.accelerates(ReorgYolo)
def reorg(op: ReorgYolo, data: Value) -> Kernel | None:
    """Return a ReorgYolo kernel for f32 of static shape, if channels are a multiple of the squared stride."""
    shape = _static_result(op, data)
    if not shape or data.shape.static[1] % op.stride**2:
        return None
    return _copy_kernel(op, data, lambda x: (op.parts(contiguous(x)), shape))


@backend.accelerates(BatchToSpace)
def batch_to_space(op: BatchToSpace, data: Value, block_shape: Value, *crops: Value) -> Kernel | None:
    """Return a BatchToSpace kernel for f32 of static shape with constant blocks and crops."""
    blocks, begins, shape = block_shape.ints(), crops[0].ints(), _static_result(op, data, block_shape, *crops)
    if blocks is None or begins is None or crops[1].ints() is None or not shape:
        return None
    inside = tuple(slice(begin, begin + length) for begin, length in zip(begins, shape, strict=True))
    return _copy_kernel(op, data, lambda x: op.parts(x, blocks[1:]), lambda y: y[inside])


@backend.accelerates(SpaceToBatch)
def space_to_batch(op: SpaceToBatch, data: Value, block_shape: Value, *pads: Value) -> Kernel | None:
    """Return a SpaceToBatch kernel for f32 of static shape with constant blocks and pads.

    Only the last two of four axes may be padded.
    """
    shape, blocks = _static_result(op, data, block_shape, *pads), block_shape.ints()
    begins, ends = (value.ints() for value in pads)
    if blocks is None or begins is None or ends is None or not shape:
        return None
    around = list(zip(begins, ends, strict=True))
    is_padded = any((*begins, *ends))
    if is_padded and (len(around) != 4 or any(map(any, around[:2]))):
        return None

    def parts(x: Array) -> tuple[Array, _Shape]:
        return op.parts(pad_images(x, around[2:]) if is_padded else x, blocks[1:]), shape

    return _copy_kernel(op, data, parts)


def _static_result(op: Op, *inputs: Value) -> _Shape:
    """Return the shape of the result; empty if it is not static or the inputs are invalid."""
    try:
        shape: PartialShape = op.infer(*inputs)
    except IRError:
        return ()  # the operation raises it when it runs
    return shape.static if shape.is_static else ()


def _copy_kernel(
    op: Op,
    data: Value,
    parts: Callable[[Array], tuple[Array, _Shape]],
    view: Callable[[Array], Array] = lambda y: y,
) -> Kernel | None:
    """Return a kernel that copies a view of f32 data of static shape; ``None`` for other data.

    Args:
        op: the operation.
        data: its first input.
        parts: returns a view of the input with its axes in the order of the result, and the shape of the copy.
        view: takes the copy, and returns the result, a view of it.
    """
    if not is_f32(data) or not data.shape.is_static or not np.prod(data.shape.static):
        return None
    COPY.prepare()
    lengths = data.shape.static
    evaluate: Callable[..., Array] = op.evaluate

    def kernel(x: Array, *others: Array) -> Array:
        if x.shape != lengths:
            return evaluate(x, *others)
        source, shape = parts(x)
        if (result := _channels_last_copy(source, shape)) is not None:
            return view(result)
        y = empty(shape, np.float32)
        copied = copy(source, y.reshape(source.shape), np.inf)
        return view(y) if copied else evaluate(x, *others)

    return Kernel(kernel, replay=replayed(alone=False))
