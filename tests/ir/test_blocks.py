"""Work in blocks: all elements in order, little memory, and a deadline check between blocks."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from harness.memory import counting

import ir_runtime as ir
from ir_runtime import opset13 as op
from ir_runtime._util.deadline import deadline
from ir_runtime.analysis.random_inputs import random_array
from ir_runtime.cli.outputs import summarize
from ir_runtime.ir import blocks as module
from ir_runtime.ir.blocks import blocks, by_blocks, filled
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.graph import Port

MANY = 1 << 20


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BLOCK", 7)


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16, bool, np.int64])
def test_blocks_have_all_elements_in_order(dtype: Any) -> None:
    whole = np.arange(60).reshape(3, 4, 5).astype(dtype)
    for array in (whole, whole.T, whole[::2], np.broadcast_to(whole[:, :1], whole.shape), whole[:0].T):
        parts = [block.copy() for (block,) in blocks(array)]
        assert [element for part in parts for element in part.tolist()] == array.reshape(-1).tolist()
        assert all(part.size <= 7 for part in parts)
        assert np.array_equal(by_blocks(lambda block: block, array.dtype, array), array)


@pytest.mark.usefixtures("tiny")
def test_blocks_of_several_arrays_are_aligned() -> None:
    one = np.arange(24).reshape(4, 6)
    for ours, theirs in blocks(one.T, np.ascontiguousarray(one.T)):
        assert ours.tolist() == theirs.tolist()


def test_blocks_check_the_deadline() -> None:
    with deadline(-1), pytest.raises(ir.LimitError):
        next(blocks(np.zeros(1)))
    with deadline(-1), pytest.raises(ir.LimitError):
        filled((1,), np.dtype(np.float32), np.zeros)


def test_the_summary_of_a_tensor_takes_little_memory() -> None:
    array = np.arange(MANY, dtype=np.float32)[::-1]
    with counting() as memory:
        found = summarize(array, ElementType.f32)
    assert memory.peak < array.nbytes
    assert (found.min, found.max, found.mean) == (0, MANY - 1, (MANY - 1) / 2)
    assert found.top == tuple((i, MANY - 1 - i) for i in range(5))


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("seed", range(30))
def test_the_best_of_blocks_are_the_best_of_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    array = rng.integers(-4, 4, 5 + seed).astype(np.float32)
    array[rng.random(array.size) < rng.choice([0, 0.3, 0.9])] = np.nan
    best = np.argsort(-array, kind="stable")[:5]
    found = summarize(array, ElementType.f32)
    if found.top is None:
        assert np.isnan(array).all()
        return
    assert [index for index, _ in found.top] == best.tolist()
    assert np.array_equal([value for _, value in found.top], array[best], equal_nan=True)


def test_random_inputs_take_little_more_memory_than_they_have() -> None:
    x = op.parameter([MANY], np.float32, name="x")
    graph = ir.Model([op.relu(x)], [x])._graph
    port = Port(next(iter(graph.of_type("Parameter"))).id, 0)
    with counting() as memory:
        array = random_array(graph, port, ElementType.f32, (MANY,))
    assert memory.peak < 1.5 * array.nbytes
    (parameter,) = graph.of_type("Parameter")
    assert parameter.id == port.layer
    assert np.array_equal(array, np.random.default_rng([0, 0]).standard_normal(MANY).astype(np.float32))
