"""Evaluation of single layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ir_runtime import opset8 as ops
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.evaluation import evaluate_layer, stands_alone

X: Any = ops.parameter([2], np.float32, name="x")


def test_outputs_are_a_tuple_of_arrays() -> None:
    (doubled,) = evaluate_layer(ops.add(X, X).layer, [np.float32([1, 2]), np.float32([1, 2])])
    assert doubled.tolist() == [2, 4]
    halves = evaluate_layer(ops.split(X, 0, 2).layer, [np.float32([1, 2]), np.array(0)])
    assert [half.tolist() for half in halves] == [[1], [2]]


def test_element_types_say_how_encoded_numbers_are_read() -> None:
    layer = ops.convert(ops.constant(np.uint8([1]), "nf4"), "f32").layer
    (value,) = evaluate_layer(layer, [np.uint8([15])], [ElementType.nf4])
    assert value.tolist() == [1.0]


def test_nothing_is_warned_of() -> None:
    (quotient,) = evaluate_layer(ops.divide(X, X).layer, [np.float32([1, 0]), np.float32([0, 0])])
    assert np.isinf(quotient[0])
    assert np.isnan(quotient[1])


@pytest.mark.parametrize(
    ("node", "alone"),
    [(ops.relu(X), True), (X, False), (ops.read_value(X, "v", "f32", [2]), False), (ops.if_op(X), False)],
    ids=["ReLU", "Parameter", "ReadValue", "If"],
)
def test_what_stands_alone(node: Any, alone: bool) -> None:
    assert stands_alone(node.layer) is alone
