"""Masks as attention adds them to scores: f32, with a number for each key."""

from __future__ import annotations

import weakref

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import Descriptor, i64
from ..codegen.language import instruction, types
from ..codegen.vectors import F32, Emit, Value
from ..threading.parallel import parallel_for
from ..threading.recording import RECORD, workspace
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._copy import MAX_SIZE
from .contiguous import contiguous, contiguous_rows

__all__ = ["MASK", "additive_mask"]

_I8 = ir.I8


class MaskJob(Descriptor):
    """The job of `MASK`: the number of rows, and of elements of each."""

    rows: i64
    width: i64


@instruction(types.int64, types.int64)
def _add_or_hide(emit: Emit, seen: Value, out: Value) -> None:
    """Store 0 for a nonzero byte, else minus infinity."""
    is_seen = emit.builder.icmp_signed("!=", emit.load(seen, _I8, 1), ir.Constant(_I8, 0))
    hidden = ir.Constant(F32, float("-inf"))
    emit.store(emit.builder.select(is_seen, ir.Constant(F32, 0.0), hidden), out)


def _mask(call: int) -> None:
    address, out, x, _, _, counter = load_args(call)
    job = MaskJob.at(address)
    width = job.width
    for row in each_counted(counter, job.rows):
        for index in range(width * row, width * (row + 1)):
            _add_or_hide(x + index, out + 4 * index)


MASK = Task(_mask)
"""Convert a boolean mask."""

_last: tuple[weakref.ref[Array], Array] | None = None


def additive_mask(mask: Array, keys: int) -> Array:
    """Return a mask to add to scores; the last boolean mask is cached, as the next layer often has the same."""
    global _last
    if mask.dtype != np.bool_:
        return _of_all_keys(mask, keys)
    if RECORD.get() is not None and 0 < mask.size <= MAX_SIZE and mask.shape[-1] == keys:
        return _converted(contiguous(mask), keys)
    last = _last
    if last is not None and last[0]() is mask and last[1].shape[-1] == keys:
        return last[1]
    added = _of_all_keys(np.where(mask, np.float32(0), np.float32(-np.inf)), keys)
    _last = weakref.ref(mask), added
    return added


def _converted(mask: Array, keys: int) -> Array:
    """Return a mask that a task converts, so that it can be replayed."""
    added = workspace(mask.size)
    parallel_for(
        MASK.address, MaskJob.fill(rows=mask.size // keys, width=keys), added, mask, UNUSED, UNUSED, 1
    )
    return added.reshape(mask.shape)


def _of_all_keys(mask: Array, keys: int) -> Array:
    """Return a mask with a number for each key, in contiguous rows."""
    return contiguous_rows(mask if mask.shape[-1] == keys else np.repeat(mask, keys, -1))
