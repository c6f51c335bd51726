"""Non-maximum suppression of few boxes: selection, sorting and suppression by one call."""

from __future__ import annotations

import numpy as np

from ....ir.tensor import Array
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..codegen.vectors import I32, I64, LANES, Emit
from ..threading.denormals import keep_denormals, set_float_mode
from ..threading.parallel import parallel_for
from ..threading.task import Task, load_args
from ._box_overlap import BOX_FIELDS, add_box, is_suppressed

__all__ = ["SMALL_NMS", "small_nms"]

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
        width, height = (
            load_f32(place, 2) - load_f32(place, 0),
            load_f32(place, 3) - load_f32(place, 1),
        )
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
    batches, classes, count = (
        job.batches,
        job.classes,
        job.boxes,
    )
    limit, overlap, threshold = (
        job.limit,
        job.iou_threshold,
        job.score_threshold,
    )
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
