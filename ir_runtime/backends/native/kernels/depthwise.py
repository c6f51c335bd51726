"""Depthwise convolution in NHWC layout."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.convolution.forward import GroupConvolution
from ... import Kernel, KernelTemplate
from ...common.kept_memory import empty
from ...common.layout import as_rows, channels_first, channels_last, is_f32
from ...core.lengths import filter_lengths
from .._backend import backend
from ..codegen.descriptor import Job
from ..codegen.vectors import LANES
from ..threading.capture import replayed
from ..threading.parallel import parallel_for, pays_to_share, threads, threads_for
from ..threading.task import UNUSED, Task
from ._depthwise_job import DepthwiseJob, RowWindow
from ._depthwise_rows import (
    BF16_DEPTHWISE,
    BF16_SIZE,
    DEPTHWISE,
    FIXED_WIDTHS,
    GROUP_WAYS,
    GROUPED,
    GROUPED_WIDTHS,
    SPREAD,
)
from ._epilogue import Bf16Tensors, Epilogue, FusedKernel
from ._grouped_windows import GROUP_CHANNELS
from ._packed_epilogue import PackedEpilogue
from ._products import F32_PRODUCTS, asked_products
from ._windows import F32_SIZE, WINDOWS, geometry, pad_channels, window_range
from .contiguous import contiguous

__all__: list[str] = []

# Rows of the result of a block, and vectors of channels with one weight for each element of the kernel, whose data and
# weights stay in the L1 cache.
ROW_BLOCK, CHANNEL_BLOCK = 8, 8


@backend.accelerates(GroupConvolution)
def depthwise(op: GroupConvolution, data: Value, filters: Value) -> KernelTemplate | None:
    """Constant f32 filters ``[C, 1, 1, kernel...]`` over one to three spatial axes, or of groups as `is_by_windows` says."""
    w = filters.known()
    if w is None or not is_f32(data, filters) or w.ndim not in (4, 5, 6):
        return None
    is_alone = w.shape[1:3] == (1, 1) and bool(w.size) and bool(np.isfinite(w).all())
    if not is_alone and not is_by_windows(w):
        return None
    extents = [op.extent(axis, length) for axis, length in enumerate(w.shape[3:])]
    is_wide = is_alone and asked_products().is_faster and len(w) >= LANES
    return FusedKernel(
        lambda epilogue: _kernel(op, w, epilogue, is_wide), 1,
        accepts=filter_lengths(math.prod(w.shape[:2]), extents), bf16=Bf16Tensors(data=is_wide, result=is_wide),
    )  # fmt: skip


def is_by_windows(w: Array) -> bool:
    """Return whether groups of several channels are computed in windows, as depthwise convolutions are."""
    groups, outputs, channels = w.shape[:3]
    fits = channels in GROUP_CHANNELS and outputs == channels and groups * outputs >= LANES
    return fits and bool(np.isfinite(w).all()) and asked_products() is F32_PRODUCTS


def _kernel(op: GroupConvolution, w: Array, epilogue: Epilogue, bf16: bool) -> Kernel:
    """Return the kernel; with ``bf16``, its data may be stored so."""
    spatial, channels, inputs = w.ndim - 3, math.prod(w.shape[:2]), w.shape[2]
    ahead = (1,) * (3 - spatial)
    op, kernel = _of_volumes(op, ahead), (*ahead, *w.shape[3:])
    weights = w.reshape(channels, inputs, *kernel)
    if epilogue.scale is not None:
        weights = weights * epilogue.scale.reshape(-1, 1, 1, 1, 1)
    short = max(LANES - channels, 0)
    packed = _pack_weights(pad_channels(weights, 0))
    bias = np.zeros(channels + short, np.float32)
    if epilogue.shift is not None:
        bias[:channels] = epilogue.shift
    post_ops = PackedEpilogue.of(epilogue, channels + short)
    shape = kernel[-1], op.strides[-1]
    is_fixed = op.dilations[-1] == 1 and (inputs == 1 or shape in GROUPED_WIDTHS)
    form = FIXED_WIDTHS.get(shape, 0) if is_fixed else 0
    is_shared = inputs == 1 and not form and op.strides[-1] == 1
    more = GROUP_WAYS.get(inputs, 0)
    fill_values = np.zeros(LANES, np.float32)
    by_size: dict[int, Task] = {int(F32_SIZE): GROUPED if inputs > 1 else DEPTHWISE}
    if bf16:
        by_size[BF16_SIZE] = BF16_DEPTHWISE
    stored = epilogue.dtype
    for task in by_size.values():
        task.prepare()
    weight = math.prod(kernel) * inputs

    @lru_cache(maxsize=16)
    def job_for(
        images: int, lengths: tuple[int, ...], size: int, sharing: int
    ) -> tuple[Array, tuple[int, ...]]:
        lengths = *ahead, *lengths
        windows = geometry(op, lengths, channels + short, kernel, op.dilations)
        counts, table = op.windows(lengths, kernel), _row_table(op, images, lengths, kernel)
        out = (images, *counts[-spatial:], channels + short)
        most = ROW_BLOCK
        if pays_to_share(computed=math.prod(out) * weight):
            # Some units for each thread, where there are as many rows; more where they take longer.
            each = 2 if inputs == 1 else 4
            most = min(counts[0] * counts[1] // 4, len(table) // (each * sharing), ROW_BLOCK)
        several = max(most, 1)
        windows["out_height"] = len(table)
        is_spread = is_shared and counts[-1] >= WINDOWS * op.dilations[-1]
        job = DepthwiseJob.fill(
            **windows, kernel_depth=kernel[0], plane_rows=lengths[1] * op.dilations[0], group_channels=inputs,
            units=-(-len(table) // several), rows_per_unit=several,
            channel_block=LANES * max(CHANNEL_BLOCK // inputs, 1), way=SPREAD if is_spread else form,
            spread=op.dilations[-1] if is_spread else 1, more=more,
            weights=packed.ctypes.data, bias=bias.ctypes.data, fill_values=fill_values.ctypes.data,
            epilogue_words=post_ops.words.ctypes.data, epilogue_numbers=post_ops.numbers.ctypes.data,
            row_table=table.ctypes.data, data_size=size, result_size=stored.itemsize,
        )  # fmt: skip
        return Job.of(job, table), out

    def compute(x: Array, _: Array, *extras: Array) -> Array:
        job, shape = job_for(len(x), x.shape[2:], x.itemsize, threads())
        y = empty(shape, stored)
        shared = threads_for(computed=y.size * weight)
        source = contiguous(pad_channels(channels_last(x)))
        partners = [contiguous(as_rows(pad_channels(extras[index], 1), 1)) for index in post_ops.extras]
        first, second = (*partners, UNUSED, UNUSED)[:2]
        parallel_for(by_size[x.itemsize].address, job, y, source, first, second, shared)
        return channels_first(np.ascontiguousarray(y[..., :channels]) if short else y)

    return Kernel(compute, replay=replayed())


def _row_table(op: GroupConvolution, images: int, lengths: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
    """Return a `RowWindow` for each row of the result, given the lengths of three axes."""
    planes, rows = (_ranges(op, axis, lengths, kernel) for axis in (0, 1))
    deep, down = planes[:, None], rows[None]
    table = np.empty((images, len(planes), len(rows), RowWindow.words), np.int64)
    image = lengths[0] * np.arange(images).reshape(-1, 1, 1)
    table[..., 0] = (image + deep[..., 0]) * lengths[1] + down[..., 0]
    table[..., 1] = deep[..., 1] * kernel[1] + down[..., 1]
    table[..., 2], table[..., 3] = down[..., 2], deep[..., 2]
    return table.reshape(-1, RowWindow.words)


def _ranges(op: GroupConvolution, axis: int, lengths: tuple[int, ...], kernel: tuple[int, ...]) -> Array:
    """Return, for each window along an axis: its first element inside the data, which one of the kernel it is, how many are."""
    stride, spread, (before, _) = op.strides[axis], op.dilations[axis], op.pads(lengths, kernel)[axis]
    found = []
    for index in range(op.windows(lengths, kernel)[axis]):
        first = index * stride - before
        low, high = window_range(first, lengths[axis], spread, kernel[axis])
        found.append((first + low * spread, low, high - low))
    return np.array(found, np.int64).reshape(-1, 3)


def _of_volumes(op: GroupConvolution, ahead: tuple[int, ...]) -> GroupConvolution:
    """Return the same convolution for data with as many axes of length 1 before the spatial ones."""
    zeros = (0,) * len(ahead)
    return GroupConvolution(
        strides=(*ahead, *op.strides),
        dilations=(*ahead, *op.dilations),
        pads_begin=(*zeros, *op.pads_begin),
        pads_end=(*zeros, *op.pads_end),
        auto_pad=op.auto_pad,
    )


def _pack_weights(w: Array) -> Array:
    """Pack weights ``[C, inputs, depth, height, width]`` as ``[vector, depth, height, width, input, lane]``.

    The last vector overlaps.
    """
    places = np.minimum(np.arange(0, len(w), LANES), len(w) - LANES)
    channels = places[:, None] + np.arange(LANES)
    return np.ascontiguousarray(w[channels].transpose(0, 3, 4, 5, 2, 1))
