"""Guards of attention, whose lengths grow with every run."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import ir_runtime as ir
from ir_runtime.analysis.error_context import Expected
from ir_runtime.backends import available


@pytest.mark.parametrize("backend", [name for name in available() if name != "reference"])
def test_attention_to_more_and_more_tokens_needs_no_inference(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The result is as long as the queries, however long the cache."""
    q, k, v = (
        ir.opset1.parameter([1, 2, -1, width], np.float32, name=name)
        for name, width in zip("qkv", (8, 8, 64), strict=True)
    )
    mask = ir.opset1.parameter([1, 1, -1, -1], np.float32, name="mask")
    model = ir.Model([ir.opset13.scaled_dot_product_attention(q, k, v, mask)], [q, k, v, mask])

    def inputs(queries: int, keys: int) -> list[Any]:
        shapes = [(1, 2, queries, 8), (1, 2, keys, 8), (1, 2, keys, 64), (1, 1, queries, keys)]
        return [np.ones(shape, np.float32) for shape in shapes]

    compiled = ir.compile_model(model, backend=backend)
    compiled(inputs(64, 64))
    inferred: list[Any] = []
    monkeypatch.setattr(Expected, "types", lambda *found: inferred.append(found))
    for keys in range(256, 260):
        assert compiled(inputs(64, keys))[0].shape == (1, 2, 64, 64)
    assert not inferred
    small = ir.compile_model(model, backend=backend, limits=ir.Limits(elements=1 << 20))
    with pytest.raises(ir.LimitError, match="ScaledDotProductAttention"):
        small(inputs(1 << 15, 1))
