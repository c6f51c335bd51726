"""Tensors without elements but with huge dims: no kernel iterates over them, and the dims are limited, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from harness.memory import counting

import ir_runtime as ov
from ir_runtime import opset13 as ops
from ir_runtime.backends import available
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value
from ir_runtime.ops import Input, Op, Output, op, registry
from ir_runtime.ops._define.operation import T_FLOAT

backends = pytest.mark.parametrize("backend", available())
LIMITS = ov.Limits(memory=1 << 26)
FEW = 1 << 16
"""Bytes of arrays for which nothing is computed."""
LONG = 1 << 23
HUGE = 1 << 40


def padded(mode: str) -> Callable[[Any], Any]:
    return lambda x: ops.pad(x, ops.constant([0, 3]), ops.constant([0, 4]), mode)


BUILD: dict[str, Callable[[Any], Any]] = {
    "Pad edge": padded("edge"),
    "Pad reflect": padded("reflect"),
    "Pad symmetric": padded("symmetric"),
    "SoftMax": lambda x: ops.softmax(x, 1),
    "ReverseSequence": lambda x: ops.reverse_sequence(x, ops.constant(np.zeros(0, np.int64)), 0, 1),
    "Exp": ops.exp,
}


@backends
@pytest.mark.parametrize("is_open", [False, True])
@pytest.mark.parametrize("name", BUILD)
def test_no_kernel_runs_where_no_result_has_elements(name: str, is_open: bool, backend: str) -> None:
    x = ops.parameter([-1, -1] if is_open else [0, LONG], np.float32, name="x")
    compiled = ov.compile_model(ov.Model([BUILD[name](x)], [x]), backend=backend, limits=LIMITS)
    feed = np.empty((0, LONG), np.float32)
    for _ in range(3):
        with counting(most=FEW):
            assert compiled(feed)[0].size == 0


@backends
@pytest.mark.parametrize("is_open", [False, True])
def test_lengths_beside_a_zero_are_limited(is_open: bool, backend: str) -> None:
    x = ops.parameter([-1, -1] if is_open else [0, HUGE], np.float32, name="x")
    with pytest.raises(ov.LimitError, match=rf"lengths of f32\[0,{HUGE}\] come to {4 * HUGE} bytes|elements"):
        ov.compile_model(ov.Model([ops.exp(x)], [x]), backend=backend, limits=LIMITS)(
            np.empty((0, HUGE), np.float32)
        )


def test_constants_without_elements_are_not_folded_over_their_lengths() -> None:
    x = ops.constant(np.empty((0, LONG), np.float32))
    with counting(most=FEW):
        compiled = ov.compile_model(ov.Model([padded("edge")(x)], []), limits=LIMITS)
        assert compiled([])[0].shape == (0, LONG + 7)


@pytest.fixture
def calls() -> Iterator[list[tuple[int, ...]]]:
    """A custom operation that records its calls."""
    found: list[tuple[int, ...]] = []

    @op("ProbeNotes-1")
    class Notes(Op):
        """Record the shapes of the input."""

        data = Input(T_FLOAT, "any")
        output = Output(T_FLOAT, "the same")

        def infer(self, data: Value) -> PartialShape:
            return data.shape

        def evaluate(self, data: Array) -> Array:
            found.append(data.shape)
            return data

    yield found
    registry.remove(Notes)


@backends
@pytest.mark.parametrize("rows", ["?", "0"])
def test_operations_from_outside_always_run(backend: str, rows: str, calls: list[tuple[int, ...]]) -> None:
    from harness.nets import Net

    net = Net()
    dims = f"{'-1' if rows == '?' else rows} 3"
    x = net.parameter("x", f"{rows},3", out=f"FP32 {dims}")
    net.result(net.op("ProbeNotes", x, out=f"FP32 {dims}"))
    compiled = ov.compile_model(ov.read_model(net.xml(), net.weights), backend=backend)
    compiled(np.empty((0, 3), np.float32))
    assert calls == [(0, 3)]
