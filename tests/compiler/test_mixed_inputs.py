"""Layers with mixed element types: no kernel or pattern of a backend is tried for them."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from harness.nets import Net
from harness.oracle import Ours

from ir_runtime.backends import Backend, Fusion, Kernel, KernelTemplate, MatchContext
from ir_runtime.compiler.compile import compile_plan
from ir_runtime.ir.graph import Layer
from ir_runtime.ir.operation import Operation
from ir_runtime.ir.tensor import Value
from ir_runtime.ops.activation import PReLU
from ir_runtime.ops.arithmetic import Negative


def with_slopes(element: str) -> Ours:
    """PReLU of negated bf16 data, with slopes of another element type."""
    net = Net()
    x = net.parameter("x", "1,4", "bf16", out="BF16 1 4")
    slopes = net.constant([0.5, 0.25, 0.5, 0.25], element)
    negated = net.op("Negative", x, out="BF16 1 4", name="negated")
    net.result(net.op("PReLU", negated, slopes, out="BF16 1 4", name="slopes"))
    return Ours(net.xml(), net.weights)


class Eager:
    """A backend that accepts all layers, and records for which it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.backend = Backend("eager")
        self.backend.accelerates(PReLU)(self.offer)
        self.backend.accelerates(Negative)(lambda op, x: Fusing(self))
        self.backend.pattern(PReLU)(self.pattern)

    def offer(self, op: Operation, *inputs: Value) -> Kernel | None:
        self.asked.append("kernel")
        return None

    def pattern(self, context: MatchContext, layer: Layer) -> Fusion | None:
        self.asked.append("pattern")
        return None


class Fusing(KernelTemplate):
    """A kernel that would fuse its consumer."""

    def __init__(self, eager: Eager) -> None:
        self.eager = eager

    def prepare(self) -> Kernel:
        return Kernel(lambda x: np.asarray(-x))

    def fuse(self, op: Operation, inputs: list[Value], place: int) -> KernelTemplate | None:
        if isinstance(op, PReLU):
            self.eager.asked.append("epilogue")
        return None


@pytest.mark.parametrize(
    ("element", "asked"),
    [("bf16", {"kernel", "pattern", "epilogue"}), ("f16", set()), ("f32", set()), ("f64", set())],
)
def test_a_backend_is_asked_about_equal_types_only(element: str, asked: set[str]) -> None:
    model, eager = with_slopes(element), Eager()
    plan = compile_plan(model.graph, model.values, model.outputs, [eager.backend])
    assert set(eager.asked) == asked
    (result,) = plan.run([np.array([[1, -2, -3, 4]], ml_dtypes.bfloat16)])
    assert result.dtype == ml_dtypes.bfloat16
    assert result.tolist() == [[-0.5, 2, 3, -1]]
