"""Which constants stay compressed, and which are folded."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime import opset13
from ir_runtime.compiler.quantized_weights import find_quantized_weights


def stored(kind: Any, rows: int) -> bool:
    """Return whether a table of 64 columns, read by Gather, stays compressed."""
    indices = opset13.parameter([-1], np.int64, name="indices")
    table = opset13.convert(opset13.constant(np.zeros((rows, 64), kind)), "f32")
    model = ir.Model([opset13.gather(table, indices, 0)], [indices])
    graph, types = model._graph, model._values
    return bool(find_quantized_weights(graph, graph.layers.values(), types, (), {"Gather"}))


@pytest.mark.parametrize(("kind", "rows"), [(np.int8, 16), (np.float16, 1024)], ids=["i8", "f16"])
def test_small_weights_are_folded(kind: Any, rows: int) -> None:
    """Keeping 16-bit weights is worth it only above 128 KiB; narrower types save more memory, and time."""
    assert stored(kind, rows)
    assert not stored(kind, rows - 1)
