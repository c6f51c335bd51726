"""Stateless decoders of language models: the KV cache is an input."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from openvino import opset15 as op

from models.compressed import COMPRESSIONS, Compress, f32
from models.kinds.registry import Built, Weights, dense, index_input, kind, register

LAYERS, WIDTH, INNER, HEADS, SHARED, VOCABULARY = 2, 512, 1024, 8, 2, 2000
HEAD = WIDTH // HEADS


def _gqa(compress: Compress, tokens: int, past: int, w: Weights, batch: int) -> Built:
    """Two layers of grouped-query attention with rotary embedding and gated dense layers, and the logits."""
    ids = index_input("ids", VOCABULARY, batch, tokens)
    x, caches = op.gather(w(VOCABULARY, WIDTH, gain=20), ids, op.constant(0)), []
    mask = np.triu(np.full((tokens, past + tokens), np.finfo(np.float32).min, np.float32), past + 1)
    for layer in range(LAYERS):
        if past:
            shape = [batch, SHARED, past, HEAD]
            caches += [op.parameter(shape, np.float32, name=f"{name}_{layer}") for name in ("key", "value")]
        held = caches[-2:]
        x = op.add(x, _attention(w, compress, _norm(w, x), held, op.constant(mask), past, tokens))
        x = op.add(x, _gated(w, compress, _norm(w, x)))
    return _product(w, compress, _norm(w, x), WIDTH, VOCABULARY), [ids, *caches]


def _product(w: Weights, compress: Compress, x: Any, inputs: int, outputs: int) -> Any:
    return op.matmul(x, compress(w.array(outputs, inputs)), False, True)


def _norm(w: Weights, x: Any) -> Any:
    """RMSNorm."""
    square = op.reduce_mean(op.multiply(x, x), op.constant([-1]), True)
    return op.multiply(op.divide(x, op.sqrt(op.add(square, op.constant(np.float32(1e-5))))), w(1, 1, WIDTH))


def _attention(
    w: Weights, compress: Compress, x: Any, held: list[Any], mask: Any, past: int, tokens: int
) -> Any:
    query, key, value = (
        _heads(_product(w, compress, x, WIDTH, heads * HEAD), heads) for heads in (HEADS, SHARED, SHARED)
    )
    query, key = (_rotated(each, past, tokens) for each in (query, key))
    if held:
        key, value = (op.concat([old, new], 2) for old, new in zip(held, (key, value), strict=True))
    key, value = (_repeated(each, past + tokens) for each in (key, value))
    mixed = op.transpose(op.scaled_dot_product_attention(query, key, value, mask), op.constant([0, 2, 1, 3]))
    return _product(w, compress, op.reshape(mixed, op.constant([0, 0, WIDTH]), True), WIDTH, WIDTH)


def _heads(x: Any, heads: int) -> Any:
    return op.transpose(op.reshape(x, op.constant([0, 0, heads, HEAD]), True), op.constant([0, 2, 1, 3]))


def _rotated(x: Any, past: int, tokens: int) -> Any:
    """Apply rotary embedding; the halves of a head are the coordinates."""
    speeds = 10000.0 ** (-np.arange(0, HEAD, 2) / HEAD)
    angles = np.tile(np.outer(np.arange(past, past + tokens), speeds), 2).astype(np.float32)
    first, second = op.split(x, op.constant(3), 2).outputs()
    swapped = op.concat([op.negative(second), first], 3)
    return op.add(
        op.multiply(x, op.constant(np.cos(angles))), op.multiply(swapped, op.constant(np.sin(angles)))
    )


def _repeated(x: Any, length: int) -> Any:
    """Repeat key or value heads for the query heads that share them."""
    times = op.constant([1, 1, HEADS // SHARED, 1, 1])
    wide = op.broadcast(op.unsqueeze(x, op.constant(2)), times, broadcast_spec="BIDIRECTIONAL")
    return op.reshape(wide, op.constant([0, HEADS, length, HEAD]), True)


def _gated(w: Weights, compress: Compress, x: Any) -> Any:
    gate = op.swish(_product(w, compress, x, WIDTH, INNER))
    return _product(w, compress, op.multiply(gate, _product(w, compress, x, WIDTH, INNER)), INNER, WIDTH)


for _name, _compress in {"f32": f32, "int8": COMPRESSIONS["int8"], "int4": COMPRESSIONS["int4"]}.items():
    register(f"gqa_{_name}_prefill", partial(_gqa, _compress, 64, 0))
    register(f"gqa_{_name}_step", partial(_gqa, _compress, 1, 128))


@kind
def moe_step(w: Weights, batch: int) -> Built:
    """A single token through a mixture of eight experts with top-2 routing."""
    width, inner, experts, chosen = 256, 512, 8, 2
    x = op.parameter([batch, width], np.float32, name="token")
    best = op.topk(op.softmax(dense(w, x, width, experts, None), 1), op.constant(chosen), 1, "max", "value")
    share = op.divide(best.output(0), op.reduce_sum(best.output(0), op.constant([1]), True))
    rows = op.unsqueeze(op.unsqueeze(x, op.constant([1])), op.constant([1]))  # [batch, 1, 1, width]
    up, gate, down = (
        op.gather(w(experts, *shape, gain=2), best.output(1), op.constant(0))
        for shape in ((inner, width), (inner, width), (width, inner))
    )
    hidden = op.multiply(op.swish(op.matmul(rows, gate, False, True)), op.matmul(rows, up, False, True))
    found = op.squeeze(op.matmul(hidden, down, False, True), op.constant([2]))  # [batch, chosen, width]
    mixed = op.reduce_sum(op.multiply(found, op.unsqueeze(share, op.constant([2]))), op.constant([1]), False)
    return op.add(x, mixed), [x]
