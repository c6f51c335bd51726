"""The interpreter as printed in the guide, and its agreement with the fast path."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13 as ops
from ir_runtime.backends import available
from ir_runtime.executor import plan as plans
from ir_runtime.executor.interpreter import interpret, run_located
from ir_runtime.executor.step import Step

GUIDE = Path(ir.__file__).parent / "guides/architecture.md"


def model() -> ir.Model:
    x = ops.parameter([2, 6], np.float32, name="x")
    halves = ops.split(x, ops.constant(1), 2)
    y = ops.relu(ops.subtract(halves.output(0), halves.output(1)))
    return ir.Model([ops.exp(y, name="y"), ops.topk(y, ops.constant(2), -1, "max", "value").output(1)], [x])


def test_the_guide_prints_it() -> None:
    source = inspect.getsource(interpret).rstrip()
    assert f"```python\n{source}\n```" in GUIDE.read_text(encoding="utf-8")
    assert len(source.splitlines()) <= 25


@pytest.mark.parametrize("backend", available())
def test_it_computes_what_the_fast_way_computes(backend: str) -> None:
    compiled = ir.compile_model(model(), backend=backend)
    x = np.random.default_rng(0).standard_normal((2, 6)).astype(np.float32)
    plan = compiled._plan
    slots = plan.fill_slots([x])
    interpret(plan.steps, slots, Step.run)
    for array, slot in zip(compiled(x).values(), plan.outputs, strict=True):
        np.testing.assert_array_equal(array, slots[slot])
    emptied = {slot for step in plan.steps for slot in step.frees}
    assert all(slots[slot] is None for slot in emptied - set(plan.outputs) - set(plan.inputs))


def test_the_reference_is_run_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noted(steps: Any, slots: Any, run_step: Any) -> None:
        assert run_step is run_located
        seen.extend(step.layer.type for step in steps)
        interpret(steps, slots, run_step)

    monkeypatch.setattr(plans, "interpret", noted)
    x = np.zeros((2, 6), np.float32)
    ir.compile_model(model(), backend="numpy")(x)
    assert seen == []
    ir.compile_model(model(), backend="reference")(x)
    assert seen == ["Split", "Subtract", "ReLU", "Exp", "TopK"]


def test_an_error_names_the_layer_and_an_observer_its_own() -> None:
    class Broken:
        def before(self, step: Step, inputs: Any) -> None:
            raise KeyError("mine")

        def after(self, step: Step, outputs: Any, seconds: float) -> None: ...

    compiled = ir.compile_model(model(), backend="reference")
    with pytest.raises(KeyError, match="mine"):
        compiled(np.zeros((2, 6), np.float32), observers=[Broken()])

    class Failing(Broken):
        def before(self, step: Step, inputs: Any) -> None: ...

    step = compiled._plan.steps[1]
    with pytest.raises(ir.ExecutionError, match="failed on the data it was given") as caught:
        run_located(step, [np.zeros((2, 3), np.float32), np.zeros((2, 2), np.float32)])
    assert caught.value.where is not None
