"""Boxes that are left when the best suppress those they overlap: candidates of all classes are found and sorted at once."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ....ir.tensor import Array, Value
from ....kernels.boxes import greedy
from ....ops._boxes import number
from ....ops.sort.suppression import (
    Indices,
    IndicesAndScores,
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
    Softened,
)
from ... import Kernel
from ...common.layout import is_f32
from .._backend import backend

__all__ = ["VERSIONS", "Candidates", "Choose", "suppressing"]

VERSIONS = (
    NonMaxSuppression1,
    NonMaxSuppression3,
    NonMaxSuppression4,
    NonMaxSuppression5,
    NonMaxSuppression9,
)

# Those of a whole number that a score leaves.
BITS = 31


@dataclass(frozen=True)
class Candidates:
    """The boxes of each class whose scores are high enough, best first and equal ones in order.

    Args:
        corners: ``[batches, boxes, 4]``, lower coordinates first.
        classes: of each batch entry.
        rows: the class of each candidate, counted through all batch entries; ascending.
        places: the box.
    """

    corners: Array
    classes: int
    rows: Array
    places: Array

    @classmethod
    def of(cls, corners: Array, scores: Array, above: float) -> Candidates:
        """Those of ``scores[batches, classes, boxes]`` that are above a number; NaN is not."""
        batches, classes, boxes = scores.shape
        flat = scores.reshape(-1)
        found = np.flatnonzero(flat > above)
        width = max(boxes - 1, 1).bit_length()
        if (batches * classes - 1).bit_length() + width > BITS:
            rows, places = np.divmod(found, boxes)
            order = np.lexsort((-flat[found], rows))
            return cls(corners, classes, rows[order], places[order])
        # Sorted as whole numbers, in a tenth of the time: row, falling score, place.
        bits = (flat[found] + np.float32(0)).view(np.int32).astype(np.int64)
        falling = np.where(bits < 0, bits & 0x7FFFFFFF, -1 - bits) + (1 << 31)
        rows, places = np.divmod(found, boxes)
        keys = np.sort((rows << (32 + width) | falling << width | places).astype(np.uint64)).astype(np.int64)
        return cls(corners, classes, keys >> (32 + width), keys & ((1 << width) - 1))

    def starts(self, rows: int) -> Array:
        """Where the candidates of each row begin, and where the last ones end."""
        return np.searchsorted(self.rows, np.arange(rows + 1))


Choose = Callable[[Candidates, int, int, float], Array]
"""Takes candidates, how many rows there are, how many boxes may be left of each, and the overlap that
suppresses, which is above 0; returns which candidates are left, ascending."""


def suppressing(op: Indices | Softened, choose: Choose) -> Kernel:
    """A kernel; scores that are lowered instead, and limits of 0, are left to the reference."""

    def kernel(boxes: Array, scores: Array, *given: Array) -> Array | tuple[Array, ...]:
        limit, iou, above, sigma = (number(x) for x in (*given, *[None] * (4 - len(given))))
        batches, classes, count = scores.shape
        if (
            sigma > 0
            or not iou > 0
            or not limit >= 1
            or boxes.shape != (batches, count, 4)
            or not scores.size
        ):
            return op.evaluate(boxes, scores, *given)
        candidates = Candidates.of(op.corners(boxes), np.ascontiguousarray(scores), above)
        left = choose(candidates, batches * classes, int(limit), iou)
        batch, label = np.divmod(candidates.rows[left], classes)
        found = np.stack([batch, label, candidates.places[left]], axis=1)
        final = scores[batch, label, found[:, 2]]
        if op.sort_result_descending:
            order = np.argsort(-final, kind="stable")
            found, final = found[order], final[order]
        if isinstance(op, IndicesAndScores):
            return op.packed(found, final)
        return found.astype(op.index_type().dtype)

    return kernel


@backend.accelerates(*VERSIONS)
def suppression(op: Indices | Softened, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """f32."""
    return suppressing(op, _one_by_one) if is_f32(*inputs[:2]) else None


def _one_by_one(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    found = [np.zeros(0, np.int64)]
    for row, (start, end) in enumerate(pairwise(candidates.starts(rows).tolist())):
        if start < end:
            boxes = candidates.corners[row // candidates.classes][candidates.places[start:end]]
            found.append(start + greedy(boxes, iou, limit, inclusive=True))
    return np.concatenate(found)
