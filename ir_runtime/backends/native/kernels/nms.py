"""Non-maximum suppression (NMS): each candidate is compared with one vector of kept boxes at a time.

For small inputs, one call selects, sorts and suppresses the boxes; for large ones, NumPy sorts the candidates of
each class by score first, and threads share the classes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.boxes import areas
from ....ops.sort.suppression import (
    IndicesOnlyNms,
    KeptBoxes,
    MulticlassNms8,
    MulticlassNms9,
    MulticlassNmsBase,
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
    SoftNms,
    empty_selection,
    number,
)
from ... import UNREAD, Kernel
from ...common.layout import is_f32
from .._backend import backend
from ..codegen import ir
from ..codegen.descriptor import Descriptor, f32, i64
from ..codegen.language import device, instruction, types
from ..codegen.memory import load_f32, load_i64, scratch_memory, store_f32, store_i64
from ..codegen.vectors import F32, I32, I64, LANES, Emit
from ..threading.denormals import keep_denormals, set_float_mode
from ..threading.parallel import parallel_for, threads_for
from ..threading.task import UNUSED, Task, each_counted, shared_counters
from ._copy import contiguous

__all__: list[str] = []

NMS_VERSIONS = (
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
)

# Bits of a 64-bit sort key that the score leaves free.
FREE_BITS = 31
# All bits of a score but its sign.
HIGHEST = np.int32(2**31 - 1)


@dataclass(frozen=True)
class Candidates:
    """The boxes of each class with scores above the threshold, by descending score; ties are ordered by index.

    Args:
        corners: the boxes, ``[batches, boxes, 4]``, lower coordinates first.
        classes: the number of classes in a batch entry.
        rows: the row (batch entry and class) of each candidate, ascending.
        places: the box index of each candidate.
    """

    corners: Array
    classes: int
    rows: Array
    places: Array

    @classmethod
    def select(cls, corners: Array, scores: Array, threshold: float) -> Candidates:
        """Select the candidates whose ``scores[batches, classes, boxes]`` exceed a threshold; NaN never does."""
        batches, classes, boxes = scores.shape
        flat = scores.reshape(-1)
        selected = np.flatnonzero(flat > threshold)
        width = max(boxes - 1, 1).bit_length()
        if (batches * classes - 1).bit_length() + width > FREE_BITS:
            rows, places = np.divmod(selected, boxes)
            order = np.lexsort((-flat[selected], rows))
            return cls(corners, classes, rows[order], places[order])
        # Sorting integer keys takes a tenth of the time: row, descending score, index.
        rows = selected // boxes
        bits = (flat[selected] + np.float32(0)).view(np.int32)
        falling = np.where(bits < 0, bits, bits ^ HIGHEST).view(np.uint32)
        keys = rows << (32 + width) | falling.astype(np.int64) << width | selected - rows * boxes
        keys.sort()
        return cls(corners, classes, keys >> (32 + width), keys & ((1 << width) - 1))

    def best(self, rows: int, most: int, label: int) -> Candidates:
        """Return the first ``most`` candidates of each row (all if negative), excluding class ``label``."""
        keep = self.rows % self.classes != label
        if most >= 0:
            keep &= np.arange(len(self.rows)) < self.starts(rows)[self.rows] + most
        return Candidates(self.corners, self.classes, self.rows[keep], self.places[keep])

    def starts(self, rows: int) -> Array:
        """Return the position of each row's first candidate, followed by the number of candidates."""
        return np.searchsorted(self.rows, np.arange(rows + 1))


Suppress = Callable[[Candidates, int, int, float], Array]
"""A function of candidates, the number of rows, the maximum number of boxes to keep per row, and the IoU threshold,
which is above 0; it returns the indices of kept candidates, ascending."""

Kept: TypeAlias = tuple[Array, Array]
"""The batch entry, class and box of each kept candidate, row by row, best first; and the scores."""


