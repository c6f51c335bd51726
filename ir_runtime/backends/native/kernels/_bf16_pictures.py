"""Pictures in bf16: planar f32 of few channels becomes pixels of four numbers, the last ones 0, inside a border of zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen import ir
from ..codegen.bf16 import as_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import device, instruction, types
from ..codegen.vectors import INTS, LANES, Emit, Value, splat_bits
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_unit, load_args
from ._epilogue import BF16
from ._rows import clear_row

__all__ = ["PIXEL", "bf16_pictures"]

PIXEL = 4
"""Numbers of a pixel."""
PIXEL_BYTES = 2 * PIXEL


class PictureJob(Descriptor):
    """The job of `_PICTURES`: sizes of the data and of the result, and the place of the data in it."""

    images: i64
    channels: i64
    height: i64
    width: i64
    out_height: i64
    out_width: i64
    top: i64
    left: i64
    zeros: i64


@instruction(*[types.int64] * 5)
def _interleave(emit: Emit, a: Value, b: Value, c: Value, d: Value, out: Value) -> None:
    """Round `LANES` numbers of each of four channels, and store them pixel by pixel."""
    builder, pairs = emit.builder, []
    for first, second in ((a, b), (c, d)):
        low, high = (builder.zext(as_bf16(emit, emit.load(each)), INTS) for each in (first, second))
        pairs.append(builder.or_(low, builder.shl(high, splat_bits(16))))
    for half in range(2):
        order = [half * LANES // 2 + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
        pixels = builder.shuffle_vector(pairs[0], pairs[1], ir.Constant(INTS, order))
        emit.store(pixels, emit.at(out, half * 4 * LANES))


@device
def _convert_row(source: int, plane: int, channels: int, width: int, zeros: int, target: int) -> None:
    for start in range(0, width, LANES):
        at = min(start, width - LANES)
        place = source + 4 * at
        _interleave(
            place, place + plane if channels > 1 else zeros, place + 2 * plane if channels > 2 else zeros,
            place + 3 * plane if channels > 3 else zeros, target + PIXEL_BYTES * at,
        )  # fmt: skip


def _pictures(call: int) -> None:
    """Convert pictures; a unit is a row of the result."""
    address, out, x, _, _, _ = load_args(call)
    job = PictureJob.at(address)
    channels, height = job.channels, job.height
    width, tall = job.width, job.out_height
    wide, left = job.out_width, job.left
    plane, rows = 4 * height * width, job.images * tall
    words = PIXEL_BYTES // 4
    for unit in each_unit(call, rows):
        image, target = unit // tall, out + PIXEL_BYTES * wide * unit
        row = unit - image * tall - job.top
        if 0 <= row < height:
            source, inside = x + image * channels * plane + 4 * row * width, target + PIXEL_BYTES * left
            clear_row(target, words * left)
            _convert_row(source, plane, channels, width, job.zeros, inside)
            clear_row(inside + PIXEL_BYTES * width, words * (wide - left - width))
        else:
            clear_row(target, words * wide)


_PICTURES = Task(_pictures)
_ZEROS = np.zeros(LANES, np.float32)


def bf16_pictures(x: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """Return pictures ``[N, C, H, W]`` as ``[N, H', W', 4]`` of bf16, with borders of zeros.

    Args:
        x: up to four channels of f32.
        pads: the border before and behind each of the last two axes.
    """
    n, channels, height, width = x.shape
    (top, bottom), (left, right) = pads
    shape = n, top + height + bottom, left + width + right, PIXEL
    if width < LANES:
        y = np.zeros(shape, BF16)
        y[:, top : top + height, left : left + width, :channels] = x.transpose(0, 2, 3, 1)
        return y
    source = np.ascontiguousarray(x)
    job = PictureJob.fill(
        images=n, channels=channels, height=height, width=width, out_height=shape[1], out_width=shape[2], top=top,
        left=left, zeros=_ZEROS.ctypes.data,
    )  # fmt: skip
    y = empty(shape, BF16)
    count = threads_for(moved=2 * x.nbytes)
    parallel_for(_PICTURES.address, job, y, source, UNUSED, UNUSED, count)
    return y
