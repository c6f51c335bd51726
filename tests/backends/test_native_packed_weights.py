"""Packed weights of the native backend: Winograd filters, and integers that FakeQuantize makes of constants."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import ir_runtime as ov
from ir_runtime import opset1, opset13
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native.codegen.levels import IS_FAST
from ir_runtime.backends.native.codegen.vectors import LANES
from ir_runtime.backends.native.kernels._winograd import transform_filters
from ir_runtime.ir.tensor import Array
from ir_runtime.openvino.compiling import fusions_of

# The rows of the transform, G in Lavin and Gray 2016.
TRANSFORM = np.array(
    [[1 / 4, 0, 0], [-1 / 6, -1 / 6, -1 / 6], [-1 / 6, 1 / 6, -1 / 6], [1 / 24, 1 / 12, 1 / 6], [1 / 24, -1 / 12, 1 / 6],
     [0, 0, 1]],
)  # fmt: skip


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("columns", "channels"), [(1, 1), (1, 3), (5, 2), (7, 4)])
def test_filters_are_transformed(columns: int, channels: int, threads: int) -> None:
    """The channel counts cover panels of every width."""
    rng = np.random.default_rng(0)
    w = rng.standard_normal((columns * LANES, channels * LANES, 3, 3), np.float32)
    scale = rng.uniform(0.5, 2, len(w)).astype(np.float32)
    with at_most(threads):
        panels = transform_filters(w, scale)
    wanted = TRANSFORM @ (w.astype(np.float64) * scale.reshape(-1, 1, 1, 1)) @ TRANSFORM.T
    wanted = wanted.reshape(*w.shape[:2], 36).transpose(2, 1, 0).reshape(36 * channels * LANES, -1)
    for start, vectors, _, column, *_ in panels.table.tolist():
        width, depth = vectors * LANES, w.shape[1]
        found = panels.numbers[start // 4 : start // 4 + depth * width].reshape(depth, width)
        element, first = divmod(column, len(w))
        part = wanted[element * depth : (element + 1) * depth, first : first + width]
        np.testing.assert_allclose(found, part, rtol=1e-5, atol=1e-6)


def quantized(x: object, limits: Sequence[float], levels: int = 256) -> ov.Node:
    return opset1.fake_quantize(x, *(np.float32(limit) for limit in limits), levels)


def convolved(w: Array, limits: Sequence[float], levels: int) -> ov.Model:
    """A convolution of levels with quantized weights."""
    x = opset1.parameter([1, w.shape[1], 5, 6], np.float32, name="x")
    filters = quantized(opset1.constant(w), limits, levels)
    y = opset1.convolution(
        quantized(x, (-2, 127 / 64, -2, 127 / 64)), filters, [1, 1], [0, 0], [0, 0], [1, 1]
    )
    return ov.Model([quantized(y, (-32, 31.75, -32, 31.75))], [x])


def computes_in_integers(model: ov.Model) -> bool:
    return any(kernel.pattern == "native: quantized_network" for kernel in fusions_of(model, "native").fused)


@pytest.mark.parametrize("special", [0.25, np.nan, np.inf])
@pytest.mark.parametrize(
    ("limits", "levels", "integers"),
    [
        ((-1, 1, -1, 1), 255, True),
        ((-1, 127 / 128, -1, 127 / 128), 256, True),
        ((-1, 1, -1, 1), 256, False),
        ((0, 1.5, 0, 1.5), 256, False),
    ],
)
def test_weights_behind_a_fake_quantize(
    limits: Sequence[float], levels: int, integers: bool, special: float
) -> None:
    """Weights that are not 8-bit integers, NaN among them, are multiplied as they are."""
    rng = np.random.default_rng(0)
    w = rng.uniform(-1.5, 1.5, (7, 5, 3, 2)).astype(np.float32)
    w[3, 2, 1, 0] = special
    x = rng.uniform(-2, 2, (1, 5, 5, 6)).astype(np.float32)
    model = convolved(w, limits, levels)
    found, wanted = (ov.compile_model(model, backend=name)(x)[0] for name in ("native", "reference"))
    assert computes_in_integers(model) is (integers and not np.isnan(special) and IS_FAST)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted))
    assert np.nanmax(np.abs(found - wanted)) < 0.251, "at most a level, where two are as near"
    assert np.nanmean(np.abs(found - wanted)) < 0.01


@pytest.mark.parametrize("element", [ov.Type.u2, ov.Type.u4, ov.Type.i4, ov.Type.nf4, ov.Type.f4e2m1])
def test_weights_that_are_results_of_another_model(element: ov.Type, tmp_path: Path) -> None:
    """In memory, weights may have a byte each; in files they are packed. The products are equal."""
    rng = np.random.default_rng(0)
    numbers = opset1.parameter([64, 2, 32], np.float32, name="numbers")
    request = ov.compile_model(ov.Model([opset1.convert(numbers, element)], [numbers])).create_infer_request()
    request.infer([rng.integers(0, 4, (64, 2, 32)).astype(np.float32)])
    stored = opset13.constant(request.get_output_tensor(), shared_memory=True)
    scale = rng.uniform(0.5, 2, (64, 2, 1)).astype(np.float32)
    weights = opset1.reshape(opset1.multiply(opset1.convert(stored, np.float32), scale), [64, 64], False)
    x = opset1.parameter([3, 64], np.float32, name="x")
    model = ov.Model([opset1.matmul(x, weights, False, True)], [x])
    ov.save_model(model, tmp_path / "model.xml")
    saved = ov.Core().read_model(tmp_path / "model.xml")
    image = rng.normal(size=(3, 64)).astype(np.float32)
    found, again = (ov.compile_model(each, backend="native")(image)[0] for each in (model, saved))
    np.testing.assert_array_equal(found, again)
    np.testing.assert_allclose(
        found, ov.compile_model(saved, backend="reference")(image)[0], rtol=1e-4, atol=1e-4
    )
