"""Depthwise convolutions: each channel with a kernel of its own."""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from ....ir.tensor import Array
from ....ops.convolution.forward import GroupConvolution
from ....ops.window import Pads
from ...common.tape import Tape
from ..math.windows import windows
from ..tiling.tiled_layer import Part, Taken

__all__ = ["depthwise"]

# A multiplication here takes as long as so many of a product.
COST = 6
# Elements in an inner loop, where a row of the map has as many.
LOOP = 2048
# Room of so many elements is cleared as a whole: that takes no longer than several calls for its edges.
FILLED = 1 << 17


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
    def tiled(times: int, first: int, last: int) -> list[Array]:
        return [np.tile(plane[..., first:last], times) for plane in planes]

    def calls(source: Array, out: Array, spare: Array, some: slice) -> Tape:
        times = _run(*out.shape[1:]) if strides[1] == 1 else 1
        tape = Tape()
        for index, filters in enumerate(tiled(times, some.start, some.stop)):
            every = windows(source[index], filters.shape[:2], strides, op.dilations, times)
            every = every[:, : out.shape[1] // times]  # a plane may have a column that no window asks for
            runs = out.reshape(every.shape[:2] + filters.shape[-1:])
            sums = spare[: runs.size].reshape(runs.shape) if index else runs
            tape.append((partial(np.einsum, "hwabc,abc->hwc", every, filters, out=sums), ()))
            if index:
                tape.append((np.add, (runs, sums, runs)))
        return tape

    cost = math.prod(kernel) * channels * COST
    return Part(op, kernel, channels, cost, calls, partial(_room, apart), spare=len(planes) > 1)


def _room(step: int, shape: tuple[int, int, int], pads: Pads, memory: Array) -> Taken:
    """Room for lines ``[height, width, C]`` and zeros around them, columns ``step`` apart together."""
    (top, bottom), (left, right) = pads
    height, width, channels = shape
    columns = -(-(left + width + right) // step)
    whole = (step, top + height + bottom, columns, channels)
    room = memory[: math.prod(whole)].reshape(whole)
    inside, around = list[tuple[Array, slice]](), [room[:, :top], room[:, top + height :]]
    for place, plane in enumerate(room[:, top : top + height]):
        begin = max(-(-(left - place) // step), 0)
        first = begin * step + place - left
        end = begin + max(-(-(width - first) // step), 0)
        inside.append((plane[:, begin:end], slice(first, None, step)))
        around += [plane[:, :begin], plane[:, end:]]

    def clear() -> Tape:
        parts = [part for part in around if part.size]
        return [(part.fill, (0,)) for part in ([room] if parts and room.size <= FILLED else parts)]

    def copy(lines: Array) -> Tape:
        return [(np.copyto, (some, lines[:, columns])) for some, columns in inside]

    return Taken(room, clear, copy, inside[0][0] if step == 1 else None)


def _run(columns: int, channels: int) -> int:
    """How many neighbouring windows to take as one.

    A loop of several thousand elements halves the time of 96 channels, and takes a quarter of that of 32.
    """
    wanted = max(LOOP // channels, 1)
    return next((n for n in range(wanted, columns + 1) if columns % n == 0), max(columns, 1))
