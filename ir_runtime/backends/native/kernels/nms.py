"""Non-maximum suppression (NMS): each candidate is compared with a vector of kept boxes at a time."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.boxes import areas
from ....ops.sort.multiclass import MulticlassNms8, MulticlassNms9, MulticlassNmsBase
from ....ops.sort.suppression import IndicesOnlyNms, SoftNms
from ... import Kernel
from ...common.layout import is_f32
from ...common.nms import (
    NMS_VERSIONS,
    Candidates,
    Kept,
    Settings,
    multiclass_kernel,
    nms_kernel,
)
from .._backend import backend
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.memory import load_i64, scratch_memory, store_i64
from ..codegen.vectors import LANES
from ..threading.denormals import keep_denormals, set_float_mode
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._box_overlap import BOX_FIELDS, add_box, is_suppressed
from ._small_nms import SMALL_NMS, small_nms
from .contiguous import contiguous

__all__: list[str] = []

# Scores up to which one call selects, sorts and suppresses.
MAX_SMALL = 1 << 13


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


def _suppress(call: int) -> None:
    address, _, boxes, _, _, counter = load_args(call)
    job = NmsJob.at(address)
    mode = keep_denormals()
    rows, classes, length, most = (
        job.rows,
        job.classes,
        job.boxes,
        job.capacity,
    )
    starts, places, left, limit = (
        job.starts,
        job.places,
        job.kept,
        job.iou_threshold,
    )
    apart = 4 * most
    others = scratch_memory(BOX_FIELDS * apart)
    for row in each_counted(counter, rows):
        start, end = load_i64(starts, row), load_i64(starts, row + 1)
        count, batch = 0, boxes + 4 * BOX_FIELDS * length * (row // classes)
        for at in range(start, end):
            box = batch + 4 * BOX_FIELDS * load_i64(places, at)
            if count == job.limit:
                break
            if is_suppressed(box, others, apart, count, limit):
                continue
            add_box(box, others, apart, count)
            store_i64(left, at, 1)
            count += 1
    set_float_mode(mode)


SUPPRESS = Task(_suppress)
"""Select boxes from rows of candidates, sorted by score; A has the numbers of the boxes of each batch entry."""


@backend.accelerates(*NMS_VERSIONS)
def nms(op: IndicesOnlyNms | SoftNms, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32."""
    if not is_f32(*inputs[:2]):
        return None
    SUPPRESS.prepare()
    SMALL_NMS.prepare()
    return nms_kernel(op, _run_nms, unread, _few_boxes)


@backend.accelerates(MulticlassNms8, MulticlassNms9)
def multiclass_nms(op: MulticlassNmsBase, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32 that classes share."""
    if (kernel := multiclass_kernel(op, _run_nms, *inputs)) is not None:
        SUPPRESS.prepare()
    return kernel


def _few_boxes(boxes: Array, scores: Array, is_centred: bool, settings: Settings) -> Kept | None:
    if scores.size > MAX_SMALL:
        return None
    return small_nms(contiguous(boxes), contiguous(scores), is_centred, *settings)


def _run_nms(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    corners, starts, places = candidates.corners, candidates.starts(rows), candidates.places
    boxes = np.empty((*corners.shape[:2], BOX_FIELDS), np.float32)
    for index, numbers in enumerate((*(corners[..., axis] for axis in range(4)), areas(corners))):
        boxes[..., index] = numbers
    kept = np.zeros(len(places), np.int64)
    longest = int(np.diff(starts).max(initial=0))
    most = -(-min(limit, longest) // LANES) * LANES
    job = NmsJob.fill(
        rows=rows, classes=candidates.classes, boxes=corners.shape[1], capacity=most, starts=starts.ctypes.data,
        places=places.ctypes.data, kept=kept.ctypes.data, iou_threshold=iou, limit=min(limit, longest),
    )  # fmt: skip
    count = threads_for(steps=2 * len(places))
    parallel_for(SUPPRESS.address, job, UNUSED, boxes.reshape(-1), UNUSED, UNUSED, count)
    return np.flatnonzero(kept)
