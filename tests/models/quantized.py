"""An integer network in NNCF's form: FakeQuantize around each convolution."""

from __future__ import annotations

from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op
from openvino._offline_transformations import compress_quantize_weights_transformation

from ir_runtime.ir.tensor import Array

OUTPUT_RANGE = 4.0
OUTPUT_STEP = OUTPUT_RANGE * 2 / 255


def f32(*values: float, rank: int = 4, axis: int = 1) -> Any:
    """A limit: a scalar, or one for each index of an axis."""
    return op.constant(np.array(values, np.float32).reshape([-1 if i == axis else 1 for i in range(rank)]))


def symmetric(x: Any, *scales: float) -> Any:
    """Quantize signed activations to 256 levels; the lowest level has no positive counterpart."""
    low, high = f32(*(-s for s in scales)), f32(*(s * 127 / 128 for s in scales))
    return op.fake_quantize(x, low, high, low, high, 256)


def asymmetric(x: Any, low: float, high: float) -> Any:
    """Quantize activations between two limits, adjusted so that zero is a level."""
    step = (high - low) / 255
    low = round(low / step) * step
    limits = f32(low), f32(low + 255 * step)
    return op.fake_quantize(x, *limits, *limits, 256)


def quantized_weights(*shape: int, groups: bool = False) -> Any:
    """Quantize weights to 255 levels with per-channel scales."""
    rng = np.random.default_rng(shape)
    values = (rng.standard_normal(shape) / np.prod(shape[1:]) ** 0.5).astype(np.float32)
    axes = tuple(range(2 if groups else 1, len(shape)))
    high = op.constant(np.abs(values).max(axes, keepdims=True))
    low = op.constant(-np.abs(values).max(axes, keepdims=True))
    return op.fake_quantize(op.constant(values), low, high, low, high, 255)


def bias(channels: int) -> Any:
    rng = np.random.default_rng(channels)
    return op.constant(rng.standard_normal((1, channels, 1, 1)).astype(np.float32) / 10)


def quantized_cnn(compress: bool) -> ov.Model:
    """A residual block between two convolutions, and a head; weights are integers if compressed."""
    x = op.parameter([-1, 3, 24, 24], np.float32, name="image")
    y = symmetric(x, 2.5)
    y = op.convolution(y, quantized_weights(16, 3, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    y = asymmetric(op.relu(op.add(y, bias(16))), 0, 2.2)
    weights = quantized_weights(16, 1, 1, 3, 3, groups=True)
    deep = op.group_convolution(y, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    deep = symmetric(op.swish(op.add(deep, bias(16))), *np.linspace(1, 3, 16))
    deep = op.convolution(deep, quantized_weights(16, 16, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
    y = asymmetric(op.add(symmetric(op.add(deep, bias(16)), 2.0), y), -1.5, 3)
    y = op.max_pool(y, [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    y = symmetric(op.reduce_mean(y, op.constant([2, 3]), True), 2.0)
    y = op.reshape(y, op.constant([0, -1]), True)
    y = op.matmul(y, quantized_weights(10, 16), False, True)
    limits = [f32(value, rank=2) for value in (-OUTPUT_RANGE, OUTPUT_RANGE)]
    model = ov.Model([op.fake_quantize(y, *limits, *limits, 256)], [x], "quantized_cnn")
    if compress:
        compress_quantize_weights_transformation(model)
    return model


def pictures() -> Array:
    return np.random.default_rng(0).standard_normal((4, 3, 24, 24)).astype(np.float32)
