"""Subgraphs that fast backends fuse, each as a small model with valid inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as op

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array
from models import compressed, quantized, recurrent
from models.networks import NETWORKS, conv, layer_norm, weights

__all__ = ["PATTERNS"]

Pattern = tuple[Callable[[], ov.Model], Callable[[], list[Array]]]
PATTERNS: dict[str, Pattern] = {}


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def pattern(*shapes: tuple[int, ...]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function that builds a subgraph on f32 inputs of these shapes."""

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        def build() -> ov.Model:
            inputs = [op.parameter(list(shape), np.float32) for shape in shapes]
            return ov.Model([op.result(make(*inputs))], inputs, make.__name__)

        PATTERNS[make.__name__] = build, lambda: [numbers(*shape, seed=i) for i, shape in enumerate(shapes)]
        return make

    return register


def attended(q: Any, k: Any, v: Any, *masks: Any) -> Any:
    scores = op.multiply(op.matmul(q, k, False, True), op.constant(np.float32(0.3)))
    for mask in masks:
        scores = op.add(scores, mask)
    return op.matmul(op.softmax(scores, -1), v, False, False)


HEADS = (2, 3, 5, 8)


@pattern(HEADS, (2, 3, 7, 8), (2, 3, 7, 6))
def spelled_attention(q: Any, k: Any, v: Any) -> Any:
    return attended(q, k, v)


@pattern(HEADS, (2, 3, 7, 8), (2, 3, 7, 6))
def spelled_attention_with_a_constant_mask(q: Any, k: Any, v: Any) -> Any:
    return attended(q, k, v, op.constant(numbers(1, 3, 5, 7)))


@pattern(HEADS, (2, 3, 7, 8), (2, 3, 7, 6), (2, 1, 1, 7))
def spelled_attention_with_a_mask(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return attended(q, k, v, mask)


@pattern(HEADS)
def spelled_attention_to_constants(q: Any) -> Any:
    return attended(q, op.constant(numbers(2, 3, 7, 8)), op.constant(numbers(2, 3, 7, 6)))


@pattern((2, 5, 3, 8), (2, 7, 3, 8), (2, 7, 3, 6))
def attention_by_einsum(q: Any, k: Any, v: Any) -> Any:
    scores = op.multiply(op.einsum([q, k], "bqhd,bkhd->bhqk"), op.constant(numbers(3, 1, 1)))
    return op.einsum([op.softmax(scores, -1), v], "bhqk,bkhv->bqhv")


@pattern((2, 5, 16))
def einsum_with_weights(x: Any) -> Any:
    made = op.einsum([x, weights(16, 3, 8)], "abc,cde->adbe")
    return op.relu(op.einsum([weights(3, 8, 16), made], "dec,adbe->abc"))


@pattern((2, 5, 16))
def einsum_that_is_a_product(x: Any) -> Any:
    return op.relu(op.einsum([x, weights(24, 16)], "abc,dc->abd"))


@pattern((2, 2, 3, 5, 8), (2, 2, 3, 7, 8), (2, 2, 3, 7, 6), (2, 2, 3, 5, 7))
def attention_in_batches_of_batches(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return attended(q, k, v, mask)


@pattern((8, 3, 6, 8), (8, 3, 6, 8), (8, 3, 6, 8))
def attention_in_windows(q: Any, k: Any, v: Any) -> Any:
    scores = op.add(op.matmul(q, k, False, True), op.constant(numbers(1, 3, 6, 6)))
    apart = op.reshape(scores, op.constant(np.array([2, 4, 3, 6, 6])), False)
    masked = op.add(apart, op.constant(numbers(1, 4, 1, 6, 6, seed=5)))
    joined = op.reshape(masked, op.constant(np.array([8, 3, 6, 6])), False)
    return op.matmul(op.softmax(joined, -1), v, False, False)


def repeated(heads: Any, times: int) -> Any:
    apart = op.unsqueeze(heads, op.constant(np.array([2])))
    wide = op.broadcast(apart, op.constant(np.array([1, 1, times, 1, 1])), broadcast_spec="BIDIRECTIONAL")
    return op.reshape(wide, op.constant(np.array([0, 2 * times, -1, 8])), True)


@pattern((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8))
def grouped_queries(q: Any, k: Any, v: Any) -> Any:
    return op.scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3))


@pattern((2, 6, 5, 8), (2, 2, 7, 8), (2, 2, 7, 8), (2, 1, 5, 7))
def grouped_queries_with_a_mask(q: Any, k: Any, v: Any, mask: Any) -> Any:
    return op.scaled_dot_product_attention(q, repeated(k, 3), repeated(v, 3), mask)


