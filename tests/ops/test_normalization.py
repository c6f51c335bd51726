"""Normalizations: contradictory inputs and attributes, and partial shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Value
from ir_runtime.ops import Op
from ir_runtime.ops.normalization import (
    GRN,
    LRN,
    MVN,
    MVN1,
    BatchNormInference,
    BatchNormInference1,
    GroupNormalization,
    NormalizeL2,
)

L2 = NormalizeL2(eps=1e-8, eps_mode="add")
MVN_6 = MVN(normalize_variance=True, eps=1e-8, eps_mode="inside_sqrt")
MVN_1 = MVN1(normalize_variance=True, eps=1e-8, reduction_axes=(1, -1))
WINDOW = LRN(alpha=1, beta=1, bias=1, size=3)
GROUPS = GroupNormalization(num_groups=2, epsilon=1e-5)
BATCH, BATCH_1 = BatchNormInference(epsilon=0), BatchNormInference1(epsilon=0)


def infer(op: Op, *inputs: Any) -> PartialShape:
    values = (
        Value.unknown(ElementType.f32, PartialShape(x)) if isinstance(x, str) else Value.constant(np.array(x))
        for x in inputs
    )
    (found,) = op.infer_types(*values)
    return found.shape


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        (L2, ("1..3,?", [1]), "1..3,?"),
        (MVN_6, ("...", [1]), "..."),
        (MVN_6, ("?,2", [0, -2]), "?,2"),
        (MVN_1, ("1,?,..5",), "1,?,..5"),
        (GROUPS, ("?,?,?", "4", "?"), "?,4,?"),
        (GROUPS, ("...", "4", "?"), "..."),
        (BATCH, ("?,1..8,3", "?", "2..9", "...", "?"), "?,2..8,3"),
        (BATCH_1, ("4", "?", "?,?", "?", "?"), "?,4"),
    ],
)
def test_partial_shapes(op: Op, inputs: tuple[Any, ...], expected: str) -> None:
    assert infer(op, *inputs) == PartialShape(expected)


def test_axes_decide_where_a_file_also_says_across_channels() -> None:
    data = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
    attributes = {"eps": "1e-9", "normalize_variance": "true", "across_channels": "true"}
    found = MVN1.parse(attributes | {"reduction_axes": "2"}).evaluate(data)
    np.testing.assert_allclose(found.mean(2), 0, atol=1e-6)
    found = MVN1.parse(attributes | {"reduction_axes": ""}).evaluate(data)
    np.testing.assert_allclose(found.mean((1, 2)), 0, atol=1e-6)
    assert np.abs(found.mean(2)).max() > 0.01


def test_late_axes_are_refused_with_the_same_words() -> None:
    data = np.ones((2, 3), np.float32)
    for op in (L2, MVN_6, WINDOW):
        with pytest.raises(InferenceError, match="axis 2 is out of range for rank 2"):
            op.evaluate(data, np.array([2]))


def test_large_numbers_do_not_overflow_in_the_norm() -> None:
    data = np.full((1, 4), 1e30, np.float32)
    np.testing.assert_allclose(L2.evaluate(data, np.array([1])), 0.5)
    np.testing.assert_allclose(GRN(bias=1).evaluate(np.full((1, 4), 6e4, np.float16)), 0.5, rtol=1e-3)


def test_lrn_of_nothing_is_empty() -> None:
    x = np.zeros((2, 0, 3), np.float32)
    assert LRN(alpha=0.5, beta=0.75, bias=1.0, size=3).evaluate(x, np.array([1])).shape == (2, 0, 3)
