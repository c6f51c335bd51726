"""Depthwise convolutions: each channel with a kernel of its own."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ...ir.tensor import Array
from ...ops._window import Pads
from ...ops.convolution.forward import GroupConvolution
from ._lines import Part
from ._memory import padded
from ._windows import windows

__all__ = ["depthwise"]

# A multiplication here takes as long as so many of a product.
COST = 6
# Elements in an inner loop, where a row of the map has as many.
LOOP = 2048


def depthwise(op: GroupConvolution, w: Array) -> Part:
    """Filters ``[C, 1, 1, height, width]``, as sums of products over windows: NumPy's only fused multiply-add.

    With a stride of 1 along rows, the channels of neighbouring windows lie in a row, and several windows
    are taken as one. With a stride of 2, even and odd columns are copied apart, each with the columns of
    the kernel that meet them.
    """
    channels, kernel = len(w), (w.shape[3], w.shape[4])
    apart = op.strides[1] if op.dilations[1] == 1 else 1
    packed = np.ascontiguousarray(w[:, 0, 0].transpose(1, 2, 0))
    planes = [np.ascontiguousarray(packed[:, first::apart]) for first in range(min(apart, kernel[1]))]
    strides = (op.strides[0], op.strides[1] // apart)

    @lru_cache(maxsize=16)
    def tiled(times: int) -> list[Array]:
        return [np.tile(plane, times) for plane in planes]

    def run(source: Array, out: Array) -> None:
        times = _run(out.shape[1], channels) if strides[1] == 1 else 1
        for index, filters in enumerate(tiled(times)):
            every = windows(source[index], filters.shape[:2], strides, op.dilations, times)
            every = every[:, : out.shape[1] // times]  # a plane may have a column that no window asks for
            runs = out.reshape(every.shape[:2] + filters.shape[-1:])
            if index:
                np.add(runs, np.einsum("hwabc,abc->hwc", every, filters), out=runs)
            else:
                np.einsum("hwabc,abc->hwc", every, filters, out=runs)

    cost = math.prod(kernel) * channels * COST
    return Part(op, kernel, channels, cost, run, lambda lines, pads: _apart(lines, pads, apart))


def _apart(lines: Array, pads: Pads, step: int) -> Array:
    """Lines ``[height, width, C]`` with zeros around them, columns ``step`` apart together: ``[step, ...]``."""
    if step == 1:
        return padded(lines[None], pads)
    (top, bottom), (left, right) = pads
    height, width, channels = lines.shape
    columns = -(-(left + width + right) // step)
    out = np.empty((step, top + height + bottom, columns, channels), np.float32)
    out[:, :top] = out[:, top + height :] = 0
    for place, plane in enumerate(out[:, top : top + height]):
        begin = max(-(-(left - place) // step), 0)
        some = lines[:, begin * step + place - left :: step]
        end = begin + some.shape[1]
        plane[:, :begin] = plane[:, end:] = 0
        plane[:, begin:end] = some
    return out


def _run(columns: int, channels: int) -> int:
    """How many neighbouring windows to take as one.

    A loop of several thousand elements halves the time of 96 channels, and takes a quarter of that of 32.
    """
    wanted = max(LOOP // channels, 1)
    return next((n for n in range(wanted, columns + 1) if columns % n == 0), max(columns, 1))
