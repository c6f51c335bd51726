"""Boxes that are left when the best suppress those they overlap: each candidate against those that are left so far."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....kernels.boxes import areas
from ....ops.sort.suppression import IndicesOnlyNms, SoftNms
from ... import Kernel
from ...common.layout import is_f32
from ...common.nms import NMS_VERSIONS, Candidates, nms_kernel
from .._backend import backend
from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_f32, store_i64
from ..codegen.vectors import F32, I64, LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args

__all__: list[str] = []

# Candidates that are worth a second thread.
WORTH = 1 << 11

Number = Any
# What is known of a box: its corners and its area.
FACTS = 5


@instruction(*[types.int64] * 3, types.float32, returns=types.int64)
def _overlapping(emit: Emit, box: Number, others: Number, apart: Number, limit: Number) -> Number:
    """Whether one of a vector of boxes overlaps a box by the limit, which is above 0.

    Of others, each fact is a row. One with NaN overlaps nothing. All is rounded as in the reference.
    """
    builder = emit.builder
    ours = [emit.splat(emit.load(emit.at(box, 4 * i), F32)) for i in range(FACTS)]
    theirs = [emit.load(emit.at(others, builder.mul(apart, emit.i64(i)))) for i in range(FACTS)]

    def side(i: int) -> Number:
        low, high = emit.maximum(ours[i], theirs[i]), emit.minimum(ours[i + 2], theirs[i + 2])
        return emit.maximum(emit.subtract(high, low), emit.constant(0))

    shared = emit.multiply(side(0), side(1))
    union = emit.subtract(emit.add(theirs[4], ours[4]), shared)
    found = builder.fcmp_ordered(">=", emit.divide(shared, union), emit.splat(limit))
    for fact in (shared, theirs[4], ours[4]):
        found = builder.and_(found, builder.fcmp_ordered(">", fact, emit.constant(0)))
    return builder.zext(builder.bitcast(found, ir.IntType(LANES)), I64)


@device
def _is_suppressed(box: int, others: int, apart: int, count: int, limit: float) -> bool:
    start = 0
    while start < count and _overlapping(box, others + 4 * start, apart, limit) == 0:
        start += LANES
    return start < count


def _suppress(call: int) -> None:
    job, _, boxes, _, _, counter = load_args(call)
    rows, classes, length, most = load_i64(job, 0), load_i64(job, 1), load_i64(job, 2), load_i64(job, 3)
    starts, places, left, limit = load_i64(job, 4), load_i64(job, 5), load_i64(job, 6), load_f32(job, 14)
    apart = 4 * most
    others = alloc(FACTS * apart)
    row = fetch_add(counter)
    while row < rows:
        start, end = load_i64(starts, row), load_i64(starts, row + 1)
        count, batch = 0, boxes + 4 * FACTS * length * (row // classes)
        for at in range(start, end):
            box = batch + 4 * FACTS * load_i64(places, at)
            if count == load_i64(job, 8):
                break
            if _is_suppressed(box, others, apart, count, limit):
                continue
            for fact in range(FACTS):
                line = others + fact * apart
                if count % LANES == 0:
                    for lane in range(LANES):
                        store_f32(line, count + lane, np.float32(np.nan))
                store_f32(line, count, load_f32(box, fact))
            store_i64(left, at, 1)
            count += 1
        row = fetch_add(counter)
    free(others)


SUPPRESS = Task(_suppress)
"""Takes rows of candidates.

It reads, as A, the facts about each box of each batch entry. Its job: rows, those of a batch entry, boxes of
one; room for boxes that are left of a row, in whole vectors; addresses of where rows start, of the box of each
candidate, and of a number for each, which becomes 1 where it is left; the f32 that suppresses; how many boxes may
be left of a row.
"""


@backend.accelerates(*NMS_VERSIONS)
def suppression(op: IndicesOnlyNms | SoftNms, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32."""
    if not is_f32(*inputs[:2]):
        return None
    SUPPRESS.prepare()
    return nms_kernel(op, _at_once)


def _at_once(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    corners, starts, places = candidates.corners, candidates.starts(rows), candidates.places
    boxes = np.concatenate([corners, areas(corners)[..., None]], axis=-1)
    left = np.zeros(len(places), np.int64)
    longest = int(np.diff(starts).max(initial=0))
    most = -(-min(limit, longest) // LANES) * LANES
    threshold = np.array([iou, 0], np.float32).view(np.int64)
    words = [
        rows, candidates.classes, corners.shape[1], most, starts.ctypes.data, places.ctypes.data,
        left.ctypes.data, int(threshold[0]), min(limit, longest),
    ]  # fmt: skip
    count = threads() if len(places) >= WORTH else 1
    parallel_for(
        SUPPRESS.address, np.array(words, np.int64), UNUSED, boxes.reshape(-1), UNUSED, UNUSED, count
    )
    return np.flatnonzero(left)