def mean_square(x: Any) -> Any:
    squares = op.multiply(x, x)
    return op.add(op.reduce_mean(squares, op.constant(np.array([-1])), True), op.constant(np.float32(1e-5)))


@pattern((3, 5, 20))
def rows_of_length_one(x: Any) -> Any:
    norm = op.reduce_l2(x, op.constant(np.array([-1])), True)
    return op.multiply(op.divide(x, op.maximum(norm, op.constant(np.float32(1e-12)))), weights(20))


@pattern((3, 5, 20))
def rms_norm_by_division(x: Any) -> Any:
    return op.multiply(op.divide(x, op.sqrt(mean_square(x))), weights(1, 1, 20))


@pattern((3, 5, 20))
def rms_norm_by_power(x: Any) -> Any:
    normal = op.multiply(x, op.power(mean_square(x), op.constant(np.float32(-0.5))))
    return op.multiply(weights(20), normal)


@pattern((3, 5, 20), (3, 5, 20))
def rms_norm_of_a_sum(x: Any, y: Any) -> Any:
    both = op.add(x, y)
    return op.multiply(both, op.divide(op.constant(np.float32(1)), op.sqrt(mean_square(both))))


@pattern((2, 16, 12, 13), (2, 8, 12, 13))
def convolution_with_a_sum(x: Any, y: Any) -> Any:
    return op.relu(op.add(conv(x, 8, 3, 1, None), y))


@pattern((2, 16, 12, 13), (2, 8, 12, 13))
def pointwise_with_a_product(x: Any, y: Any) -> Any:
    return op.multiply(conv(x, 8, 1, 1, op.swish), y)


@pattern((1, 16, 20, 20))
def by_winograd(x: Any) -> Any:
    return conv(conv(x, 16), 32)


@pattern((1, 3, 20, 21))
def few_channels(x: Any) -> Any:
    return conv(x, 8, 5, 2)


