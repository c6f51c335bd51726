"""Memory limits of debugging: arrays of a run, tensors kept between runs, and copies made to judge them.

Memory is counted by NumPy's allocator. Scratch memory of kernels is not limited, so the models use layers without any.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.memory import counting

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.debug.spilling import Kept, MemoryBudget, Tensors, keeping
from ir_runtime.ir import blocks
from ir_runtime.ir.graph import Port

LIMIT = 1 << 21
SHARES = (0.01, 0.16, 0.6)
"""Sizes of a tensor in f32, of which some are refused, as parts of the limit."""
SLACK = LIMIT // 20
"""For blocks, and for arrays that do not grow with the tensors."""


def decided(tiled: ir.Node) -> ir.Node:
    return op.exp(op.convert(op.convert(op.floor(op.exp(tiled)), "i32"), "f32"))


def infinite(tiled: ir.Node) -> ir.Node:
    return op.exp(op.log(op.multiply(tiled, np.float32(0))))


def doubled(tiled: ir.Node) -> ir.Node:
    for _ in range(3):
        tiled = op.concat([tiled, tiled], 0)
    return tiled


MODELS: dict[str, Callable[[ir.Node], ir.Node]] = {
    made.__name__: made for made in (decided, infinite, doubled)
}
WORK: dict[str, Callable[[ir.Model, list[Any]], Any]] = {
    "bisect": lambda model, inputs: debug.bisect(model, inputs, "reference"),
    "compare": lambda model, inputs: debug.compare(model, inputs, "reference"),
    "compare as bf16": lambda model, inputs: debug.compare(model, inputs, "reference", precision="bf16"),
    "oracle": debug.oracle,
    "reduce": lambda model, inputs: debug.reduce(model, inputs, "reference"),
    "trace-nan": debug.trace_nan,
    "trace-nan as f16": lambda model, inputs: debug.trace_nan(model, inputs, "f16"),
}


def model_of(
    make: Callable[[ir.Node], ir.Node], count: int, when_run: bool, folder: Path
) -> tuple[ir.Model, list[Any]]:
    """Return a model of a tensor with so many elements, a data-dependent number, or the file."""
    x = op.parameter([1], np.float32, name="x")
    times = op.parameter([1], np.int64, name="times") if when_run else op.constant(np.array([count]))
    outputs = [make(op.tile(x, times))]
    ir.save_model(ir.Model(outputs, [x, times] if when_run else [x]), folder / "net.xml")
    model = ir.read_model(folder / "net.xml", limits=ir.Limits(memory=LIMIT))
    return model, [np.ones(1, np.float32), *([np.array([count])] if when_run else [])]


@pytest.mark.parametrize("when_run", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("kind", WORK)
def test_it_stays_within_the_limit(
    kind: str, name: str, when_run: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "BLOCK", 512)
    results = set()
    for share in SHARES:
        model, inputs = model_of(MODELS[name], int(LIMIT * share / 4), when_run, tmp_path)
        with counting() as memory:
            try:
                WORK[kind](model, inputs)
                results.add("done")
            except ir.LimitError as refused:
                results.add("refused" if refused.limit == "memory" else refused.limit)
        assert memory.peak <= LIMIT + SLACK, (share, results)
    assert results == {"done", "refused"}


def test_tensors_become_files_when_the_budget_shrinks() -> None:
    budget = MemoryBudget(100)
    tensors = Tensors(budget)
    for number in range(3):
        tensors[Port(number, 0)] = np.full(8, number, np.float32)
    assert (budget.resident, budget.spilled) == (96, 0)
    budget.shrink(40)
    assert (budget.resident, budget.spilled) == (32, 64)
    assert [tensors[port][0] for port in tensors] == [0, 1, 2]
    budget.close()


def test_kept_arrays_leave_the_list_that_they_come_in() -> None:
    budget = MemoryBudget(8)
    arrays: list[Any] = [np.arange(2, dtype=np.float32), np.arange(3, dtype=np.float32)]
    with keeping(budget):
        kept = Kept(arrays)
    assert arrays == []
    assert budget.spilled == 12
    assert [array.tolist() for array in kept] == [[0, 1], [0, 1, 2]]
    assert kept[-1].tolist() == [0, 1, 2]
    budget.close()


def test_files_of_tensors_are_not_open_between_reads() -> None:
    """A process may have only some thousand open files."""
    resource = pytest.importorskip("resource", reason="limits open files as Unix does")
    budget = MemoryBudget(0)
    tensors = Tensors(budget)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))
    try:
        for number in range(200):
            tensors[Port(number, 0)] = np.full(1, number, np.float32)
        assert sum(float(array[0]) for array in tensors.values()) == sum(range(200))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        budget.close()
