"""Small networks with weights compressed as by OpenVINO's tools."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
from harness.oracle import tensor
from openvino import opset13 as op
from openvino.op import Constant

from ir_runtime.ir.element import ElementType as E
from ir_runtime.ir.tensor import Array

GROUP = 32

Compress = Callable[[Array], Any]
"""Takes weights [outputs, inputs]; gives the nodes that make them f32 again."""


def constant(array: Array, element: E) -> Any:
    """A constant of any element type."""
    return Constant(tensor(array, element.label))


def int8(weights: Array) -> Any:
    """Compress to i8 with a scale for each output."""
    scale = np.abs(weights).max(1, keepdims=True) / 127
    numbers = constant(np.rint(weights / scale).astype(np.int8), E.i8)
    return _wide(op.multiply(op.convert(numbers, "f16"), op.constant(scale.astype(np.float16))))


def uint8(weights: Array) -> Any:
    """Compress to u8 with a scale and a zero point for each output."""
    return _affine(weights, E.u8, 255)


def int4(weights: Array) -> Any:
    """Compress to i4 with a scale for each group of weights."""
    groups = weights.reshape(len(weights), -1, GROUP)
    scale = np.abs(groups).max(2, keepdims=True) / 7
    numbers = constant(np.rint(groups / scale).astype(np.int8).astype(E.i4.dtype), E.i4)
    return _flat(op.multiply(op.convert(numbers, "f16"), op.constant(scale.astype(np.float16))), weights)


def uint4(weights: Array, group: int = GROUP) -> Any:
    """Compress to u4 with a scale and a zero point for each group of weights."""
    return _affine(weights.reshape(len(weights), -1, group), E.u4, 15, weights)


def nf4(weights: Array) -> Any:
    """Compress to nf4 with a scale for each group."""
    return _looked_up(weights, E.nf4, 15)


def mxfp4(weights: Array) -> Any:
    """Compress to f4e2m1 with a power of two as the scale of each group."""
    groups = weights.reshape(len(weights), -1, GROUP)
    scale = np.exp2(np.floor(np.log2(np.abs(groups).max(2, keepdims=True))) - 1)
    numbers = constant((groups / scale).astype(E.f4e2m1.dtype), E.f4e2m1)
    exponents = constant(scale.astype(E.f8e8m0.dtype), E.f8e8m0)
    return _flat(op.multiply(op.convert(numbers, "f16"), op.convert(exponents, "f16")), weights)


def f8e4m3(weights: Array) -> Any:
    """Compress to f8e4m3 with a scale for each output."""
    scale = np.abs(weights).max(1, keepdims=True) / 448
    numbers = constant((weights / scale).astype(E.f8e4m3.dtype), E.f8e4m3)
    return _wide(op.multiply(op.convert(numbers, "f16"), op.constant(scale.astype(np.float16))))


def f16(weights: Array) -> Any:
    """Convert to f16, as ``compress_to_fp16`` does."""
    return _wide(op.constant(weights.astype(np.float16)))


def f32(weights: Array) -> Any:
    """Leave the weights as they are."""
    return op.constant(weights)


COMPRESSIONS: dict[str, Compress] = {
    f.__name__: f for f in (int8, uint8, int4, uint4, nf4, mxfp4, f8e4m3, f16)
}


def _affine(groups: Array, element: E, highest: int, whole: Array | None = None) -> Any:
    low, high = groups.min(-1, keepdims=True), groups.max(-1, keepdims=True)
    scale = (high - low) / highest
    zero = np.rint(-low / scale)
    numbers = constant(
        np.clip(np.rint(groups / scale) + zero, 0, highest).astype(np.uint8).astype(element.dtype), element
    )
    zeros = op.convert(constant(zero.astype(np.uint8).astype(element.dtype), element), "f16")
    found = op.multiply(op.subtract(op.convert(numbers, "f16"), zeros), op.constant(scale.astype(np.float16)))
    return _wide(found) if whole is None else _flat(found, whole)


def _looked_up(weights: Array, element: E, highest: int) -> Any:
    groups = weights.reshape(len(weights), -1, GROUP)
    scale = np.abs(groups).max(2, keepdims=True)
    codes = np.rint((groups / scale + 1) / 2 * highest).astype(np.uint8)
    numbers = op.convert(constant(codes, element), "f16")
    return _flat(op.multiply(numbers, op.constant(scale.astype(np.float16))), weights)


def _flat(groups: Any, weights: Array) -> Any:
    return _wide(op.reshape(groups, op.constant(np.array(weights.shape)), False))


def _wide(node: Any) -> Any:
    return op.convert(node, "f32")


def weights(*shape: int) -> Array:
    """Draw weights, scaled so that activations keep their magnitude."""
    return (np.random.default_rng(shape).standard_normal(shape) / shape[-1] ** 0.5).astype(np.float32)


def dense(x: Any, compress: Compress, outputs: int, inputs: int) -> Any:
    """A product with compressed weights, and a bias."""
    product = op.matmul(x, compress(weights(outputs, inputs)), False, True)
    return op.add(product, op.constant(weights(1, outputs)))


def mlp(compress: Compress) -> ov.Model:
    """Three layers with ReLUs, for any number of rows."""
    x = op.parameter([-1, 128], np.float32, name="x")
    y = op.relu(dense(x, compress, 96, 128))
    y = op.relu(dense(y, compress, 64, 96))
    return ov.Model([op.result(dense(y, compress, 32, 64), name="y")], [x], "mlp")


def transformer(compress: Compress) -> ov.Model:
    """A transformer block with token embeddings and output scores."""
    vocabulary, width, heads = 160, 64, 4
    tokens = op.parameter([-1, -1], np.int64, name="tokens")
    x = op.gather(compress(weights(vocabulary, width)), tokens, op.constant(0))
    apart = op.constant(np.array([0, 0, heads, width // heads]))
    q, k, v = (
        op.transpose(
            op.reshape(dense(_norm(x), compress, width, width), apart, True), op.constant([0, 2, 1, 3])
        )
        for _ in range(3)
    )
    mixed = op.transpose(op.scaled_dot_product_attention(q, k, v), op.constant([0, 2, 1, 3]))
    together = op.reshape(mixed, op.constant(np.array([0, 0, width])), True)
    x = op.add(x, dense(together, compress, width, width))
    x = op.add(
        x, dense(op.gelu(dense(_norm(x), compress, 2 * width, width), "erf"), compress, width, 2 * width)
    )
    return ov.Model([op.result(dense(_norm(x), compress, vocabulary, width))], [tokens], "transformer")


def _norm(x: Any) -> Any:
    return op.mvn(x, op.constant([-1]), True, 1e-5, "INSIDE_SQRT")
