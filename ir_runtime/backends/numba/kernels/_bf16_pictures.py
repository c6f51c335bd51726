"""Pictures in bf16: planar f32 of few channels becomes pixels of four numbers, the last ones 0, inside a border of zeros."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array
from ..codegen.bf16 import as_bf16
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.memory import load_i64
from ..codegen.vectors import INTS, LANES, Emit, Value
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._epilogue import BF16

__all__ = ["PIXEL", "bf16_pictures"]

PIXEL = 4
"""Numbers of a pixel."""

# Elements from which on several threads are faster.
MIN_PARALLEL_SIZE = 1 << 16


class PictureJob(Descriptor):
    """The job of `_PICTURES`: sizes of the data; strides of the result in bytes, and the offset of its first pixel inside."""

    images: i64
    channels: i64
    height: i64
    width: i64
    image_stride: i64
    row_stride: i64
    offset: i64
    zeros: i64


@instruction(*[types.int64] * 5)
def _interleave(emit: Emit, a: Value, b: Value, c: Value, d: Value, out: Value) -> None:
    """Round `LANES` numbers of each of four channels, and store them pixel by pixel."""
    builder, pairs = emit.builder, []
    for first, second in ((a, b), (c, d)):
        low, high = (builder.zext(as_bf16(emit, emit.load(each)), INTS) for each in (first, second))
        pairs.append(builder.or_(low, builder.shl(high, ir.Constant(INTS, [16] * LANES))))
    for half in range(2):
        order = [half * LANES // 2 + lane // 2 + lane % 2 * LANES for lane in range(LANES)]
        emit.store(builder.shuffle_vector(*pairs, ir.Constant(INTS, order)), emit.at(out, half * 4 * LANES))


def _pictures(call: int) -> None:
    """Convert pictures; a unit is a row of one."""
    job, out, x, _, _, _ = load_args(call)
    channels, height = load_i64(job, PictureJob.channels), load_i64(job, PictureJob.height)
    width, zeros = load_i64(job, PictureJob.width), load_i64(job, PictureJob.zeros)
    plane, rows = 4 * height * width, load_i64(job, PictureJob.images) * height
    while True:
        unit = next_unit(call, rows)
        if unit >= rows:
            break
        image = unit // height
        row = unit - image * height
        target = out + load_i64(job, PictureJob.offset) + image * load_i64(job, PictureJob.image_stride)
        target += row * load_i64(job, PictureJob.row_stride)
        source = x + image * channels * plane + 4 * row * width
        for start in range(0, width, LANES):
            at = min(start, width - LANES)
            place = source + 4 * at
            _interleave(
                place, place + plane if channels > 1 else zeros, place + 2 * plane if channels > 2 else zeros,
                place + 3 * plane if channels > 3 else zeros, target + 8 * at,
            )  # fmt: skip


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
    y = np.zeros((n, top + height + bottom, left + width + right, PIXEL), BF16)
    if width < LANES:
        y[:, top : top + height, left : left + width, :channels] = x.transpose(0, 2, 3, 1)
        return y
    source = np.ascontiguousarray(x)
    job = PictureJob.fill(
        images=n, channels=channels, height=height, width=width, image_stride=y.strides[0], row_stride=y.strides[1],
        offset=top * y.strides[1] + left * y.strides[2], zeros=_ZEROS.ctypes.data,
    )  # fmt: skip
    count = threads() if x.size >= MIN_PARALLEL_SIZE else 1
    parallel_for(_PICTURES.address, job, y, source, UNUSED, UNUSED, count)
    return y
