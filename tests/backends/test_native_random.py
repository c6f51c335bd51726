"""Random numbers of the native backend have the bits of the reference, in consecutive runs.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from harness.other_vectors import same_with_other_vectors

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime.backends import available
from ir_runtime.ir.tensor import Array

pytestmark = pytest.mark.skipif("native" not in available(), reason="native is not installed")

SEEDS = [(3, 5), (-(2**63) + 5, -3), (-1, 2**62), (2**33, 0)]
SHAPES = [(), (7,), (3, 0), (1, 64), (5, 13), (64, 1000), (20011,)]


def drawn(model: ir.Model, backend: str, threads: int, *feeds: Array) -> list[Array]:
    request = ir.compile_model(
        model, backend=backend, config={"INFERENCE_NUM_THREADS": threads}
    ).create_infer_request()
    return [np.array(request.infer(list(feeds))[0]) for _ in range(3)]


def uniform(shape: Any, seeds: tuple[int, int], *limits: Any) -> Any:
    low, high = limits or (op.constant(np.float32(n)) for n in (-3.7, 1.3))
    return op.random_uniform(shape, low, high, "f32", *seeds)


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize("shape", SHAPES)
def test_constant_shapes(shape: tuple[int, ...], seeds: tuple[int, int], threads: int) -> None:
    model = ir.Model([uniform(op.constant(np.array(shape, np.int64)), seeds)], [])
    wanted = drawn(model, "reference", 1)
    assert not wanted[0].size or (wanted[0] != wanted[1]).any()
    for found, each in zip(drawn(model, "native", threads), wanted, strict=True):
        np.testing.assert_array_equal(found, each, strict=True)


def test_shapes_and_limits_from_inputs() -> None:
    shape = op.parameter([2], np.int64, name="shape")
    limits = [op.parameter([1], np.float32, name=name) for name in ("low", "high")]
    model = ir.Model([uniform(shape, (1, 2), *limits)], [shape, *limits])
    feeds = np.array([3, 50]), np.float32([-1e30]), np.float32([3e37])
    for found, each in zip(
        drawn(model, "native", 2, *feeds), drawn(model, "reference", 1, *feeds), strict=True
    ):
        np.testing.assert_array_equal(found, each, strict=True)
    with pytest.raises(ir.errors.IRError, match="below maxval"):
        drawn(model, "native", 2, feeds[0], feeds[2], feeds[1])


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