class Settings(NamedTuple):
    """The maximum number of boxes per class and batch entry, at least 1; the IoU threshold, above 0; and the score threshold."""

    limit: int
    iou: float
    threshold: float

    @classmethod
    def of(cls, boxes: Array, scores: Array, others: Sequence[Array]) -> Settings | None:
        """Read the settings; return ``None`` for soft NMS, a limit of 0 or no scores, which the reference computes."""
        limit, iou, threshold, sigma = (number(x) for x in (*others, *[None] * (4 - len(others))))
        batches, _, count = scores.shape
        if (
            sigma > 0
            or not iou > 0
            or not limit >= 1
            or boxes.shape != (batches, count, 4)
            or not scores.size
        ):
            return None
        return cls(int(limit), iou, threshold)


FewBoxes = Callable[[Array, Array, bool, Settings], "Kept | None"]
"""A function of boxes, scores, whether boxes are given as centres and sizes, and settings; it returns ``None`` for
too many boxes."""


def nms_kernel(
    op: IndicesOnlyNms | SoftNms,
    suppress: Suppress,
    unread: Collection[int] = (),
    few_boxes: FewBoxes | None = None,
) -> Kernel:
    """Return an NMS kernel; soft NMS and limits of 0 are left to the reference.

    Args:
        op: the operation.
        suppress: the function that suppresses candidates.
        unread: the outputs without consumers.
        few_boxes: the function that performs all steps at once for few boxes.
    """
    index = (op.index_type() if isinstance(op, IndicesOnlyNms) else op.output_type).dtype
    is_centred = op.box_encoding == "center"

    def kernel(boxes: Array, scores: Array, *others: Array) -> Array | tuple[Array, ...]:
        if (settings := Settings.of(boxes, scores, others)) is None:
            return op.evaluate(boxes, scores, *others)
        kept = None if few_boxes is None else few_boxes(boxes, scores, is_centred, settings)
        selected, final = kept or _select_boxes(op.corners(boxes), scores, settings, suppress)
        if op.sort_result_descending and scores.shape[0] * scores.shape[1] > 1:
            order = np.argsort(-final, kind="stable")
            selected, final = selected[order], final[order]
        if isinstance(op, IndicesOnlyNms):
            return selected.astype(index)
        if 1 in unread and 2 in unread:
            return selected.astype(index), UNREAD, UNREAD
        return op.build_outputs(selected, final)

    return Kernel(kernel)


def _select_boxes(corners: Array, scores: Array, settings: Settings, suppress: Suppress) -> Kept:
    batches, classes, _ = scores.shape
    candidates = Candidates.select(corners, np.ascontiguousarray(scores), settings.threshold)
    kept = suppress(candidates, batches * classes, settings.limit, settings.iou)
    batch, label = np.divmod(candidates.rows[kept], classes)
    places = candidates.places[kept]
    return np.stack([batch, label, places], axis=1), scores[batch, label, places]


def multiclass_kernel(
    op: MulticlassNmsBase, suppress: Suppress, boxes: Value, scores: Value, *roisnum: Value
) -> Kernel | None:
    """Return a multiclass NMS kernel for f32 boxes that classes share.

    Returns ``None`` for boxes that are not shared or not normalized, for an IoU threshold that is 0 or adaptive, and for
    a score threshold that is not finite.
    """
    is_finite = bool(np.isfinite(np.float32(op.score_threshold)))
    is_usual = op.iou_threshold > 0 and op.nms_eta == 1 and op.normalized
    if roisnum or not (is_f32(boxes, scores) and is_usual and is_finite):
        return None
    # Scores equal to the threshold are selected, too.
    threshold = np.nextafter(np.float32(op.score_threshold), np.float32(-np.inf))
    evaluate: Callable[..., tuple[Array, Array, Array]] = op.evaluate

    def kernel(boxes: Array, scores: Array, *roisnum: Array) -> tuple[Array, Array, Array]:
        images, classes, count = scores.shape if scores.ndim == 3 else (0, 0, 0)
        if roisnum or not scores.size or boxes.shape != (images, count, 4):
            return evaluate(boxes, scores, *roisnum)
        rows = images * classes
        candidates = Candidates.select(boxes, np.ascontiguousarray(scores), float(threshold))
        candidates = candidates.best(rows, op.nms_top_k, op.background_class)
        kept = suppress(candidates, rows, count, op.iou_threshold)
        image, label = np.divmod(candidates.rows[kept], classes)
        place = candidates.places[kept]
        left = KeptBoxes(image, label, place, scores[image, label, place])
        parts = [op.best(left.take(image == index)) for index in range(images)]
        return op.outputs_of(boxes, [empty_selection(scores.dtype), *parts])

    return Kernel(kernel)


