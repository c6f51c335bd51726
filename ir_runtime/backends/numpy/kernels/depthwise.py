"""Depthwise convolution: each channel has its own filter."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import GroupConvolution
from ....ops.window import Pads
from ...common.tape import Tape
from ...core.processor import is_intel
from ..math.windows import windows
from ..tiling.tiled_layer import PaddedBuffer, TiledLayer

__all__ = ["depthwise"]

# A multiplication here takes as long as this many of a GEMM.
COST = 6
# Elements of an inner loop, if a row of the feature map has as many. On Intel's processors, which multiply twice as much in
# a cycle as the L2 cache delivers, filters of 3x3 then stay in the L1 cache (27 KiB of 48).
INNER_LOOP = 768 if is_intel() else 2048
# A padded buffer of at most this many elements is cleared as a whole: that takes no longer than several calls for its edges.
MAX_FILL = 1 << 17


def depthwise(op: GroupConvolution, w: Array) -> TiledLayer:
    """Return a tiled layer for filters ``[C, 1, 1, height, width]``.

    It uses `np.einsum` over windows, NumPy's only fused multiply-add. With a stride of 1 along rows, the channels of
    neighbouring windows are contiguous, and several windows are computed as one. With a stride of 2, even and odd
    columns (phases) are copied to separate planes, each with the columns of the kernel that it meets.
    """
    channels, kernel = len(w), (w.shape[3], w.shape[4])
    phases = op.strides[1] if op.dilations[1] == 1 else 1
    packed = np.ascontiguousarray(w[:, 0, 0].transpose(1, 2, 0))
    phase_filters = [
        np.ascontiguousarray(packed[:, first::phases]) for first in range(min(phases, kernel[1]))
    ]
    strides = (op.strides[0], op.strides[1] // phases)

    @lru_cache(maxsize=16)
    def repeated(times: int, first: int, last: int) -> list[Array]:
        return [np.tile(filters[..., first:last], times) for filters in phase_filters]

    def tape(source: Array, out: Array, scratch: Array, channels: slice) -> Tape:
        times = _neighbours(*out.shape[1:]) if strides[1] == 1 else 1
        tape = Tape()
        for index, filters in enumerate(repeated(times, channels.start, channels.stop)):
            window_view = windows(source[index], filters.shape[:2], strides, op.dilations, times)
            window_view = window_view[:, : out.shape[1] // times]  # a plane may have an unused last column
            runs = out.reshape(window_view.shape[:2] + filters.shape[-1:])
            sums = scratch[: runs.size].reshape(runs.shape) if index else runs
            tape.append((partial(np.einsum, "hwabc,abc->hwc", window_view, filters, out=sums), ()))
            if index:
                tape.append((np.add, (runs, sums, runs)))
        return tape

    cost = math.prod(kernel) * channels * COST
    return TiledLayer(
        op,
        kernel,
        channels,
        cost,
        tape,
        partial(_padded_buffer, phases),
        needs_scratch=len(phase_filters) > 1,
    )


def _padded_buffer(step: int, shape: tuple[int, int, int], pads: Pads, memory: Array) -> PaddedBuffer:
    """Lay out a buffer for rows ``[height, width, C]`` and zero padding, with a plane for each phase of the columns."""
    (top, bottom), (left, right) = pads
    height, width, channels = shape
    columns = -(-(left + width + right) // step)
    buffer_shape = (step, top + height + bottom, columns, channels)
    array = memory[: math.prod(buffer_shape)].reshape(buffer_shape)
    interior, padding = list[tuple[Array, slice]](), [array[:, :top], array[:, top + height :]]
    for phase, plane in enumerate(array[:, top : top + height]):
        begin = max(-(-(left - phase) // step), 0)
        first = begin * step + phase - left
        end = begin + max(-(-(width - first) // step), 0)
        interior.append((plane[:, begin:end], slice(first, None, step)))
        padding += [plane[:, :begin], plane[:, end:]]

    def clear() -> Tape:
        parts = [part for part in padding if part.size]
        return [(part.fill, (0,)) for part in ([array] if parts and array.size <= MAX_FILL else parts)]

    def copy(rows: Array) -> Tape:
        return [(np.copyto, (inside, rows[:, columns])) for inside, columns in interior]

    return PaddedBuffer(array, clear, copy, interior[0][0] if step == 1 else None)


def _neighbours(columns: int, channels: int) -> int:
    """Return how many neighbouring windows to compute as one.

    A loop of several thousand elements halves the time of 96 channels, and takes a quarter of that of 32.
    """
    wanted = max(INNER_LOOP // channels, 1)
    return next((n for n in range(wanted, columns + 1) if columns % n == 0), max(columns, 1))
