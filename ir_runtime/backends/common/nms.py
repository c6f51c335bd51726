"""Non-maximum suppression (NMS): the candidates of all classes are selected and sorted at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np

from ...ir.tensor import Array, Value
from ...ops.boxes import number
from ...ops.sort.multiclass import KeptBoxes, MulticlassNmsBase, nothing
from ...ops.sort.suppression import (
    IndicesOnlyNms,
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
    SoftNms,
)
from .. import UNREAD, Kernel
from .layout import is_f32

__all__ = [
    "NMS_VERSIONS",
    "Candidates",
    "FewBoxes",
    "Kept",
    "Settings",
    "Suppress",
    "multiclass_kernel",
    "nms_kernel",
]

NMS_VERSIONS = (
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
)

# The bits of a 64-bit sort key that a score leaves.
FREE_BITS = 31
# The bits of a score without its sign.
HIGHEST = np.int32(2**31 - 1)


@dataclass(frozen=True)
class Candidates:
    """The boxes of each class whose scores exceed the threshold: best first, equal scores by index.

    Args:
        corners: ``[batches, boxes, 4]``, lower coordinates first.
        classes: the number of classes of a batch entry.
        rows: the row (batch entry and class) of each candidate; ascending.
        places: the index of the box of each candidate.
    """

    corners: Array
    classes: int
    rows: Array
    places: Array

    @classmethod
    def select(cls, corners: Array, scores: Array, threshold: float) -> Candidates:
        """Select those of ``scores[batches, classes, boxes]`` that exceed a threshold; NaN does not."""
        batches, classes, boxes = scores.shape
        flat = scores.reshape(-1)
        found = np.flatnonzero(flat > threshold)
        width = max(boxes - 1, 1).bit_length()
        if (batches * classes - 1).bit_length() + width > FREE_BITS:
            rows, places = np.divmod(found, boxes)
            order = np.lexsort((-flat[found], rows))
            return cls(corners, classes, rows[order], places[order])
        # Sorting integer keys takes a tenth of the time: row, descending score, index.
        rows = found // boxes
        bits = (flat[found] + np.float32(0)).view(np.int32)
        falling = np.where(bits < 0, bits, bits ^ HIGHEST).view(np.uint32)
        keys = rows << (32 + width) | falling.astype(np.int64) << width | found - rows * boxes
        keys.sort()
        return cls(corners, classes, keys >> (32 + width), keys & ((1 << width) - 1))

    def best(self, rows: int, most: int, label: int) -> Candidates:
        """Return the first ``most`` candidates of each row, all if that is negative, without those of a class."""
        keep = self.rows % self.classes != label
        if most >= 0:
            keep &= np.arange(len(self.rows)) < self.starts(rows)[self.rows] + most
        return Candidates(self.corners, self.classes, self.rows[keep], self.places[keep])

    def starts(self, rows: int) -> Array:
        """Return where the candidates of each row begin, and where the last ones end."""
        return np.searchsorted(self.rows, np.arange(rows + 1))


Suppress = Callable[[Candidates, int, int, float], Array]
"""Takes candidates, the number of rows, the most boxes to keep of each row, and the IoU threshold, which is above 0;
returns the indices of the candidates that are kept, ascending."""

Kept: TypeAlias = tuple[Array, Array]
"""Batch entry, class and box of each that is kept, row by row, best first; and the scores."""


class Settings(NamedTuple):
    """The most boxes to keep of each row, at least 1; the IoU threshold, above 0; and what scores must exceed."""

    limit: int
    iou: float
    threshold: float

    @classmethod
    def of(cls, boxes: Array, scores: Array, others: Sequence[Array]) -> Settings | None:
        """Return the settings; ``None`` for soft NMS, limits of 0, and no scores: the reference computes these."""
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
"""Takes boxes, scores, whether boxes are given by their centres, and settings; ``None`` for too many boxes."""


def nms_kernel(
    op: IndicesOnlyNms | SoftNms,
    suppress: Suppress,
    unread: Collection[int] = (),
    few_boxes: FewBoxes | None = None,
) -> Kernel:
    """Return a kernel; soft NMS and limits of 0 run the reference.

    Args:
        op: the operation.
        suppress: suppresses candidates.
        unread: the outputs that nothing reads.
        few_boxes: does everything at once, where there are few boxes.
    """
    index = (op.index_type() if isinstance(op, IndicesOnlyNms) else op.output_type).dtype
    is_centred = op.box_encoding == "center"

    def kernel(boxes: Array, scores: Array, *others: Array) -> Array | tuple[Array, ...]:
        if (settings := Settings.of(boxes, scores, others)) is None:
            return op.evaluate(boxes, scores, *others)
        kept = None if few_boxes is None else few_boxes(boxes, scores, is_centred, settings)
        found, final = kept or _kept(op.corners(boxes), scores, settings, suppress)
        if op.sort_result_descending and scores.shape[0] * scores.shape[1] > 1:
            order = np.argsort(-final, kind="stable")
            found, final = found[order], final[order]
        if isinstance(op, IndicesOnlyNms):
            return found.astype(index)
        if 1 in unread and 2 in unread:
            return found.astype(index), UNREAD, UNREAD
        return op.packed(found, final)

    return Kernel(kernel)


def _kept(corners: Array, scores: Array, settings: Settings, suppress: Suppress) -> Kept:
    batches, classes, _ = scores.shape
    candidates = Candidates.select(corners, np.ascontiguousarray(scores), settings.threshold)
    kept = suppress(candidates, batches * classes, settings.limit, settings.iou)
    batch, label = np.divmod(candidates.rows[kept], classes)
    found = np.stack([batch, label, candidates.places[kept]], axis=1)
    return found, scores[batch, label, found[:, 2]]


def multiclass_kernel(
    op: MulticlassNmsBase, suppress: Suppress, boxes: Value, scores: Value, *roisnum: Value
) -> Kernel | None:
    """Return a kernel for classes that share boxes of f32; ``None`` where not, and for thresholds of 0."""
    is_finite = bool(np.isfinite(np.float32(op.score_threshold)))
    is_usual = op.iou_threshold > 0 and op.nms_eta == 1 and op.normalized
    if roisnum or not (is_f32(boxes, scores) and is_usual and is_finite):
        return None
    threshold = np.nextafter(np.float32(op.score_threshold), np.float32(-np.inf))  # which is enough itself
    evaluate: Callable[..., tuple[Array, Array, Array]] = op.evaluate

    def kernel(boxes: Array, scores: Array, *roisnum: Array) -> tuple[Array, Array, Array]:
        images, classes, count = scores.shape if scores.ndim == 3 else (0, 0, 0)
        if roisnum or not scores.size or boxes.shape != (images, count, 4):
            return evaluate(boxes, scores, *roisnum)
        rows = images * classes
        found = Candidates.select(boxes, np.ascontiguousarray(scores), float(threshold))
        found = found.best(rows, op.nms_top_k, op.background_class)
        kept = suppress(found, rows, count, op.iou_threshold)
        image, label = np.divmod(found.rows[kept], classes)
        place = found.places[kept]
        left = KeptBoxes(image, label, place, scores[image, label, place])
        parts = [op.best(left.take(image == index)) for index in range(images)]
        return op.outputs_of(boxes, [nothing(scores.dtype), *parts])

    return Kernel(kernel)
