"""Compiled models leave no reference cycles, except for the graph that nodes share.

Packed weights are as large as the model.
"""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.session import only_new_objects
from models.quantized import pictures, quantized_cnn

import ir_runtime
from ir_runtime import opset13 as op
from ir_runtime.backends import available

PARTS = tuple(f"ir_runtime.{part}" for part in ("backends", "executor", "ir.deferred", "compiler"))


def unreachable() -> set[str]:
    """Return the types of compiler and executor objects that only a garbage collection frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = {f"{type(each).__module__}.{type(each).__qualname__}" for each in gc.garbage}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    return {name for name in found if name.startswith(PARTS)}


@pytest.mark.parametrize("compress", [False, True], ids=["f32", "i8"])
@pytest.mark.parametrize("backend", available())
def test_nothing_of_a_compiled_model_is_left(tmp_path: Path, backend: str, compress: bool) -> None:
    ov.save_model(quantized_cnn(compress), path := tmp_path / "m.xml", compress_to_fp16=False)
    with only_new_objects():
        gc.disable()
        try:
            compiled = ir_runtime.compile_model(path, backend=backend)
            for _ in range(3):
                compiled(pictures())
            del compiled
            assert unreachable() == set()
        finally:
            gc.enable()


@pytest.mark.parametrize("backend", available())
def test_nothing_of_a_concatenation_is_left(backend: str) -> None:
    """A nested function that refers to itself would keep itself and its plans alive."""
    x = op.parameter([1, 16, 24, 24], np.float32)
    model = ir_runtime.Model([op.relu(op.concat([x, op.exp(x)], 1))], [x])
    data = np.ones((1, 16, 24, 24), np.float32)
    with only_new_objects():
        gc.disable()
        try:
            compiled = ir_runtime.compile_model(model, backend=backend)
            for _ in range(3):
                compiled(data)
            del compiled
            assert unreachable() == set()
        finally:
            gc.enable()
