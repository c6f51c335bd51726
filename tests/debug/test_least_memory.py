"""A memory limit that is too low is refused before anything runs, with the least sufficient one."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness.debugging import network
from models.networks import NETWORKS

import ir_runtime as ir
from ir_runtime import debug
from ir_runtime import opset13 as op
from ir_runtime.compiler.memory import least_memory
from ir_runtime.debug.reference import Reference
from ir_runtime.debug.spilling import MemoryBudget, Tensors
from ir_runtime.ir.graph import Port
from ir_runtime.ir.tensor import Array

WORK: dict[str, Callable[[ir.Model, list[Array]], Any]] = {
    "oracle": lambda model, inputs: debug.oracle(model, inputs, layers="*"),
    "budget": lambda model, inputs: debug.budget(model, inputs, "int8"),
    "compare": lambda model, inputs: debug.compare(model, inputs, "numpy"),
    "trace-nan": debug.trace_nan,
}


def _refused(kind: str, model: ir.Model, inputs: list[Array]) -> int:
    """Return the number of bytes in a refusal."""
    with pytest.raises(ir.LimitError) as refused:
        WORK[kind](model, inputs)
    assert refused.value.where is not None
    (needed,) = re.findall(r"(\d+) bytes of memory are needed at once", str(refused.value))
    return int(needed)


@pytest.mark.parametrize("name", ["encoder", "plain_cnn"])
@pytest.mark.parametrize("kind", WORK)
def test_the_named_limit_is_the_least_that_does(
    kind: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = network(name, tmp_path)
    WORK[kind](model, inputs)  # kernels keep scratch memory, which does not count
    model, inputs = network(name, tmp_path, memory=1000)
    with monkeypatch.context() as changed:
        changed.setattr(import_module("ir_runtime.debug.compare"), "side_of", None)
        changed.setattr(Reference, "run", None)
        least = _refused(kind, model, inputs)
        assert _refused(kind, network(name, tmp_path, memory=least - 1)[0], inputs) == least
    WORK[kind](network(name, tmp_path, memory=least)[0], inputs)


@pytest.mark.parametrize("kind", WORK)
def test_shapes_that_are_open_are_those_of_the_inputs(kind: str, tmp_path: Path) -> None:
    x = op.parameter([-1, -1], np.float32, name="x")
    y = op.matmul(op.relu(x), op.transpose(x, op.constant([1, 0])), False, False)
    ir.save_model(ir.Model([op.exp(y)], [x]), tmp_path / "net.xml")

    def model(memory: int) -> ir.Model:
        return ir.read_model(tmp_path / "net.xml", limits=ir.Limits(memory=memory))

    inputs = [np.ones((50, 20), np.float32)]
    least = _refused(kind, model(1000), inputs)
    assert least > 2 * 4 * 50 * 50
    WORK[kind](model(least), inputs)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("name", NETWORKS)
def test_it_is_what_the_compiler_counts(name: str, wide: bool, tmp_path: Path) -> None:
    model, _ = network(name, tmp_path)
    reference = Reference(model, wide)
    found = least_memory(reference.graph, reference.types, [port._port for port in reference.outputs])
    assert found.bytes == reference._plan.peak


def test_a_mapped_tensor_that_is_kept_again_stays_readable() -> None:
    budget = MemoryBudget(100)
    tensors = Tensors(budget)
    tensors[Port(0, 0)] = np.zeros(20, np.float32)
    tensors[Port(1, 0)] = np.arange(20, dtype=np.float32)
    mapped = tensors[Port(1, 0)]
    assert isinstance(mapped, np.memmap)
    del tensors[Port(0, 0)]
    tensors[Port(1, 0)] = mapped.reshape(4, 5)
    assert tensors[Port(1, 0)].tolist() == np.arange(20).reshape(4, 5).tolist()
    budget.close()
