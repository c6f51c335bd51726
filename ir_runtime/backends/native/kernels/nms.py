"""Non-maximum suppression (NMS): each candidate is compared with a vector of kept boxes at a time.

Few boxes are selected, sorted and suppressed by one call.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.boxes import areas
from ....ops.sort.multiclass import MulticlassNms8, MulticlassNms9, MulticlassNmsBase
from ....ops.sort.suppression import IndicesOnlyNms, SoftNms
from ... import Kernel
from ...common.layout import is_f32
from ...common.nms import NMS_VERSIONS, Candidates, Kept, Settings, multiclass_kernel, nms_kernel
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..codegen.vectors import F32, I32, I64, LANES, Emit
from ..threading.denormals import keep_denormals, set_float_mode
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_counted, load_args
from ._copy import contiguous

__all__: list[str] = []

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


@device
def is_suppressed(box: int, others: int, apart: int, count: int, limit: np.float32) -> bool:
    """Return whether one of ``count`` boxes, in columns that are ``apart`` bytes from each other, overlaps a box."""
    start = 0
    while start < count and _any_overlap(box, others + 4 * start, apart, limit) == 0:
        start += LANES
    return start < count


@device
def add_box(box: int, others: int, apart: int, count: int) -> None:
    """Add a box to ``count`` others; the rest of a vector has NaN, which overlap nothing."""
    for fact in range(BOX_FIELDS):
        line = others + fact * apart
        if count % LANES == 0:
            for lane in range(LANES):
                store_f32(line, count + lane, np.float32(np.nan))
        store_f32(line, count, load_f32(box, fact))


# Bits of a sort key that the index of a box takes; numbers of a result.
INDEX_BITS, RESULT = 31, 3


class SmallNmsJob(Descriptor):
    """The job of `SMALL_NMS`: sizes of the scores, whether boxes are given by their centres, and the settings."""

    batches: i64
    classes: i64
    boxes: i64
    is_centred: i64
    limit: i64
    iou_threshold: f32
    score_threshold: f32


@instruction(types.float32, types.int64, returns=types.int64)
def _sort_key(emit: Emit, score: ir.Value, index: ir.Value) -> ir.Value:
    """Return a number that ascends while scores descend, and with the index of equal ones."""
    builder = emit.builder
    zero, none = ir.Constant(score.type, 0.0), ir.Constant(I32, 0)
    bits = builder.select(builder.fcmp_ordered("==", score, zero), none, builder.bitcast(score, I32))
    low = builder.and_(bits, ir.Constant(I32, 0x7FFFFFFF))
    is_negative = builder.icmp_signed("<", bits, none)
    falling = builder.select(is_negative, low, builder.sub(ir.Constant(I32, -1), bits))
    place = builder.add(builder.sext(falling, I64), emit.i64(1 << 31))
    return builder.or_(builder.shl(place, emit.i64(INDEX_BITS)), index)


@device
def _lower(a: np.float32, b: np.float32) -> np.float32:
    """Return the minimum; NaN if one is NaN."""
    return a if a != a or a < b else b


@device
def _higher(a: np.float32, b: np.float32) -> np.float32:
    return a if a != a or a > b else b


@device
def _store_boxes(boxes: int, count: int, is_centred: int, out: int) -> None:
    """Store corners, the lower coordinates first, and area of each box."""
    half = np.float32(0.5)
    for index in range(count):
        box, place = boxes + 16 * index, out + 4 * BOX_FIELDS * index
        for axis in range(2):
            first, second = load_f32(box, axis), load_f32(box, axis + 2)
            if is_centred != 0:
                side = second * half
                first, second = first - side, first + side
            store_f32(place, axis, _lower(first, second))
            store_f32(place, axis + 2, _higher(first, second))
        width, height = load_f32(place, 2) - load_f32(place, 0), load_f32(place, 3) - load_f32(place, 1)
        store_f32(place, 4, width * height)


@device
def _sort(keys: int, count: int, other: int) -> int:
    """Sort numbers (bottom-up merge sort) with memory for as many; return the address of the sorted ones."""
    width = 1
    while width < count:
        for start in range(0, count, 2 * width):
            middle, end = min(start + width, count), min(start + 2 * width, count)
            a, b = start, middle
            for place in range(start, end):
                takes_first = b >= end
                if a < middle and b < end:
                    takes_first = load_i64(keys, a) <= load_i64(keys, b)
                if takes_first:
                    store_i64(other, place, load_i64(keys, a))
                    a += 1
                else:
                    store_i64(other, place, load_i64(keys, b))
                    b += 1
        keys, other = other, keys
        width *= 2
    return keys


@device
def _candidates(scores: int, count: int, threshold: np.float32, keys: int) -> int:
    """Store the sort keys of scores above a threshold; return how many there are."""
    found = 0
    for index in range(count):
        score = load_f32(scores, index)
        if score > threshold:
            store_i64(keys, found, _sort_key(score, index))
            found += 1
    return found


def _small_nms(call: int) -> None:
    address, out, boxes, scores, final, _ = load_args(call)
    job = SmallNmsJob.at(address)
    mode = keep_denormals()
    batches, classes, count = job.batches, job.classes, job.boxes
    limit, overlap, threshold = job.limit, job.iou_threshold, job.score_threshold
    apart = 4 * ((min(limit, count) + LANES - 1) // LANES * LANES)
    others, corners = scratch_memory(BOX_FIELDS * apart), scratch_memory(4 * BOX_FIELDS * count)
    keys, spare = scratch_memory(8 * count), scratch_memory(8 * count)
    total = 0
    for row in range(batches * classes):
        batch = row // classes
        if row == batch * classes:
            _store_boxes(boxes + 16 * count * batch, count, job.is_centred, corners)
        found = _candidates(scores + 4 * count * row, count, threshold, keys)
        ordered, kept = _sort(keys, found, spare), 0
        for at in range(found):
            place = load_i64(ordered, at) & 0x7FFFFFFF
            box = corners + 4 * BOX_FIELDS * place
            if kept == limit:
                break
            if is_suppressed(box, others, apart, kept, overlap):
                continue
            add_box(box, others, apart, kept)
            kept += 1
            store_f32(final, total, load_f32(scores, count * row + place))
            total += 1
            store_i64(out, 3 * total, batch)
            store_i64(out, 3 * total + 1, row - batch * classes)
            store_i64(out, 3 * total + 2, place)
    store_i64(out, 0, total)
    set_float_mode(mode)


SMALL_NMS = Task(_small_nms)
"""Select boxes: A has boxes, B scores, C is for the scores of those selected.

The result has their number, then a row of batch entry, class and box for each."""


def small_nms(
    boxes: Array, scores: Array, is_centred: bool, limit: int, iou: float, threshold: float
) -> tuple[Array, Array]:
    """Return the selected boxes, in rows of batch entry, class and index, and their scores; class by class."""
    batches, classes, count = scores.shape
    limit = min(limit, count)
    most = batches * classes * limit
    found, final = np.empty((1 + most, RESULT), np.int64), np.empty(most, np.float32)
    job = SmallNmsJob.fill(
        batches=batches, classes=classes, boxes=count, is_centred=is_centred, limit=limit, iou_threshold=iou,
        score_threshold=threshold,
    )  # fmt: skip
    parallel_for(SMALL_NMS.address, job, found, boxes, scores, final, 1)
    number = int(found[0, 0])
    return found[1 : 1 + number], final[:number]


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
    rows, classes, length, most = job.rows, job.classes, job.boxes, job.capacity
    starts, places, left, limit = job.starts, job.places, job.kept, job.iou_threshold
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
