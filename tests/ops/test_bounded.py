"""Declared bounds on the sizes of results hold for every sample."""

from __future__ import annotations

import math

import numpy as np
import pytest
from harness.layers import layer
from harness.sample import Sample, all_samples

from ir_runtime.ir.tensor import Value
from ir_runtime.ops import registry
from ir_runtime.ops._define.operation import MAX_PROPAGATED

BOUNDED: dict[str, list[Sample]] = {}
for _sample in all_samples():
    if _sample.cls.bounded:
        BOUNDED.setdefault(_sample.op, []).append(_sample)


@pytest.mark.parametrize("op", BOUNDED)
def test_no_output_has_more_than_the_product_or_the_sum(op: str) -> None:
    for sample in BOUNDED[op]:
        values = sample.values()
        sizes = [value.count.min for value in values]
        if 0 in sizes:
            continue
        most = max(math.prod(sizes), sum(sizes))
        for type in sample.layer().infer_types(*values):
            assert type.shape.is_static, "what inference cannot say needs a guard of another kind"
            assert Value(type).count.min <= most


def test_the_usual_ones_are_bounded_and_those_that_make_more_are_not() -> None:
    bounded = {cls.name for cls in registry if cls.bounded}
    assert {"Add", "MatMul", "Concat", "Reshape", "Transpose", "Slice", "ReduceSum", "SoftMax"} <= bounded
    makers = {
        "Broadcast",
        "Tile",
        "Range",
        "Pad",
        "OneHot",
        "Eye",
        "RandomUniform",
        "Interpolate",
        "ROIAlign",
    }
    assert not bounded & makers


@pytest.mark.parametrize("count", [MAX_PROPAGATED, MAX_PROPAGATED + 1])
def test_large_contents_are_not_computed_with(count: int) -> None:
    """Inference propagates small tensors only; the others are folded once, when the model is compiled."""
    data, axes = Value.constant(np.ones(count, np.int64)), Value.constant(np.array([0]))
    (total,) = layer("ReduceSum-1").infer_values(data, axes)
    assert (total.known() is not None) is (count <= MAX_PROPAGATED)