# Values of a box: four coordinates of its corners, and its area.
BOX_FIELDS = 5


@instruction(*[types.int64] * 3, types.float32, returns=types.int64)
def _overlap_mask(emit: Emit, box: ir.Value, others: ir.Value, apart: ir.Value, limit: ir.Value) -> ir.Value:
    """Return a mask of the boxes in a vector whose IoU with ``box`` is at least ``limit``, which is above 0.

    ``others`` has a row for each value of a box, ``apart`` bytes apart. Boxes with NaN overlap nothing. Rounding
    follows the reference.
    """
    builder = emit.builder
    ours = [emit.splat(emit.load(emit.at(box, 4 * i), F32)) for i in range(BOX_FIELDS)]
    theirs = [emit.load(emit.at(others, builder.mul(apart, emit.i64(i)))) for i in range(BOX_FIELDS)]

    def side(i: int) -> ir.Value:
        low, high = emit.maximum(ours[i], theirs[i]), emit.minimum(ours[i + 2], theirs[i + 2])
        return emit.maximum(emit.subtract(high, low), emit.constant(0))

    shared = emit.multiply(side(0), side(1))
    union = emit.subtract(emit.add(theirs[4], ours[4]), shared)
    overlaps = builder.fcmp_ordered(">=", emit.divide(shared, union), emit.splat(limit))
    for area in (shared, theirs[4], ours[4]):
        overlaps = builder.and_(overlaps, builder.fcmp_ordered(">", area, emit.constant(0)))
    return builder.zext(builder.bitcast(overlaps, ir.IntType(LANES)), I64)


@device
def is_suppressed(box: int, others: int, apart: int, count: int, limit: np.float32) -> bool:
    """Return whether any of ``count`` boxes, stored as in `_overlap_mask`, has an IoU with ``box`` of at least ``limit``."""
    start = 0
    while start < count and _overlap_mask(box, others + 4 * start, apart, limit) == 0:
        start += LANES
    return start < count


@device
def add_box(box: int, others: int, apart: int, count: int) -> None:
    """Append a box to ``count`` boxes, stored as in `_overlap_mask`; unused lanes of its vector are NaN, which overlaps nothing."""
    for field in range(BOX_FIELDS):
        line = others + field * apart
        if count % LANES == 0:
            for lane in range(LANES):
                store_f32(line, count + lane, np.float32(np.nan))
        store_f32(line, count, load_f32(box, field))


# Bits of the box index in a sort key; columns of a result row.
INDEX_BITS, RESULT = 31, 3


class SmallNmsJob(Descriptor):
    """Parameters of `_small_nms`: sizes of the scores, whether boxes are given as centres and sizes, and the settings."""

    batches: i64
    classes: i64
    boxes: i64
    is_centred: i64
    limit: i64
    iou_threshold: f32
    score_threshold: f32


@instruction(types.float32, types.int64, returns=types.int64)
def _sort_key(emit: Emit, score: ir.Value, index: ir.Value) -> ir.Value:
    """Return a key that sorts by descending score, then by ascending index."""
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
    """Return the minimum of two numbers, or NaN if either is NaN."""
    return a if a != a or a < b else b


@device
def _higher(a: np.float32, b: np.float32) -> np.float32:
    return a if a != a or a > b else b


@device
def _store_boxes(boxes: int, count: int, is_centred: int, out: int) -> None:
    """Store each box's corners, lower coordinates first, and area."""
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
    """Sort i64 keys by bottom-up merge sort with a buffer of equal size; return the address of the sorted keys."""
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
    """Store the sort keys of the scores above a threshold; return how many there are."""
    selected = 0
    for index in range(count):
        score = load_f32(scores, index)
        if score > threshold:
            store_i64(keys, selected, _sort_key(score, index))
            selected += 1
    return selected


