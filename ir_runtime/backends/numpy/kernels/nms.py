"""Non-maximum suppression, one class after the other."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

import numpy as np

from ....ir.tensor import Array, Value
from ....ops.kernels.boxes import greedy_nms
from ....ops.sort.multiclass import MulticlassNms8, MulticlassNms9, MulticlassNmsBase
from ....ops.sort.suppression import IndicesOnlyNms, SoftNms
from ... import Kernel
from ...common.layout import is_f32
from ...common.nms import NMS_VERSIONS, Candidates, multiclass_kernel, nms_kernel
from .._backend import backend

__all__: list[str] = []


@backend.accelerates(*NMS_VERSIONS)
def nms(op: IndicesOnlyNms | SoftNms, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a kernel for f32."""
    return nms_kernel(op, _suppress) if is_f32(*inputs[:2]) else None


@backend.accelerates(MulticlassNms8, MulticlassNms9)
def multiclass_nms(op: MulticlassNmsBase, *inputs: Value, unread: Collection[int] = ()) -> Kernel | None:
    """Return a kernel for f32 that classes share."""
    return multiclass_kernel(op, _suppress, *inputs)


def _suppress(candidates: Candidates, rows: int, limit: int, iou: float) -> Array:
    found = [np.zeros(0, np.int64)]
    for row, (start, end) in enumerate(pairwise(candidates.starts(rows).tolist())):
        if start < end:
            boxes = candidates.corners[row // candidates.classes][candidates.places[start:end]]
            found.append(start + greedy_nms(boxes, iou, limit, inclusive=True))
    return np.concatenate(found)
