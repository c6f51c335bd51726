"""Messages for invalid element-wise arithmetic and logic, cumulative sums and reductions."""

from __future__ import annotations

import numpy as np
from harness.refusals import refusal

REFUSALS = [
    refusal("lengths", "Add-1", "f32 2,3", "f32 2"),
    refusal("lengths without broadcasting", "Multiply-1", "f32 2,3", "f32 3", auto_broadcast="none"),
    refusal("lengths of pdpd", "Subtract-1", "f32 1,3", "f32 2,3", auto_broadcast="pdpd"),
    refusal("too many axes of pdpd", "BitwiseAnd-13", "i32 2,3", "i32 2,3,4", auto_broadcast="pdpd"),
    refusal("logic", "LogicalAnd-1", "boolean 2,3", "boolean 4,3"),
    refusal("logic of numbers", "LogicalNot-1", "f32 2"),
    refusal("types", "Add-1", "f32 2", "i32 2"),
    refusal("broadcasting rule", "Maximum-1", "f32 2", "f32 2", auto_broadcast="pddp"),
    refusal("too few inputs", "Add-1", "f32 2"),
    refusal("division by zero", "FloorMod-1", "i64 2", [1, 0]),
    refusal("buckets that fall", "Bucketize-3", "f32 2", np.float32([1, 3, 2])),
    refusal("division by zero when run", "Divide-1", [1, 2], [1, 0], _run=True),
    refusal("remainder by zero when run", "Mod-1", [1, 2], [1, 0], _run=True),
    refusal("truth values", "Sqrt-1", "boolean 2"),
    refusal("CumSum: a scalar", "CumSum-3", "f32", 1),
    refusal("CumSum: several axes", "CumSum-3", "f32 2,3", "i64 2"),
    refusal("CumSum: axis", "CumSum-3", "f32 2,3", 2),
    refusal("SegmentMax: a scalar", "SegmentMax-16", "f32", "i64 2", fill_mode="ZERO"),
    refusal("SegmentMax: one number", "SegmentMax-16", "f32 2", "i64", fill_mode="ZERO"),
    refusal("SegmentMax: counts", "SegmentMax-16", "f32 2", "i64 3", fill_mode="ZERO"),
    refusal("SegmentMax: segments in a list", "SegmentMax-16", "f32 2", "i64 2", "i64 1", fill_mode="ZERO"),
    refusal("SegmentMax: numbers that fall", "SegmentMax-16", "f32 3", [0, 1, 0], fill_mode="ZERO"),
    refusal("ReduceSum: axis", "ReduceSum-1", "f32 2,3", [2]),
    refusal("ReduceMean: axis of a scalar", "ReduceMean-1", "f32", [1]),
    refusal("ReduceMax: an axis twice", "ReduceMax-1", "f32 2,3", [1, -1]),
    refusal("ReduceL2: axes of two axes", "ReduceL2-4", "f32 2,3", [[0, 1]]),
    refusal("ReduceProd: too many axes", "ReduceProd-1", "f32 2,3", "i64 3"),
    refusal("ReduceSum: axes without axes", "ReduceSum-1", "f32 2,3"),
    refusal("ReduceLogicalAnd: numbers", "ReduceLogicalAnd-1", "f32 2,3", [0]),
    refusal("ReduceSum: type of the axes", "ReduceSum-1", "f32 2,3", np.float32([0])),
    refusal("ReduceSum: axis when run", "ReduceSum-1", np.ones((2, 3), np.float32), [2], _run=True),
]