@Task
def _small_nms(call: int, job: SmallNmsJob, out: int, boxes: int, scores: int, final: int) -> None:
    """Perform NMS on boxes A and scores B as one work unit; C receives the scores of the selected boxes.

    The result is the number of selected boxes, then a row of batch entry, class and box index for each.
    """
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
        candidates = _candidates(scores + 4 * count * row, count, threshold, keys)
        ordered, kept = _sort(keys, candidates, spare), 0
        for at in range(candidates):
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


def small_nms(
    boxes: Array, scores: Array, is_centred: bool, limit: int, iou: float, threshold: float
) -> tuple[Array, Array]:
    """Return the selected boxes as rows of batch entry, class and box index, class by class, and their scores."""
    batches, classes, count = scores.shape
    limit = min(limit, count)
    most = batches * classes * limit
    selected, final = np.empty((1 + most, RESULT), np.int64), np.empty(most, np.float32)
    job = SmallNmsJob.fill(
        batches=batches, classes=classes, boxes=count, is_centred=is_centred, limit=limit, iou_threshold=iou,
        score_threshold=threshold,
    )  # fmt: skip
    parallel_for(_small_nms.address, job, selected, boxes, scores, final, 1)
    count = int(selected[0, 0])
    return selected[1 : 1 + count], final[:count]


# Maximum number of scores for which one call selects, sorts and suppresses.
MAX_SMALL = 1 << 13


class NmsJob(Descriptor):
    """Parameters of `_suppress`.

    ``rows`` is the number of rows of candidates; ``classes`` and ``boxes`` are those of a batch entry; ``capacity``
    is the size of the buffer of kept boxes, and ``limit`` the maximum number of boxes kept per row. ``starts`` is
    the address of the position of each row's first candidate, ``places`` of the box index of each candidate, and
    ``kept`` of a flag for each candidate.
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


@Task
def _suppress(call: int, job: NmsJob, _out: int, boxes: int) -> None:
    """Suppress candidates sorted by score; a work unit is a row of candidates. A holds the boxes of each batch entry."""
    counter = shared_counters(call)
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


@backend.accelerates(*NMS_VERSIONS)
def nms(op: IndicesOnlyNms | SoftNms, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a NonMaxSuppression kernel for f32 boxes and scores."""
    if not is_f32(*inputs[:2]):
        return None
    _suppress.prepare()
    _small_nms.prepare()
    return nms_kernel(op, _run_nms, unread, _run_small_nms)


@backend.accelerates(MulticlassNms8, MulticlassNms9)
def multiclass_nms(op: MulticlassNmsBase, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a MulticlassNms kernel for f32 boxes that classes share."""
    if (kernel := multiclass_kernel(op, _run_nms, *inputs)) is not None:
        _suppress.prepare()
    return kernel


def _run_small_nms(boxes: Array, scores: Array, is_centred: bool, settings: Settings) -> Kept | None:
    if scores.size > MAX_SMALL:
        return None
    return small_nms(contiguous(boxes), contiguous(scores), is_centred, *settings)


def _run_nms(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    corners, starts, places = candidates.corners, candidates.starts(rows), candidates.places
    boxes = np.empty((*corners.shape[:2], BOX_FIELDS), np.float32)
    for index, values in enumerate((*(corners[..., axis] for axis in range(4)), areas(corners))):
        boxes[..., index] = values
    kept = np.zeros(len(places), np.int64)
    longest = int(np.diff(starts).max(initial=0))
    most = -(-min(limit, longest) // LANES) * LANES
    job = NmsJob.fill(
        rows=rows, classes=candidates.classes, boxes=corners.shape[1], capacity=most, starts=starts,
        places=places, kept=kept, iou_threshold=iou, limit=min(limit, longest),
    )  # fmt: skip
    count = threads_for(steps=2 * len(places))
    parallel_for(_suppress.address, job, UNUSED, boxes.reshape(-1), UNUSED, UNUSED, count)
    return np.flatnonzero(kept)
