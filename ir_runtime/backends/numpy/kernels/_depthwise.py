"""Depthwise convolution: each channel has its own filter.

It uses `np.einsum` over windows, NumPy's only fused multiply-add, block by block of rows.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import GroupConvolution
from ...common.epilogue import RowEpilogue
from ...common.layout import channels_first, channels_last, pad_spatial
from ...common.window_fit import window_fit
from ..math.gemm import block_count, split_range
from ..math.windows import windows
from ..parallel import parallel_for, thread_count

__all__ = ["Depthwise"]

# A multiplication here takes as long as this many of a GEMM.
COST = 6
# Elements of an inner loop, if a row of the feature map has as many.
INNER_LOOP = 2048

_POSITION, _ELEMENT = "uvw", "xyz"


class Depthwise:
    """A depthwise convolution by filters ``[C, 1, 1, kernel...]``.

    Where the last stride is 1, the channels of neighbouring windows are contiguous, and several windows are computed as one.
    """

    def __init__(self, op: GroupConvolution, w: Array) -> None:
        self._op, self._kernel = op, w.shape[3:]
        self._fit = window_fit(op, self._kernel)
        self._filters = np.ascontiguousarray(np.moveaxis(w[:, 0, 0], 0, -1))
        axes = len(self._kernel)
        position, element = _POSITION[:axes], _ELEMENT[:axes]
        self._subscripts = f"{position}{element}c,{element}c->{position}c"
        self._repeated = lru_cache(maxsize=16)(partial(np.tile, self._filters))

    def compute(self, x: Array, w: Array, epilogue: RowEpilogue) -> Array:
        """Return the result."""
        pads, out = self._fit(x.shape[2:])
        channels = x.shape[1]
        data = pad_spatial(channels_last(x), pads)
        y = np.empty((len(x), *out, channels), np.float32)
        inner, (step, *_) = math.prod(out[1:]), self._op.strides
        extent = self._op.extent(0, self._kernel[0])

        def work(chunk: tuple[int, slice]) -> None:
            image, rows = chunk
            source = data[image, rows.start * step : (rows.stop - 1) * step + extent]
            self._windows(source, y[image, rows])
            epilogue(y[image, rows].reshape(-1, channels), (image * out[0] + rows.start) * inner)

        size = y.size * math.prod(self._kernel) * COST
        blocks = block_count(y[:1].size, thread_count(size))
        parts = [(image, rows) for image in range(len(x)) for rows in split_range(out[0], blocks)]
        parallel_for(work, parts if y.size else [], size)
        return channels_first(y)

    def _windows(self, source: Array, out: Array) -> None:
        """Compute all windows of some rows, the last of each row by themselves if they are too few to be joined."""
        *_, columns, channels = out.shape
        times = min(max(INNER_LOOP // channels, 1), columns) if self._op.strides[-1] == 1 else 1
        whole = columns // times * times
        self._joined(source, out[..., :whole, :], times)
        if whole < columns:
            self._joined(source[..., whole:, :], out[..., whole:, :], columns - whole)

    def _joined(self, source: Array, out: Array, times: int) -> None:
        """Compute windows joined in groups of this size."""
        view = windows(
            np.ascontiguousarray(source), self._kernel, self._op.strides, self._op.dilations, times
        )
        *before, columns, channels = out.shape
        joined = out.reshape(*before, columns // times, times * channels)
        place = tuple(slice(length) for length in joined.shape[:-1])
        np.einsum(self._subscripts, view[place], self._repeated(times), out=joined)
