"""Zeros around images in planar layout."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from ....ir.tensor import Array
from ...common.kept_memory import empty
from ..codegen.descriptor import Descriptor, i64
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, each_chunk, load_args
from ._rows import clear_row, copy_row
from .contiguous import contiguous

__all__ = ["pad_images"]

# Rows of a unit, and elements from which on several threads are faster.
ROWS_PER_UNIT = 32
MIN_PARALLEL_WORK = 1 << 17


class PadJob(Descriptor):
    """The job of `_PAD`: rows of the result, and lengths and place of the data in it."""

    rows: i64
    height: i64
    width: i64
    out_height: i64
    out_width: i64
    top: i64
    left: i64


def _pad(call: int) -> None:
    """Copy rows between zeros; a unit is some rows of the result."""
    address, out, x, _, _, _ = load_args(call)
    job = PadJob.at(address)
    rows, height, width = (
        job.rows,
        job.height,
        job.width,
    )
    tall, wide = job.out_height, job.out_width
    top, left = job.top, job.left
    for first, end in each_chunk(call, rows, ROWS_PER_UNIT):
        for row in range(first, end):
            image, target = row // tall, out + 4 * wide * row
            line = row - image * tall - top
            if 0 <= line < height:
                clear_row(target, left)
                copy_row(x + 4 * width * (image * height + line), width, target + 4 * left)
                clear_row(target + 4 * (left + width), wide - left - width)
            else:
                clear_row(target, wide)


_PAD = Task(_pad)


def pad_images(x: Array, pads: Sequence[tuple[int, int]]) -> Array:
    """Return ``[N, C, H, W]`` contiguous, with zeros before and after the last two axes."""
    job, shape = _job(x.shape, tuple(pads))
    found = empty(shape, np.float32)
    shared = threads() if found.size >= MIN_PARALLEL_WORK else 1
    parallel_for(_PAD.address, job, found, contiguous(x), UNUSED, UNUSED, shared)
    return found


@lru_cache(maxsize=64)
def _job(shape: tuple[int, ...], pads: tuple[tuple[int, int], ...]) -> tuple[Array, tuple[int, ...]]:
    (height, width), (vertical, horizontal) = shape[2:], pads
    out = (*shape[:2], height + sum(vertical), width + sum(horizontal))
    job = PadJob.fill(
        rows=math.prod(out[:3]), height=height, width=width, out_height=out[2], out_width=out[3],
        top=vertical[0], left=horizontal[0],
    )  # fmt: skip
    return job, out
