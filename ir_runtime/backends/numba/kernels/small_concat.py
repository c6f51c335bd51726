"""Concatenation of small tensors between steps that are replayed: NumPy would end the replay there."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.movement.concat import Concat
from ... import Kernel
from ...common.layout import is_f32
from ...core.lengths import accepting, any_lengths
from .._backend import backend
from ..codegen.descriptor import Descriptor, i64
from ..codegen.memory import load_i64
from ..threading.capture import replayed
from ..threading.parallel import parallel_for
from ..threading.recording import RECORD
from ..threading.task import UNUSED, Task, load_args, next_unit
from ._rows import copy_row

__all__: list[str] = []

# Results with more elements are left to others.
MAX_SIZE = 1 << 16


class CopyJob(Descriptor):
    """The job of `COPY`: the number of rows, the f32 of each, and the bytes between rows of the result."""

    rows: i64
    width: i64
    out_stride: i64


def _copy(call: int) -> None:
    """Copy contiguous rows."""
    job, out, x, _, _, _ = load_args(call)
    rows, width = load_i64(job, CopyJob.rows), load_i64(job, CopyJob.width)
    stride = load_i64(job, CopyJob.out_stride)
    row = next_unit(call, rows)
    while row < rows:
        copy_row(x + 4 * width * row, width, out + stride * row)
        row = next_unit(call, rows)


COPY = Task(_copy)


@backend.accelerates(Concat)
def small(op: Concat, *parts: Value) -> Kernel | None:
    """f32 of few elements, along any axis: where a run is recorded, by tasks, so that the replay does not end there."""
    if not is_f32(*parts) or not all(part.shape.is_static and part.shape.rank for part in parts):
        return None
    sizes = [math.prod(part.shape.static) for part in parts]
    axis = op.axis % len(parts[0].shape.static)
    if not all(sizes) or sum(sizes) >= MAX_SIZE or (axis == 1 and len(parts[0].shape.static) > 2):
        return None  # channels of maps have a kernel of their own
    COPY.prepare()
    return _small(axis)


@cache
def _small(axis: int) -> Kernel:
    join = np.concatenate

    def kernel(*arrays: Array) -> Array:
        if RECORD.get() is not None and all(x.flags.c_contiguous for x in arrays):
            return _joined(arrays, axis)
        return join(arrays, axis)

    return accepting(replayed(kernel), any_lengths)


def _joined(arrays: Sequence[Array], axis: int) -> Array:
    """Return contiguous arrays joined by tasks, which are recorded."""
    shape = list(arrays[0].shape)
    shape[axis] = sum(x.shape[axis] for x in arrays)
    found = np.empty(shape, np.float32)
    rows, start = found.reshape(math.prod(shape[:axis]), -1), 0
    for x in arrays:
        width = x.size // len(rows)
        job = CopyJob.fill(rows=len(rows), width=width, out_stride=rows.strides[0])
        parallel_for(COPY.address, job, rows[:, start:], x, UNUSED, UNUSED, 1)
        start += width
    return found
