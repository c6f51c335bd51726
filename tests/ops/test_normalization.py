"""Normalizations: inputs and attributes that contradict each other, and partial shapes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime.errors import InferenceError, ValidationError
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
    ("op", "inputs", "message"),
    [
        (L2, ("2,3", [2]), r"axis 2 is out of range for rank 2; allowed: \[-2, 1\]"),
        (L2, ("2,3", [1, -1]), r"axis list \[1, -1\] names an axis of rank 2 twice"),
        (L2, ("2,3", [[1]]), r"axes must be a scalar or 1-D, not of shape \[1,1\]"),
        (MVN_6, ("2,3", [2]), r"axis 2 is out of range for rank 2"),
        (MVN_6, ("2,3", 1), r"axes have shape \[\]; they must be 1-D"),
        (MVN_6, ("2,3", np.array([1], np.int8)), r"input 'axes' is i8; allowed are i64, i32"),
        (MVN_1, ("2",), r"axis 1 is out of range for rank 1"),
        (WINDOW, ("2,3", [-3]), r"axis -3 is out of range for rank 2"),
        (WINDOW, ("2,3", 1), r"axes have shape \[\]; they must be 1-D"),
        (GRN(bias=1), ("3",), r"data has shape \[3\]; it must have 2 to 4 dimensions"),
        (GRN(bias=1), ("1,2,3,4,5",), r"data has shape \[1,2,3,4,5\]; it must have 2 to 4 dimensions"),
        (GROUPS, ("4", "4", "4"), r"data has shape \[4\]; it must have at least 2 dimensions"),
        (GROUPS, ("1,4", "4,1", "4"), r"scale has shape \[4,1\]; it must be 1-D"),
        (GROUPS, ("1,4", "4", ""), r"bias has shape \[\]; it must be 1-D"),
        (GROUPS, ("1,4", "3", "4"), r"scale has 3 elements; there are 4 channels"),
        (GROUPS, ("...", "4", "2"), r"bias has 2 elements; there are 4 channels"),
        (GROUPS, ("1,3,8", "3", "?"), r"3 channels do not divide into 2 groups"),
        (GROUPS, ("1,..1,8", "?", "?"), r"..1 channels are too few for 2 groups"),
        (BATCH, ("4", "4", "4", "4", "4"), r"data has shape \[4\]; it must have at least 2 dimensions"),
        (BATCH, ("1,4", "4", "4", "4", "3"), r"variance has 3 elements; there are 4 channels"),
        (BATCH, ("1,?", "2..4", "4", "5", "?"), r"mean has 5 elements; there are 4 channels"),
        (
            BATCH,
            ("1,0", "?", "?", "?", "?"),
            r"data of shape \[1,0\] has no channels; it must have at least 1",
        ),
        (BATCH_1, ("4", "4", "1,5,8", "?", "?"), r"gamma has 4 elements; there are 5 channels"),
    ],
)
def test_refused_inputs(op: Op, inputs: tuple[Any, ...], message: str) -> None:
    with pytest.raises(InferenceError, match=message):
        infer(op, *inputs)


@pytest.mark.parametrize(
    ("cls", "attributes", "message"),
    [
        (NormalizeL2, {"eps": "0", "eps_mode": "add"}, "'eps' must be a number greater than 0, not '0'"),
        (NormalizeL2, {"eps": "1e-9"}, "'eps_mode' is missing; it must be one of add, max"),
        (NormalizeL2, {"eps": "1", "eps_mode": "mul"}, "'eps_mode' must be one of add, max, not 'mul'"),
        (MVN, {"eps": "-1", "eps_mode": "inside_sqrt"}, "'eps' must be a number greater than 0, not '-1'"),
        (MVN, {"eps": "1", "eps_mode": "inside"}, "not 'inside'; did you mean 'inside_sqrt'"),
        (MVN1, {"eps": "1"}, "'normalize_variance' is missing; it must be true or false"),
        (LRN, {"size": "0"}, "'size' must be an integer at least 1, not '0'"),
        (LRN, {"beta": "0"}, "'beta' must be a number greater than 0, not '0'"),
        (GRN, {}, "'bias' is missing; it must be a number greater than 0"),
        (GroupNormalization, {"num_groups": "0"}, "'num_groups' must be an integer at least 1, not '0'"),
        (BatchNormInference, {"epsilon": "-1"}, "'epsilon' must be a number at least 0, not '-1'"),
    ],
)
def test_refused_attributes(cls: type[Op], attributes: dict[str, str], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        cls.parse(attributes)


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
