"""Non-maximum suppression (NMS): each candidate is compared with a vector of kept boxes at a time."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from llvmlite import ir

from ....ir.tensor import Array, Value
from ....kernels.boxes import areas
from ....ops.sort.suppression import IndicesOnlyNms, SoftNms
from ... import Kernel
from ...common.layout import is_f32
from ...common.nms import NMS_VERSIONS, Candidates, nms_kernel
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import alloc, fetch_add, free, load_f32, load_i64, store_f32, store_i64
from ..codegen.vectors import F32, I64, LANES, Emit
from ..threading.parallel import parallel_for, threads
from ..threading.task import UNUSED, Task, load_args

__all__: list[str] = []

# Candidates from which on several threads are faster.
MIN_PARALLEL_WORK = 1 << 11

# Numbers of a box: its corners and its area.
BOX_FIELDS = 5


@instruction(*[types.int64] * 3, types.float32, returns=types.int64)
def _any_overlap(emit: Emit, box: ir.Value, others: ir.Value, apart: ir.Value, limit: ir.Value) -> ir.Value:
    """Return whether one of a vector of boxes overlaps a box with an IoU of at least ``limit``, which is above 0.

    ``others`` has a row for each number of a box. A box with NaN overlaps nothing. Rounded as in the reference.
    """
    builder = emit.builder
    ours = [emit.splat(emit.load(emit.at(box, 4 * i), F32)) for i in range(BOX_FIELDS)]
    theirs = [emit.load(emit.at(others, builder.mul(apart, emit.i64(i)))) for i in range(BOX_FIELDS)]

    def side(i: int) -> ir.Value:
        low, high = emit.maximum(ours[i], theirs[i]), emit.minimum(ours[i + 2], theirs[i + 2])
        return emit.maximum(emit.subtract(high, low), emit.constant(0))

    shared = emit.multiply(side(0), side(1))
    union = emit.subtract(emit.add(theirs[4], ours[4]), shared)
    found = builder.fcmp_ordered(">=", emit.divide(shared, union), emit.splat(limit))
    for fact in (shared, theirs[4], ours[4]):
        found = builder.and_(found, builder.fcmp_ordered(">", fact, emit.constant(0)))
    return builder.zext(builder.bitcast(found, ir.IntType(LANES)), I64)


class NmsJob(Descriptor):
    """The job of `SUPPRESS`.

    Sizes: rows of candidates, rows and boxes of a batch entry, boxes that fit the buffer of kept ones, most boxes kept
    of a row. Addresses: of where rows start, of the box of each candidate, of a flag for each that is kept.
    """

    rows: i64
    classes: i64
    boxes: i64
    capacity: i64
    starts: i64
    places: i64
    kept: i64
    iou_threshold: f32
    limit: i64


@device
def _is_suppressed(box: int, others: int, apart: int, count: int, limit: float) -> bool:
    start = 0
    while start < count and _any_overlap(box, others + 4 * start, apart, limit) == 0:
        start += LANES
    return start < count


def _suppress(call: int) -> None:
    job, _, boxes, _, _, counter = load_args(call)
    rows, classes, length, most = (
        load_i64(job, NmsJob.rows),
        load_i64(job, NmsJob.classes),
        load_i64(job, NmsJob.boxes),
        load_i64(job, NmsJob.capacity),
    )
    starts, places, left, limit = (
        load_i64(job, NmsJob.starts),
        load_i64(job, NmsJob.places),
        load_i64(job, NmsJob.kept),
        load_f32(job, NmsJob.iou_threshold),
    )
    apart = 4 * most
    others = alloc(BOX_FIELDS * apart)
    row = fetch_add(counter)
    while row < rows:
        start, end = load_i64(starts, row), load_i64(starts, row + 1)
        count, batch = 0, boxes + 4 * BOX_FIELDS * length * (row // classes)
        for at in range(start, end):
            box = batch + 4 * BOX_FIELDS * load_i64(places, at)
            if count == load_i64(job, NmsJob.limit):
                break
            if _is_suppressed(box, others, apart, count, limit):
                continue
            for fact in range(BOX_FIELDS):
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
"""Select boxes from rows of candidates, sorted by score; A has the numbers of the boxes of each batch entry."""


@backend.accelerates(*NMS_VERSIONS)
def nms(op: IndicesOnlyNms | SoftNms, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32."""
    if not is_f32(*inputs[:2]):
        return None
    SUPPRESS.prepare()
    return nms_kernel(op, _run_nms)


def _run_nms(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    corners, starts, places = candidates.corners, candidates.starts(rows), candidates.places
    boxes = np.concatenate([corners, areas(corners)[..., None]], axis=-1)
    kept = np.zeros(len(places), np.int64)
    longest = int(np.diff(starts).max(initial=0))
    most = -(-min(limit, longest) // LANES) * LANES
    job = NmsJob.fill(
        rows=rows, classes=candidates.classes, boxes=corners.shape[1], capacity=most, starts=starts.ctypes.data,
        places=places.ctypes.data, kept=kept.ctypes.data, iou_threshold=iou, limit=min(limit, longest),
    )  # fmt: skip
    count = threads() if len(places) >= MIN_PARALLEL_WORK else 1
    parallel_for(SUPPRESS.address, job, UNUSED, boxes.reshape(-1), UNUSED, UNUSED, count)
    return np.flatnonzero(kept)
