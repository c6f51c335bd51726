"""The number of terms added for an element, which bounds the effect of another order of additions."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

import ir_runtime as ir
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.terms import CORNER, WINOGRAD, terms_of


def ones(*shape: int) -> Any:
    return op.constant(np.ones(shape, np.float32))


CASES: dict[str, tuple[tuple[int, ...], Callable[[Any], Any], int]] = {
    "convolution": ((1, 6, 9, 9), lambda x: op.convolution(x, ones(8, 6, 3, 3), [2, 2], [0, 0], [0, 0], [1, 1]), 54),
    "convolution by Winograd's algorithm": (
        (1, 6, 9, 9),
        lambda x: op.convolution(x, ones(8, 6, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1]),
        1399,
    ),
    "grouped convolution": (
        (1, 6, 9, 9),
        lambda x: op.group_convolution(x, ones(3, 4, 2, 3, 3), [1, 1], [0, 0], [0, 0], [1, 1]),
        18,
    ),
    "matrix product": ((4, 7), lambda x: op.matmul(x, ones(5, 7), False, True), 7),
    "transposed product": ((7, 4), lambda x: op.matmul(x, ones(7, 5), True, False), 7),
    "mean": ((2, 8, 12, 12), lambda x: op.reduce_mean(x, op.constant([2, 3]), False), 144),
    "mean of all": ((3, 5), lambda x: op.reduce_sum(x, op.constant([0, 1]), True), 15),
    "pooling": ((1, 2, 9, 9), lambda x: op.avg_pool(x, [1, 1], [0, 0], [0, 0], [3, 2], True), 6),
    "normalisation": ((2, 3, 5), lambda x: op.mvn(x, op.constant([-1]), True, 1e-5, "inside_sqrt"), 5),
    "norm": ((2, 3, 5), lambda x: op.normalize_l2(x, op.constant([1]), 1e-5, "add"), 3),
    "probabilities": ((2, 9), lambda x: op.softmax(x, 1), 9),
    "running sum": ((2, 9), lambda x: op.cum_sum(x, op.constant(1)), 9),
    "equation": ((2, 3, 7), lambda x: op.einsum([x, ones(2, 7, 5)], "bij,bjk->bik"), 7),
    "equation with an ellipsis": ((2, 3, 7), lambda x: op.einsum([x, ones(7)], "...j,j->..."), 7),
    "groups": ((1, 6, 4, 4), lambda x: op.group_normalization(x, ones(6), ones(6), 2, 1e-5), 48),
    "sum of two": ((2, 3), lambda x: op.add(x, x), 1),
    "maximum": ((2, 3), lambda x: op.relu(x), 1),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_the_terms_of_a_layer(case: str, tmp_path: Path) -> None:
    shape, build, expected = CASES[case]
    x = op.parameter(list(shape), np.float32)
    ov.save_model(ov.Model([build(x)], [x]), tmp_path / "net.xml", compress_to_fp16=False)
    reference = Reference(ir.read_model(tmp_path / "net.xml"))
    found = []

    def look(layer: Any, inputs: Any, outputs: Any) -> Any:
        found.append(terms_of(layer, inputs, outputs[0]))
        return outputs

    reference.run([np.ones(shape, np.float32)], look)
    assert max(found).number == expected


def test_the_amplification_of_winograds_algorithm() -> None:
    b = np.array([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
                  [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]])  # fmt: skip
    g = np.array([[6, 0, 0], [-4, -4, -4], [-4, 4, -4], [1, 2, 4], [1, -2, 4], [0, 0, 24]]) / 24
    a = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]])
    x, w = np.arange(6) ** 2, np.array([3, 1, 2])
    np.testing.assert_allclose(a @ ((b @ x) * (g @ w)), np.correlate(x, w))
    errors = (a**2) @ ((b**2).sum(1) * (g**2).sum(1))
    assert abs(errors.mean() / 3 - WINOGRAD) < 0.05
    assert abs(errors.max() / errors.mean() - CORNER) < 0.05  # the root, for each of two axes
