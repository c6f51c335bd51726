"""Samples of attention: masks, causality, scales, broadcast batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from harness.sample import Sample, case, numbers, scalar

# The plugin computes f64 as f32.
F64 = {"_oracle": "plugin", "_rtol": 1e-6, "_atol": 1e-5, "_differs": "the plugin computes f64 as f32"}
EMPTY = {
    "_oracle": "none",
    "_differs": "the plugin leaves the memory as it was where there are no keys",
    "_expect": (np.zeros((1, 2, 2), "f4"),),
}


def attend(*inputs: Any, **attributes: Any) -> Sample:
    return case("ScaledDotProductAttention-13", *inputs, **{"causal": False} | attributes)


def three(*batch: int, queries: int = 2, keys: int = 3, dtype: str = "f32") -> tuple[Any, Any, Any]:
    shapes = ((queries, 4), (keys, 4), (keys, 2))
    return tuple(numbers(*batch, *s, dtype=dtype, seed=i) for i, s in enumerate(shapes))  # type: ignore[return-value]


SEEN = np.array([[[True, False, True], [False, True, True]]])

SAMPLES = [
    attend(*three(1)),
    attend(*three(2)),
    attend(*three(2, 3)),
    attend(*three(1, 2, 1, 2)),
    attend(*three(1), causal=True),
    attend(*three(2, queries=5, keys=3), causal=True),
    attend(*three(2, queries=3, keys=5), causal=True),
    attend(*three(1, queries=1, keys=1), causal=True),
    attend(*three(1, queries=1), numbers(1, 1, 3)),
    attend(*three(1), SEEN),
    attend(*three(2), SEEN),
    attend(*three(2, 3), SEEN[None]),
    attend(*three(1), np.array([[[True, False, False], [False, False, False]]])),
    attend(*three(1), np.full((1, 2, 3), -np.inf, "f4")),
    attend(*three(1), np.array([[[0, -np.inf, 1], [-np.inf, -3, -np.inf]]], "f4")),
    attend(*three(1), numbers(1, 2, 3)),
    attend(*three(1), numbers(2, 3)),
    attend(*three(1), numbers(1, 3)),
    attend(*three(2), numbers(2, 1, 3)),
    attend(*three(1), numbers(4, 2, 3)),
    attend(*three(1), numbers(1, 2, 1)),
    attend(*three(1), scalar(0, "f32")),
    attend(*three(1), scalar(0, "f32"), scalar(2, "f32")),
    attend(*three(1), numbers(1, 2, 3), np.array([0.25], "f4")),
    attend(*three(1), numbers(1, 2, 3), scalar(-0.25, "f32")),
    attend(*three(1), scalar(0, "f32"), np.array([2], "f4"), causal=True),
    attend(*three(2), numbers(7, 7), causal=True),
    attend(*three(2, 1), *(), causal=True),
    attend(numbers(2, 1, 2, 4), numbers(1, 3, 5, 4), numbers(1, 3, 5, 2)),
    attend(numbers(2, 3, 2, 4), numbers(3, 5, 4), numbers(3, 5, 2)),
    attend(numbers(3, 2, 4), numbers(2, 3, 5, 4), numbers(2, 3, 5, 2), numbers(2, 1, 2, 5)),
    attend(numbers(1, 0, 4), *three(1)[1:]),
    attend(three(1)[0], numbers(1, 0, 4), numbers(1, 0, 2), **EMPTY),
    attend(*three(1, dtype="f64"), **F64),
    attend(*three(2, dtype="f16"), causal=True),
    attend(*three(2, dtype="f16"), numbers(2, 2, 3, dtype="f16"), scalar(0.5, "f16")),
    attend(*three(2, dtype="bf16")),
    attend(*three(2, dtype="bf16"), SEEN),
]
