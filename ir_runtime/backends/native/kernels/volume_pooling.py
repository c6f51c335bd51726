"""Max and average pooling of rows and volumes: passes of the kernel of maps, over planes first, then inside them."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.pooling.windowed import (
    AvgPool1,
    AvgPool14,
    AvgPool16,
    AvgPoolBase,
    MaxPool1,
    MaxPool8,
    MaxPool14,
    MaxPoolWithIndices,
    Pooling,
)
from ... import UNREAD, Kernel
from ...common.kept_memory import empty
from ...common.layout import channels_first, channels_last, is_f32
from .._backend import backend
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED
from ._windows import F32_SIZE, SlidingWindows
from .contiguous import contiguous
from .pooling import AVERAGE, LOWEST, MAX, POOL, PoolJob, pool_maps

__all__: list[str] = []


@backend.accelerates(MaxPool1)
def max_pool(op: MaxPool1, data: Value) -> Kernel | None:
    """f32 over one or three spatial axes. As in the reference, no result is NaN, nor below the lowest number."""
    return Kernel(_pool(op, MAX, LOWEST), replay=replayed()) if _is_supported(op, data) else None


@backend.accelerates(MaxPool8, MaxPool14)
def max_pool_values(op: MaxPoolWithIndices, data: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32 over one or three spatial axes, where the indices are not read."""
    if not _is_supported(op, data) or 1 not in unread:
        return None
    pool = _pool(op, MAX, LOWEST)
    return Kernel(lambda x: (pool(x), UNREAD), replay=replayed())


@backend.accelerates(AvgPool1, AvgPool14, AvgPool16)
def average_pool(op: AvgPoolBase, data: Value) -> Kernel | None:
    """f32 over one or three spatial axes."""
    return Kernel(_pool(op, AVERAGE, 0), replay=replayed()) if _is_supported(op, data) else None


def _is_supported(op: Pooling, data: Value) -> bool:
    return is_f32(data) and len(op.kernel) in (1, 3)


class _Axis(NamedTuple):
    """A spatial axis: its length, the windows along it, and of these kernel, stride, dilation and padding before."""

    length: int
    windows: int
    kernel: int = 1
    stride: int = 1
    dilation: int = 1
    before: int = 0


class _Pass(NamedTuple):
    """Windows over two axes of some images: the job, and the shape of the result."""

    job: Array
    shape: tuple[int, ...]


def _whole_vectors(plane: int, channels: int) -> tuple[_Axis, int]:
    """Return the axis of a plane whose elements all have a window of one, and their channels: a vector, if possible.

    Along planes, it does not matter which number belongs to which element.
    """
    if channels < LANES and plane * channels % LANES == 0:
        plane, channels = plane * channels // LANES, LANES
    return _Axis(plane, plane), channels


def _pool(op: Pooling, form: int, fill: float) -> Callable[[Array], Array]:
    filler = np.full(LANES, fill, np.float32)
    POOL.prepare()
    of_maps = _pool_maps(op, form, fill)

    def one_pass(images: int, down: _Axis, across: _Axis, channels: int, counts_padding: bool) -> _Pass:
        pairs = [n for pair in zip(down, across, strict=True) for n in pair]
        windows = dict(zip(SlidingWindows.dtype.names or (), [*pairs[:2], channels, *pairs[2:]], strict=True))
        job = PoolJob.fill(
            **windows, rows=images * down.windows, mode=form, fill_values=filler.ctypes.data,
            start_values=filler.ctypes.data, data_size=F32_SIZE, result_size=F32_SIZE,
            factor=1 / (down.kernel * across.kernel) if counts_padding else 0.0,
        )  # fmt: skip
        return _Pass(job, (images, down.windows, across.windows, channels))

    @lru_cache(maxsize=16)
    def passes(images: int, lengths: tuple[int, ...], channels: int) -> tuple[list[_Pass], tuple[int, ...]]:
        """Return the passes, and the number of windows along each axis."""
        pads, counts = op.pads(lengths, op.kernel), op.windows(lengths, op.kernel)
        before = [begin for begin, _ in pads]
        numbers = zip(lengths, counts, op.kernel, op.strides, op.spread(), before, strict=True)
        *ahead, down, across = [_Axis(1, 1), *(_Axis(*map(int, each)) for each in numbers)]
        counted = isinstance(op, AvgPoolBase) and not op.exclude_pad and any(map(any, pads))
        found = []
        if len(lengths) == 3:
            found.append(
                one_pass(images, ahead[-1], *_whole_vectors(down.length * across.length, channels), counted)
            )
            images *= ahead[-1].windows
        return [*found, one_pass(images, down, across, channels, counted)], counts

    def pool(x: Array) -> Array:
        if of_maps is not None and (maps := _as_maps(op, x)) is not None:
            return _as_volumes(of_maps(maps), x.shape)
        found, (steps, counts) = contiguous(channels_last(x)), passes(len(x), x.shape[2:], x.shape[1])
        for job, shape in steps:
            y = empty(shape, np.float32)
            shared = threads_for(computed=y.size * math.prod(op.kernel))
            parallel_for(POOL.address, job, y, found, UNUSED, UNUSED, shared)
            found = y
        return channels_first(found.reshape(len(x), *counts, x.shape[1]))

    return pool


def _pool_maps(op: Pooling, form: int, fill: float) -> Callable[[Array], Array] | None:
    """Return a kernel for the maps of volumes whose windows are of one plane; ``None`` for other windows."""
    if len(op.kernel) != 3 or op.kernel[0] != 1 or op.pads_begin[0] or op.pads_end[0]:
        return None
    fields = ["kernel", "strides", "pads_begin", "pads_end"]
    if getattr(op, "dilations", ()):
        fields.append("dilations")
    return pool_maps(op.replace(**{name: getattr(op, name)[1:] for name in fields}), form, fill, False)


def _as_maps(op: Pooling, x: Array) -> Array | None:
    """Return the planes that have windows as channels or as images, whichever is a view; ``None`` if neither is."""
    if not x.size:
        return None
    count = op.windows(x.shape[2:], op.kernel)[0]
    x = x[:, :, :: op.strides[0]]
    images, channels, planes = x.shape[:3]
    if planes != count:
        return None
    if channels == 1 or x.strides[1] == planes * x.strides[2]:
        return x.reshape(images, channels * planes, *x.shape[3:])
    if images == 1 or x.strides[0] == planes * x.strides[2]:
        return x.swapaxes(1, 2).reshape(images * planes, channels, *x.shape[3:])
    return None


def _as_volumes(y: Array, shape: tuple[int, ...]) -> Array:
    """Return the result for maps of volumes of a shape as volumes."""
    images, channels = shape[:2]
    if len(y) == images and y.shape[1] % channels == 0:
        return y.reshape(images, channels, -1, *y.shape[2:])
    return y.reshape(images, -1, *y.shape[1:]).swapaxes(1, 2)
