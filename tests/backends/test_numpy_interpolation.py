"""Interpolation of feature maps on the NumPy backend against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from harness.layers import layer
from harness.numpy_kernels import agree, numbers

from ir_runtime.backends.numpy.kernels import interpolation


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "nearest"])
@pytest.mark.parametrize("longest", [1, 32])
@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("sizes", [(5, 30), (20, 4), (7, 9), (3, 2)])
def test_feature_maps_are_resized(
    monkeypatch: pytest.MonkeyPatch, mode: str, longest: int, special: bool, sizes: tuple[int, int]
) -> None:
    monkeypatch.setattr(interpolation, "MAX_LENGTH", longest)
    op = layer("Interpolate-4", mode=mode, shape_calculation_mode="sizes", antialias=str(longest > 1))
    axes, scales = np.array([2, 3]), np.array([1, 1], np.float32)
    for channels in (1, 6):
        agree(op, numbers(2, channels, 7, 9, special=special), np.array(sizes), scales, axes)