@pattern((2, 6, 11, 12), (2, 6, 11, 12))
def depthwise_with_a_sum(x: Any, y: Any) -> Any:
    made = op.group_convolution(x, weights(6, 1, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    return op.clamp(op.add(op.add(made, weights(1, 6, 1, 1)), y), 0.0, 6.0)


@pattern((2, 12, 11, 12))
def groups_of_channels(x: Any) -> Any:
    made = op.group_convolution(x, weights(3, 8, 4, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    return op.relu(op.add(made, weights(1, 24, 1, 1)))


@pattern((1, 8, 24, 24))
def convolutions_in_a_row(x: Any) -> Any:
    """Convolutions and the layers between them in networks."""
    y = conv(x, 16)
    y = op.group_convolution(y, weights(16, 1, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    y = op.relu(op.add(y, weights(1, 16, 1, 1)))
    y = op.max_pool(conv(y, 8, 1), [2, 2], [1, 1], [0, 0], [0, 0], [2, 2]).output(0)
    y = op.avg_pool(conv(op.relu(y), 16), [1, 1], [1, 1], [1, 1], [3, 3], True)
    return op.reduce_mean(y, op.constant(np.array([2, 3])), False)


@pattern((2, 8, 6, 5), (2, 4, 6, 5))
def joined_maps(x: Any, y: Any) -> Any:
    return op.concat([conv(x, 8, 1), op.relu(y), conv(y, 4)], 1)


@pattern((2, 6, 4, 5))
def shuffled_channels(x: Any) -> Any:
    apart = op.reshape(conv(x, 40, 1), op.constant(np.array([0, 2, 20, 4, 5])), True)
    turned = op.transpose(apart, op.constant(np.array([0, 2, 1, 3, 4])))
    return op.reshape(turned, op.constant(np.array([0, 40, 4, 5])), True)


@pattern((2, 3, 8, 9))
def largest_of_windows(x: Any) -> Any:
    return ov.opset14.max_pool(x, [2, 2], [1, 1], [0, 0], [1, 1], [3, 3], "ceil").output(0)


@pattern((2, 3, 4, 5, 6))
def largest_in_volumes(x: Any) -> Any:
    y = op.max_pool(op.relu(x), [1, 1, 1], [1, 1, 1], [0, 0, 0], [0, 0, 0], [2, 2, 2]).output(0)
    return ov.opset14.max_pool(y, [2, 1, 2], [1, 1, 1], [0, 0, 0], [1, 1, 1], [2, 2, 2], "ceil").output(0)


@pattern((2, 6, 8))
def regrouped_parts(x: Any) -> Any:
    first, second = op.split(x, op.constant(np.int64(1)), 2).outputs()
    return op.concat([second, first], 2)


@pattern((2, 6, 8))
def rolled(x: Any) -> Any:
    ends = np.array([2]), np.array([100]), np.array([1]), np.array([1])
    starts = np.array([0]), np.array([2]), np.array([1]), np.array([1])
    return op.concat([op.slice(x, *map(op.constant, part)) for part in (ends, starts)], 1)


@pattern((1, 32, 48, 48))
def large_maps(x: Any) -> Any:
    """Large maps with a constant for each channel."""
    made = op.subtract(
        op.multiply(op.add(x, weights(1, 32, 1, 1)), weights(1, 32, 1, 1)), weights(1, 32, 1, 1)
    )
    return op.minimum(
        op.maximum(op.divide(made, weights(1, 32, 1, 1)), weights(1, 32, 1, 1)), weights(1, 32, 1, 1)
    )


@pattern((1, 32, 48, 48))
def maps_of_large_maps(x: Any) -> Any:
    """Single layers with a constant for each channel."""
    layers = op.add, op.subtract, op.multiply, op.divide, op.maximum, op.minimum
    return op.concat([layer(x, weights(1, 32, 1, 1)) for layer in layers], 0)


@pattern((2, 6, 40), (2, 6, 40), (40,), (2, 1, 40), (2, 6, 1))
def element_wise(x: Any, y: Any, row: Any, plane: Any, column: Any) -> Any:
    made = op.multiply(op.subtract(op.add(x, y), row), plane)
    made = op.maximum(op.divide(made, op.constant(np.float32(3))), column)
    return op.tanh(op.add(made, weights(1, 6, 40)))


@pattern((3, 5, 24), (3, 5, 16))
def product_with_a_sum(x: Any, y: Any) -> Any:
    made = op.add(op.matmul(x, weights(16, 24), False, True), weights(1, 1, 16))
    return op.add(op.gelu(made, "erf"), y)


@pattern((24, 5))
def product_of_columns(x: Any) -> Any:
    return op.relu(op.matmul(x, weights(24, 33), True, False))


@pattern((64, 64), (64, 64))
def products_of_constants(x: Any, y: Any) -> Any:
    return op.add(op.matmul(x, weights(64, 64), False, False), op.matmul(y, weights(64, 64), False, True))


@pattern((3, 5, 32))
def normal_layer(x: Any) -> Any:
    return op.relu(layer_norm(op.gelu(x, "tanh")))


@pattern((2, 8, 5, 6))
def normal_groups(x: Any) -> Any:
    y = op.group_normalization(x, weights(8), weights(8), 4, 1e-5)
    return op.swish(op.mvn(y, op.constant(np.array([2, 3])), True, 1e-5, "INSIDE_SQRT"))


@pattern((1, 4, 9, 10))
def enlarged(x: Any) -> Any:
    sizes, axes = op.constant(np.array([18, 20])), op.constant(np.array([2, 3]))
    return op.relu(op.interpolate(conv(x, 8), sizes, "linear_onnx", "sizes", axes=axes))


@pattern((2, 3, 10, 11), (5, 4))
def regions(x: Any, boxes: Any) -> Any:
    corners = op.concat([op.abs(boxes), op.add(op.abs(boxes), op.constant(np.float32(3)))], 1)
    picked = op.gather(corners, op.constant(np.array([0, 1, 4, 5])), op.constant(1))
    return op.roi_align(conv(x, 8), picked, op.constant(np.array([0, 1, 0, 1, 1])), 3, 2, 2, 1.0, "avg")


@pattern((1, 3, 12, 14))
def quantized_convolutions(x: Any) -> Any:
    y = quantized.symmetric(x, 2.5)
    y = op.convolution(y, quantized.quantized_weights(18, 3, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    y = quantized.asymmetric(op.relu(op.add(y, quantized.bias(18))), 0, 2.2)
    y = op.max_pool(y, [1, 1], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    filters = quantized.quantized_weights(18, 1, 1, 3, 3, groups=True)
    deep = op.group_convolution(y, filters, [1, 1], [1, 1], [1, 1], [1, 1])
    deep = quantized.asymmetric(op.clamp(op.add(deep, quantized.bias(18)), 0, 2), 0, 1.7)
    deep = op.convolution(deep, quantized.quantized_weights(18, 18, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
    return quantized.asymmetric(op.add(quantized.symmetric(deep, 2.0), y), -1.5, 3)


@pattern((1, 3, 12, 14))
def quantized_maximum_that_others_read(x: Any) -> Any:
    y = quantized.symmetric(x, 2.5)
    y = op.convolution(y, quantized.quantized_weights(18, 3, 3, 3), [2, 2], [1, 1], [1, 1], [1, 1])
    y = quantized.asymmetric(op.relu(op.add(y, quantized.bias(18))), 0, 2.2)
    y = op.max_pool(y, [1, 1], [1, 1], [1, 1], [1, 1], [3, 3]).output(0)
    deep = op.convolution(y, quantized.quantized_weights(18, 18, 1, 1), [1, 1], [0, 0], [0, 0], [1, 1])
    return op.multiply(quantized.symmetric(deep, 2.0), op.sigmoid(y))


def _compressed(name: str, compress: compressed.Compress) -> None:
    def by_rows() -> ov.Model:
        x = op.parameter([3, 64], np.float32)
        return ov.Model([op.result(op.relu(compressed.dense(x, compress, 96, 64)))], [x])

    def embedded() -> ov.Model:
        ids = op.parameter([2, 5], np.int64)
        tables = [compress(compressed.weights(40, 64)) for _ in range(3)]
        makers = ov.opset1.gather, ov.opset7.gather, ov.opset8.gather
        found = [make(table, ids, op.constant(0)) for make, table in zip(makers, tables, strict=True)]
        return ov.Model(list(map(op.result, found)), [ids])

    PATTERNS[f"product_of_{name}"] = by_rows, lambda: [numbers(3, 64)]
    PATTERNS[f"embedding_of_{name}"] = embedded, lambda: [np.arange(10).reshape(2, 5) * 4 % 40]


def _recurrent(build: Callable[[int, int], ov.Model]) -> None:
    batch, time = recurrent.BATCH, recurrent.TIME
    PATTERNS[build.__name__] = (
        lambda: build(batch, time),
        lambda: [numbers(batch, time, recurrent.FEATURES), np.arange(batch) % time + 1],
    )


def _codes(element: ElementType) -> compressed.Compress:
    """Return random codes of an element type, and a scale for each output."""

    def compress(weights: Array) -> Any:
        codes = np.random.default_rng(0).integers(0, 1 << min(element.bits, 6), weights.shape)
        stored = codes.astype(np.uint8).view(element.dtype)
        made = op.convert(compressed.constant(stored, element), "f32")
        return op.multiply(made, op.constant(numbers(len(weights), 1)))

    return compress


for _name, _compress in compressed.COMPRESSIONS.items():
    _compressed(_name, _compress)
for _element in ElementType:
    if _element.bits <= 8 and _element not in (ElementType.dynamic, ElementType.boolean, ElementType.string):
        _compressed(_element.label, _codes(_element))
for _build in recurrent.NETWORKS:
    _recurrent(_build)
PATTERNS.update(NETWORKS)
PATTERNS["cells"] = recurrent.cells, lambda: [numbers(recurrent.BATCH, recurrent.FEATURES)]


@pattern((2, 3, 5, 8), (2, 1, 5, 8), (2, 1, 5, 8))
def rotary_by_slices(x: Any, cos: Any, sin: Any) -> Any:
    start, half, end, step, axis = (op.constant(np.array([n])) for n in (0, 4, 2**62, 1, 3))
    negated = op.multiply(op.slice(x, half, end, step, axis), op.constant(np.float32(-1)))
    turned = op.concat([negated, op.slice(x, start, half, step, axis)], -1)
    return op.add(op.multiply(x, cos), op.multiply(turned, sin))


@pattern((3, 5, 8), (5, 8), (5, 8))
def rotary_by_a_split(x: Any, cos: Any, sin: Any) -> Any:
    halves = op.split(x, op.constant(-1), 2)
    turned = op.concat([op.negative(halves.output(1)), halves.output(0)], 2)
    return op.add(op.multiply(sin, turned), op.multiply(cos, x))


def _chosen(name: str, by_rows: bool, indices: type) -> None:
    """Products with matrices selected by indices, of several rows, followed by a bias and a sum."""

    def build() -> ov.Model:
        x, places = op.parameter([2, 1, 3, 20], np.float32), op.parameter([2, 4], indices)
        shape = (5, 70, 20) if by_rows else (5, 20, 70)
        found = [
            op.matmul(
                x, op.gather(op.constant(numbers(*shape, seed=i)), places, op.constant(0)), False, by_rows
            )
            for i in range(2)
        ]
        gate = op.swish(op.add(found[0], op.constant(numbers(1, 70))))
        return ov.Model([op.result(op.multiply(gate, found[1]))], [x, places])

    places = np.array([[0, 4, -1, 2], [3, 3, 1, -5]], indices)
    PATTERNS[name] = build, lambda: [numbers(2, 1, 3, 20), places]


_chosen("chosen_matrices_by_rows", True, np.int64)
_chosen("chosen_matrices_by_columns", False, np.int32)
