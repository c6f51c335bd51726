"""Sampling of images at points, and deformable convolutions, against the reference.

The file is rerun in a subprocess for each vector instruction set.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from harness.layers import deformable_layer, layer
from harness.other_vectors import AGAIN, same_with_other_vectors
from hypothesis import given, settings
from hypothesis import strategies as st

import ir_runtime as ir
from ir_runtime import opset8
from ir_runtime import opset13 as op
from ir_runtime.backends import native
from ir_runtime.backends.core.threads import at_most
from ir_runtime.backends.native.kernels import deformable_convolution
from ir_runtime.backends.native.threading import parallel
from ir_runtime.errors import InferenceError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, Value

quick = settings(max_examples=30 if AGAIN in os.environ else 100, deadline=None)
NOT_FINITE = np.array([np.nan, np.inf, -np.inf], np.float32)
FAR = np.array([*NOT_FINITE, 1e30, -1e30, 1e9, -1e9, 5e15, 3e7], np.float32)
# The outermost points, and those between two pixels.
TIES = np.array([-1, -0.75, -0.5, -0.25, 0, 0.25, 0.5, 0.75, 1], np.float32)


@pytest.fixture(params=[1, 2], ids=["1 thread", "2 threads"], autouse=True, scope="module")
def shared(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run every test with one thread, and with two threads even for the smallest layers."""
    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):
        patch.setattr(parallel, "MIN_PARALLEL_WORK", 0)
        with at_most(request.param), native.backend.around():
            yield


def unknown(x: Array) -> Value:
    return Value.unknown(ElementType.from_dtype(x.dtype), PartialShape.dynamic(x.ndim))


def channels_last(x: Array) -> Array:
    """Return an equal array in channels-last memory."""
    return np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def numbers(rng: Any, *shape: int, special: Array) -> Array:
    x = rng.standard_normal(shape).astype(np.float32)
    if special.size and x.size:
        x.reshape(-1)[rng.integers(0, x.size, 1 + x.size // 8)] = rng.choice(special, 1 + x.size // 8)
    return x


@quick
@given(
    st.sampled_from(["nearest", "bilinear", "bicubic"]), st.sampled_from(["zeros", "border", "reflection"]),
    st.booleans(), st.sampled_from([1, 3, 70]), st.sampled_from([1, 2, 17, 40]),
    st.sampled_from([(1, 1), (1, 9), (5, 4), (17, 33)]),
    st.sampled_from([(1, 1), (3, 5), (4, 4), (1, 40), (33, 40)]),
    st.sampled_from([np.empty(0), NOT_FINITE]), st.sampled_from([np.empty(0), FAR, TIES]), st.integers(0, 99),
)  # fmt: skip
def test_grid_sample(
    mode: str, padding: str, corners: bool, images: int, channels: int, lengths: tuple[int, int],
    points: tuple[int, int], special: Array, places: Array, seed: int,
) -> None:  # fmt: skip
    op = layer("GridSample-9", mode=mode, padding_mode=padding, align_corners=str(corners).lower())
    rng = np.random.default_rng(seed)
    x = numbers(rng, images, channels, *lengths, special=special)
    grid = numbers(rng, images, *points, 2, special=places)
    wanted = op.evaluate(x, grid)
    run: Any = native.backend.kernel(op, [unknown(x), unknown(grid)])
    for data in (x, channels_last(x)):
        np.testing.assert_array_equal(run(data, grid), wanted)


def test_grid_sample_without_points_or_pixels() -> None:
    op = layer("GridSample-9")
    x, grid = np.ones((2, 3, 4, 5), np.float32), np.zeros((2, 1, 3, 2), np.float32)
    run: Any = native.backend.kernel(op, [unknown(x), unknown(grid)])
    assert run(x, grid[:, :0]).shape == (2, 3, 0, 3)
    assert run(x[:, :0], grid).shape == (2, 0, 1, 3)
    for wrong in ((x[:, :, :0], grid), (x[:1], grid), (x, grid[..., :1])):
        with pytest.raises(InferenceError):
            run(*wrong)


@quick
@given(
    st.sampled_from(["1", "8", "8 with zeros"]), st.booleans(), st.sampled_from([1, 2]), st.sampled_from([1, 3]),
    st.sampled_from([1, 3, 17]), st.sampled_from([1, 5, 33]), st.sampled_from([(1, 1), (3, 2)]),
    st.sampled_from([(5, 4), (9, 13)]), st.tuples(st.integers(1, 2), st.integers(1, 2)), st.integers(0, 2),
    st.sampled_from([np.empty(0), FAR, np.arange(-3, 4)]), st.sampled_from([1, 1 << 20]), st.integers(0, 99),
)  # fmt: skip
def test_deformable_convolutions(
    version: str, has_mask: bool, images: int, parts: int, channels: int, outputs: int, kernel: tuple[int, int],
    lengths: tuple[int, int], steps: tuple[int, int], pads: int, places: Array, block: int, seed: int,
) -> None:  # fmt: skip
    op: Any = deformable_layer(version, steps, pads, parts)
    rng, wide = np.random.default_rng(seed), parts * channels
    x, w = (
        numbers(rng, n, wide, *size, special=np.empty(0))
        for n, size in ((images, lengths), (outputs, kernel))
    )
    out, elements = op.windows(lengths, kernel), parts * kernel[0] * kernel[1]
    inputs = [x, numbers(rng, images, 2 * elements, *out, special=places), w]
    if has_mask and version != "1":
        inputs.append(numbers(rng, images, elements, *out, special=np.zeros(1)))
    wanted = op.evaluate(*inputs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(deformable_convolution, "BLOCK", block)
        run: Any = native.backend.kernel(op, [Value.constant(a) if a is w else unknown(a) for a in inputs])
        for data in (x, channels_last(x)):
            found = run(data, *inputs[1:])
            np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max(initial=1))


def deformed(elements: int) -> ir.Model:
    """A deformable convolution with a bias, a residual and an activation."""
    rng = np.random.default_rng(0)
    x, offsets = op.parameter([2, 20, 9, 13], "f32"), op.parameter([2, 2 * elements, 9, 13], "f32")
    residual = op.parameter([2, 33, 9, 13], "f32")
    w = op.constant(numbers(rng, 33, 20, 3, 3, special=np.empty(0)))
    found = opset8.deformable_convolution(x, offsets, w, [1, 1], [1, 1], [1, 1], [1, 1])
    found = op.add(found, op.constant(numbers(rng, 1, 33, 1, 1, special=np.empty(0))))
    return ir.Model([op.relu(op.add(found, residual))], [x, offsets, residual], "deformed")


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_deformable_convolution_fuses_bias_and_residual(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deformable_convolution, "BLOCK", block)
    model, rng = deformed(9), np.random.default_rng(1)
    inputs = [numbers(rng, *port.shape, special=np.empty(0)) for port in model.inputs]
    wanted = ir.compile_model(model, backend="reference")(inputs)[0]
    compiled = ir.compile_model(model, backend="native")
    assert len(compiled._plan.steps) == 1
    for _ in range(4):
        np.testing.assert_allclose(compiled(inputs)[0], wanted, rtol=1e-5, atol=1e-4)


test_the_same_with_other_vectors = same_with_other_vectors(__file__)
