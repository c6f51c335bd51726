"""Encoder transformers for text and images, some with control flow."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset15 as op

from models.compressed import COMPRESSIONS, Compress, f32
from models.kinds.registry import Built, Weights, conv, index_input, kind, layer_norm, register


def _product(w: Weights, x: Any, inputs: int, outputs: int, compress: Compress = f32) -> Any:
    return op.add(op.matmul(x, compress(w.array(outputs, inputs)), False, True), w(1, 1, outputs))


def _heads(x: Any, heads: int, width: int) -> Any:
    split = op.reshape(x, op.constant([0, 0, heads, width // heads]), True)
    return op.transpose(split, op.constant([0, 2, 1, 3]))


def _attention(w: Weights, x: Any, seen: Any, width: int, heads: int, compress: Compress = f32) -> Any:
    """Attention of ``x`` to ``seen``; both are [batch, rows, width]."""
    sources = (x, seen, seen)
    q, k, v = (_heads(_product(w, source, width, width, compress), heads, width) for source in sources)
    mixed = op.transpose(op.scaled_dot_product_attention(q, k, v), op.constant([0, 2, 1, 3]))
    return _product(w, op.reshape(mixed, op.constant([0, 0, width]), True), width, width, compress)


def _block(w: Weights, x: Any, width: int, heads: int, compress: Compress = f32) -> Any:
    """Return attention and two dense layers, each with residual and normalization, as in BERT."""
    x = layer_norm(w, op.add(x, _attention(w, x, x, width, heads, compress)), width)
    y = op.gelu(_product(w, x, width, 4 * width, compress), "erf")
    return layer_norm(w, op.add(x, _product(w, y, 4 * width, width, compress)), width)


def _bert_small(compress: Compress, w: Weights, batch: int) -> Built:
    """BERT-small: four layers of width 512 over 64 tokens, with compressed weights."""
    width, length = 512, 64
    tokens = index_input("tokens", 1000, batch, length)
    x = op.convert(op.gather(w(1000, width, gain=20), tokens, op.constant(0)), "f32")
    for _ in range(4):
        x = _block(w, x, width, 8, compress)
    return x, [tokens]


for _weights in ("int8", "int4"):
    register(f"bert_small_{_weights}", partial(_bert_small, COMPRESSIONS[_weights]))


@kind
def segformer(w: Weights, batch: int) -> Built:
    """Two stages of overlapping patches and attention to a downsampled map, with a head over both."""
    image = op.parameter([batch, 3, 128, 128], np.float32, name="image")
    maps, x, inputs, side = [], image, 3, 128
    for width, heads, reduction, kernel, stride in ((32, 1, 4, 7, 4), (64, 2, 2, 3, 2)):
        x = conv(w, x, inputs, width, [kernel] * 2, stride=stride, pads=kernel // 2, activation=None)
        side //= stride
        rows = _rows(x, batch, width)
        rows = op.add(
            rows, _reduced_attention(w, layer_norm(w, rows, width), batch, width, heads, reduction, side)
        )
        rows = op.add(rows, _mixed_dense(w, layer_norm(w, rows, width), batch, width, side))
        x, inputs = _as_map(rows, batch, width, side), width
        maps.append(x)
    wide = op.interpolate(
        conv(w, maps[1], 64, 32, [1, 1]), op.constant(np.array([32, 32])), "linear", "sizes",
        axes=op.constant([2, 3]), coordinate_transformation_mode="half_pixel",
    )  # fmt: skip
    fused = conv(w, op.concat([conv(w, maps[0], 32, 32, [1, 1]), wide], 1), 64, 64, [1, 1])
    return conv(w, fused, 64, 19, [1, 1], activation=None), [image]


def _rows(x: Any, batch: int, width: int) -> Any:
    return op.transpose(op.reshape(x, op.constant([batch, width, -1]), False), op.constant([0, 2, 1]))


def _as_map(x: Any, batch: int, width: int, side: int) -> Any:
    return op.reshape(op.transpose(x, op.constant([0, 2, 1])), op.constant([batch, width, side, side]), False)


def _reduced_attention(
    w: Weights, x: Any, batch: int, width: int, heads: int, reduction: int, side: int
) -> Any:
    small = conv(
        w, _as_map(x, batch, width, side), width, width, [reduction] * 2, stride=reduction, activation=None
    )
    return _attention(w, x, layer_norm(w, _rows(small, batch, width), width), width, heads)


def _mixed_dense(w: Weights, x: Any, batch: int, width: int, side: int) -> Any:
    inner = 4 * width
    y = _as_map(_product(w, x, width, inner), batch, inner, side)
    y = op.group_convolution(y, w(inner, 1, 1, 3, 3), [1, 1], [1, 1], [1, 1], [1, 1])
    return _product(w, op.gelu(_rows(y, batch, inner), "erf"), inner, width)


@kind
def looped_transformer(w: Weights, batch: int) -> Built:
    """One block with shared weights in a Loop of six iterations, as in ALBERT."""
    width, length = 128, 32
    x = op.parameter([batch, length, width], np.float32, name="x")
    held = op.parameter([batch, length, width], np.float32, name="held")
    going = op.constant(np.array(True))
    body = ov.Model([op.result(going), op.result(_block(w, held, width, 4))], [held], "body")
    loop = op.loop(op.constant(6), op.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([-1, 0])
    loop.set_merged_input(held, x.output(0), body.results[1].output(0))
    return loop.get_iter_value(body.results[1].output(0), -1), [x]


@kind
def early_exit(w: Weights, batch: int) -> Built:
    """Two blocks, and two more in an If unless the first classification is already certain."""
    width, length = 128, 32
    x = op.parameter([batch, length, width], np.float32, name="x")
    first = _block(w, _block(w, x, width, 4), width, 4)
    scores = op.softmax(_product(w, op.reduce_mean(first, op.constant([1]), True), width, 10), -1)
    certain = op.greater(op.reduce_max(scores, op.constant([0, 1, 2]), False), op.constant(np.float32(0.99)))
    a, b = (op.parameter([batch, length, width], np.float32, name=name) for name in "ab")
    done = ov.Model([op.result(op.relu(a))], [a], "done")
    more = ov.Model([op.result(op.relu(_block(w, _block(w, b, width, 4), width, 4)))], [b], "more")
    choice = op.if_op(certain.output(0))
    choice.set_then_body(done)
    choice.set_else_body(more)
    choice.set_input(first.output(0), a, b)
    return choice.set_output(done.results[0], more.results[0]), [x]
