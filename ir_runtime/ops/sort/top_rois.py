"""The regions with the best scores."""

from __future__ import annotations

import numpy as np

from ...errors import InferenceError
from ...ir.shape import PartialShape
from ...ir.tensor import Array, Value
from .._define.operation import T_FLOAT, Input, Op, Output, attr, op
from ..kernels.boxes import descending


@op("ExperimentalDetectronTopKROIs-6", spec="sort/experimental-detectron-top-krois-6")
class TopKROIs(Op):
    """The ``rois`` with the largest ``probs``, best first; zeros where there are fewer."""

    flops_per_element = 0
    flops_per_input = {"probs": 1}

    rois = Input(T_FLOAT, "[regions, 4]")
    probs = Input(T_FLOAT, "[regions]: their scores")
    best = Output(T_FLOAT, "[max_rois, 4]")

    max_rois: int = attr(0, ge=0, doc="how many regions to choose")

    def infer(self, rois: Value, probs: Value) -> PartialShape:
        if not rois.shape.compatible(PartialShape([-1, 4])):
            raise InferenceError(
                f"rois must be of shape [regions, 4], found {rois.shape}", clause="rois is [regions, 4]"
            )
        regions = -1 if rois.shape.rank is None else rois.shape[0]
        one_each = PartialShape([regions])
        if not probs.shape.compatible(one_each):
            raise InferenceError(
                f"probs must be of shape {one_each}, a score for each of rois, found {probs.shape}",
                clause="probs has a score for each region",
            )
        return PartialShape([self.max_rois, 4])

    def evaluate(self, rois: Array, probs: Array) -> Array:
        scores = probs.astype(np.float32) if probs.dtype.kind == "V" else probs
        order = descending(scores, most=self.max_rois)
        best = np.zeros((self.max_rois, 4), rois.dtype)
        best[: len(order)] = rois[order]
        return best
