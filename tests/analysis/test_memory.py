"""Running out of memory during inference is not mistaken for a refusal of the shapes."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from harness.nets import Net

import ir_runtime as ir
from ir_runtime.ops.activation import ReLU


def model() -> ir.Model:
    net = Net()
    net.result(net.op("ReLU", net.parameter("x", "?,2", out="FP32 ? 2"), out="FP32 ? 2"))
    return ir.read_model(net.xml())


def test_a_report_is_not_written_without_what_there_was_no_memory_for() -> None:
    whole = model().report().html
    infer, calls = ReLU.infer_values, 0
    found = set()
    for number in range(1, 200):
        calls = 0

        def failing(self: ReLU, *inputs: object, number: int = number) -> object:
            nonlocal calls
            calls += 1
            if calls == number:
                raise MemoryError
            return infer(self, *inputs)

        net = model()
        with patch.object(ReLU, "infer_values", failing):
            try:
                assert net.report().html == whole
            except MemoryError:
                found.add(number)
        if calls < number:
            break
    assert found == set(range(1, number))
    assert found


def test_validation_ends() -> None:
    with patch.object(ReLU, "infer_values", side_effect=MemoryError), pytest.raises(MemoryError):
        model()
