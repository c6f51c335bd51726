"""A quantized network against OpenVINO at f32, on every backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from harness.oracle import PLUGIN, core

import ir_runtime
from ir_runtime.backends import available
from models.quantized import OUTPUT_STEP, pictures, quantized_cnn

# Not with kernels for integers, which are the plugin's own approximation, another one on each processor.
AS_WRITTEN = {**PLUGIN, "LP_TRANSFORMS_MODE": "NO"}


@pytest.mark.parametrize("backend", available())
@pytest.mark.parametrize("compress", [False, True], ids=["f32 weights", "i8 weights"])
def test_agrees_within_a_step(compress: bool, backend: str, tmp_path: Path) -> None:
    ov.save_model(quantized_cnn(compress), path := tmp_path / "m.xml", compress_to_fp16=False)
    model = ir_runtime.read_model(path)
    assert list(model.report) == []
    types = [node.get_type_name() for node in model.get_ops()]
    assert types.count("FakeQuantize") == (7 if compress else 11)
    found = ir_runtime.compile_model(model, backend=backend)(pictures())[0]
    assert len(np.unique(found)) > 20
    wanted = core().compile_model(path, "CPU", AS_WRITTEN)(pictures())[0]
    steps = np.abs(found - wanted) / OUTPUT_STEP
    assert steps.max() < 1.001
    assert steps.mean() < 0.01


@pytest.mark.parametrize("backend", available())
def test_nan_counts_in_any_run(backend: str, tmp_path: Path) -> None:
    """NaN has no level: the layers are computed one by one then, also after recorded runs."""
    ov.save_model(quantized_cnn(True), path := tmp_path / "m.xml", compress_to_fp16=False)
    model = ir_runtime.read_model(path)
    model.reshape([2, 3, 24, 24])
    compiled = ir_runtime.compile_model(model, backend=backend)
    wanted = [compiled(pictures()[:2])[0] for _ in range(3)]
    np.testing.assert_array_equal(wanted[1:], wanted[:-1])
    broken = pictures()[:2].copy()
    broken[1, 2, 23, 0] = np.nan
    found = compiled(broken)[0]
    by_definition = ir_runtime.compile_model(model, backend="reference")(broken)[0]
    assert np.abs(found - by_definition).max() < 1.001 * OUTPUT_STEP
    assert np.abs(found[1] - wanted[0][1]).max() > 10 * OUTPUT_STEP
    np.testing.assert_array_equal(compiled(pictures()[:2])[0], wanted[0])
