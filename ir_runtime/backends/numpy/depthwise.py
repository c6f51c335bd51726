"""Depthwise convolutions: each channel with a kernel of its own."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ...ir.tensor import Array
from ...ops.convolution.forward import GroupConvolution
from ._finish import Finish
from ._lines import Part
from ._memory import channels_first, channels_last, padded
from ._products import parts
from ._threads import each, share
from ._windows import fitting, windows

__all__ = ["depthwise"]

# A multiplication here takes as long as so many of a product.
COST = 6
# Elements in an inner loop, where a row of the map has as many.
LOOP = 2048


def depthwise(op: GroupConvolution, w: Array) -> Part:
    """Filters ``[C, 1, 1, height, width]``, as sums of products over windows: NumPy's only fused multiply-add.

    With a stride of 1 along rows, the channels of neighbouring windows lie in a row, and several windows
    are taken as one. To take columns apart until the stride is 1 costs more than it saves.
    """
    channels, kernel = len(w), (w.shape[3], w.shape[4])
    packed = np.ascontiguousarray(w[:, 0, 0].transpose(1, 2, 0))
    fit = fitting(op, kernel)

    @lru_cache(maxsize=16)
    def tiled(times: int) -> Array:
        return np.tile(packed, times)

    def run(source: Array, out: Array) -> None:
        times = _run(out.shape[1], channels) if op.strides[1] == 1 else 1
        filters = tiled(times)
        every = windows(source, kernel, op.strides, op.dilations, times)
        np.einsum("hwabc,abc->hwc", every, filters, out=out.reshape(every.shape[:2] + filters.shape[-1:]))

    def alone(x: Array, w: Array, finish: Finish) -> Array:
        pads, out = fit(x.shape[2:])
        y = np.empty((len(x), *out, channels), np.float32)
        data = padded(channels_last(x), pads)

        def work(piece: tuple[int, slice]) -> None:
            image, lines = piece
            first = lines.start * op.strides[0]
            last = (lines.stop - 1) * op.strides[0] + (kernel[0] - 1) * op.dilations[0] + 1
            result = y[image, lines]
            run(data[image, first:last], result)
            finish(result.reshape(-1, channels), (image * out[0] + lines.start) * out[1])

        size = y.size * math.prod(kernel) * COST
        each(work, [(image, lines) for image in range(len(x)) for lines in parts(out[0], share(size))], size)
        return channels_first(y)

    return Part(op, kernel, channels, math.prod(kernel) * channels * COST, run, alone, wide=True)


def _run(columns: int, channels: int) -> int:
    """How many neighbouring windows to take as one.

    A loop of several thousand elements halves the time of 96 channels, and takes a quarter of that of 32.
    """
    wanted = max(LOOP // channels, 1)
    return next((n for n in range(wanted, columns + 1) if columns % n == 0), max(columns, 1))
