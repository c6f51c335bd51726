"""Count what running does: operations of NumPy, and calls of functions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import FrameType

import ir_runtime
from ir_runtime.executor.step import Step
from ir_runtime.ir.operation import Operands
from ir_runtime.ir.tensor import Array

__all__ = ["Counter", "counted"]


class Counter:
    """Adds up the FLOPs of layers, by what they receive."""

    def __init__(self) -> None:
        self.flops: dict[str, int] = {}
        self._inputs: list[Sequence[Array]] = []

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        self._inputs.append(inputs)

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        inputs, op = self._inputs.pop(), step.layer.op
        if op is None or step.layer.bodies():
            return
        shapes = Operands(
            tuple(x.shape for x in inputs),
            tuple(x.shape for x in outputs),
            tuple(inputs),
        )
        found = op.flops(shapes)
        assert isinstance(found, int)
        self.flops[step.layer.name] = self.flops.get(step.layer.name, 0) + found


def counted(model: ir_runtime.Model, inputs: Sequence[Array]) -> dict[str, int]:
    """The FLOPs of each layer in a run with these inputs; loops count what they run."""
    counter = Counter()
    ir_runtime.compile_model(model)(list(inputs), observers=[counter])
    return counter.flops


def calls(action: Callable[[], object]) -> int:
    """How many functions of Python and of C an action calls; NumPy's ufuncs are objects, and not counted."""
    count = 0

    def event(frame: FrameType, kind: str, argument: object) -> None:
        nonlocal count
        count += kind in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(event)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count
