"""Small networks of common kinds, built and saved with OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ir_runtime.ir.tensor import Array

Builder = Callable[[], ov.Model]
NETWORKS: dict[str, tuple[Builder, Callable[[], list[Array]]]] = {}


def network(*inputs: Callable[[], Array]) -> Callable[[Builder], Builder]:
    """Register a network with a function that draws its inputs."""

    def register(build: Builder) -> Builder:
        NETWORKS[build.__name__] = (build, lambda: [draw() for draw in inputs])
        return build

    return register


def weights(*shape: int, dtype: Any = np.float32) -> Any:
    """Draw weights, scaled so that activations keep their magnitude."""
    fan_in = int(np.prod(shape[1:])) or 1
    return op.constant((np.random.default_rng(shape).standard_normal(shape) / fan_in**0.5).astype(dtype))


def image(*shape: int) -> Callable[[], Array]:
    """Return a function that draws an image."""
    return lambda: np.random.default_rng(shape).standard_normal(shape).astype(np.float32)


def tokens(*shape: int, below: int = 50) -> Callable[[], Array]:
    """Return a function that draws token ids."""
    return lambda: np.random.default_rng(shape).integers(0, below, shape)


def save(name: str, folder: Path) -> Path:
    """Build a network and write its IR."""
    path = folder / f"{name}.xml"
    ov.save_model(NETWORKS[name][0](), path, compress_to_fp16=False)
    return path


def conv(x: Any, channels: int, kernel: int = 3, stride: int = 1, activation: Any = op.relu) -> Any:
    """Convolution, bias and activation, as in converted models."""
    depth = x.get_output_partial_shape(0)[1].get_length()
    pad = kernel // 2
    y = op.convolution(
        x, weights(channels, depth, kernel, kernel), [stride] * 2, [pad] * 2, [pad] * 2, [1, 1]
    )
    y = op.add(y, weights(1, channels, 1, 1))
    return activation(y) if activation else y


@network(image(2, 3, 32, 32))
def plain_cnn() -> ov.Model:
    x = op.parameter([2, 3, 32, 32], np.float32, name="image")
    y = conv(x, 8, 7, 2)
    y = op.max_pool(y, [2, 2], [1, 1], [0, 0], [1, 1], [3, 3], "ceil").output(0)
    y = conv(op.relu(y), 16)
    y = op.avg_pool(y, [2, 2], [0, 0], [0, 0], [2, 2], True, "floor")
    y = op.reshape(op.reduce_mean(y, op.constant([2, 3]), True), op.constant([0, -1]), True)
    y = op.add(op.matmul(y, weights(10, 16), False, True), weights(1, 10))
    return ov.Model([op.softmax(y, 1)], [x], "plain_cnn")


@network(image(1, 8, 16, 16))
def residual() -> ov.Model:
    x = op.parameter([-1, 8, 16, 16], np.float32, name="image")
    y = x
    for stride, channels in ((1, 8), (2, 16)):
        shortcut = y if stride == 1 else conv(y, channels, 1, stride, None)
        y = op.relu(op.add(conv(conv(y, channels, 3, stride), channels, 3, 1, None), shortcut))
    return ov.Model([op.reduce_mean(y, op.constant([2, 3]), False)], [x], "residual")


@network(image(1, 6, 20, 20))
def depthwise() -> ov.Model:
    x = op.parameter([1, 6, 20, 20], np.float32, name="image")
    y = conv(x, 24, 1, 1, op.hswish)
    y = op.group_convolution(y, weights(24, 1, 1, 5, 5), [2, 2], [2, 2], [2, 2], [1, 1])
    y = op.clamp(op.add(y, weights(1, 24, 1, 1)), 0.0, 6.0)
    gate = conv(op.reduce_mean(y, op.constant([2, 3]), True), 6, 1)
    gate = conv(gate, 24, 1, 1, op.hsigmoid)
    y = conv(op.multiply(y, gate), 12, 1, 1, op.swish)
    return ov.Model([y], [x], "depthwise")


@network(tokens(2, 9), lambda: np.array([[1] * 9, [1] * 6 + [0] * 3]))
def encoder() -> ov.Model:
    """A transformer layer for any batch and length, with a mask from shape arithmetic."""
    ids = op.parameter([-1, -1], np.int64, name="input_ids")
    mask = op.parameter([-1, -1], np.int64, name="attention_mask")
    width, heads = 32, 4
    x = op.gather(weights(50, width), ids, op.constant(0))
    length = op.gather(op.shape_of(ids), op.constant(1), op.constant(0))
    places = op.range(op.constant(0), length, op.constant(1), "i64")
    x = op.add(x, op.gather(weights(64, width), places, op.constant(0)))
    allowed = op.unsqueeze(op.unsqueeze(op.not_equal(mask, op.constant(0)), op.constant(1)), op.constant(1))
    x = layer_norm(op.add(x, attention(x, allowed, width, heads)))
    hidden = op.gelu(op.add(op.matmul(x, weights(64, width), False, True), weights(1, 1, 64)), "erf")
    x = layer_norm(op.add(x, op.matmul(hidden, weights(width, 64), False, True)))
    first = op.squeeze(
        op.slice(x, op.constant([0]), op.constant([1]), op.constant([1]), op.constant([1])), op.constant(1)
    )
    return ov.Model([x, op.tanh(first)], [ids, mask], "encoder")


def attention(x: Any, allowed: Any, width: int, heads: int) -> Any:
    """Multi-head attention as converted from PyTorch."""
    split = op.constant([0, 0, heads, width // heads])
    q, k, v = (
        op.transpose(
            op.reshape(op.matmul(x, weights(width, width), False, True), split, True),
            op.constant([0, 2, 1, 3]),
        )
        for _ in range(3)
    )
    seen = op.scaled_dot_product_attention(q, k, v, allowed, causal=False)
    back = op.concat(
        [op.gather(op.shape_of(x), op.constant([0, 1]), op.constant(0)), op.constant([width])], 0
    )
    return op.reshape(op.transpose(seen, op.constant([0, 2, 1, 3])), back, False)


def layer_norm(x: Any) -> Any:
    """Normalization over the last axis, with scale and shift."""
    y = op.mvn(x, op.constant([-1]), True, 1e-5, "INSIDE_SQRT")
    return op.add(op.multiply(y, weights(1, 1, 32)), weights(1, 1, 32))
