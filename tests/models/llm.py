"""A small Llama with its KV cache in variables, as written by optimum-intel, with f32 weights or NNCF's u4.

It is built from OpenVINO operations, without torch. Weights are random; u4 weights are a matrix of codes with a zero point
and an f16 scale for each group of 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset6
from openvino import opset13 as op

from ir_runtime.ir.tensor import Array
from models.compressed import COMPRESSIONS, Compress, f32

__all__ = ["LLAMA", "WEIGHTS", "Sizes", "build", "ir_path", "step"]

GROUP = 128
WEIGHTS: dict[str, Compress] = {"f32": f32, "u4": partial(COMPRESSIONS["uint4"], group=GROUP)}


@dataclass(frozen=True)
class Sizes:
    """Model sizes. There are ``heads`` query heads and ``shared`` key and value heads of width ``width / heads``."""

    layers: int = 8
    width: int = 1024
    inner: int = 2816
    heads: int = 16
    shared: int = 4
    vocabulary: int = 16000

    @property
    def head(self) -> int:
        """The width of a head."""
        return self.width // self.heads


LLAMA = Sizes()


def step(tokens: int, past: int = 0, sizes: Sizes = LLAMA, seed: int = 0) -> dict[str, Array]:
    """Return the inputs for ``tokens`` tokens after those in the cache."""
    ids = np.random.default_rng(seed).integers(sizes.vocabulary, size=(1, tokens))
    return {
        "input_ids": ids,
        "attention_mask": np.ones((1, past + tokens), np.int64),
        "position_ids": np.arange(past, past + tokens)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def ir_path(weights: str, out: Path) -> Path:
    """Return the path of the model in a folder; build and save it if it is missing."""
    xml = out / f"llm_{weights}.xml"
    if not xml.exists():
        out.mkdir(parents=True, exist_ok=True)
        unfinished = out / f"unfinished_llm_{weights}.xml"
        ov.save_model(build(WEIGHTS[weights]), unfinished, compress_to_fp16=False)
        for suffix in (".bin", ".xml"):
            unfinished.with_suffix(suffix).replace(xml.with_suffix(suffix))
    return xml


def build(compress: Compress, sizes: Sizes = LLAMA) -> ov.Model:
    """Build the model: tokens, mask, positions and beam order in, logits out."""
    return _Llama(compress, sizes).model()


class _Llama:
    def __init__(self, compress: Compress, sizes: Sizes) -> None:
        self.compress, self.sizes = compress, sizes
        self.rng = np.random.default_rng(0)
        self.ids = _input("input_ids", [-1, -1], np.int64)
        self.mask = _input("attention_mask", [-1, -1], np.int64)
        self.positions = _input("position_ids", [-1, -1], np.int64)
        self.beams = _input("beam_idx", [-1], np.int32)
        self.assigned: list[Any] = []

    def model(self) -> ov.Model:
        sizes = self.sizes
        x = op.gather(self.weights(sizes.vocabulary, sizes.width, scale=1), self.ids, op.constant(0))
        turns, mask = self.turns(), self.bias()
        for layer in range(sizes.layers):
            x = op.add(x, self.attention(self.norm(x), layer, turns, mask))
            x = op.add(x, self.feed_forward(self.norm(x)))
        logits = self.dense(self.norm(x), sizes.vocabulary, sizes.width)
        logits.output(0).get_tensor().set_names({"logits"})
        inputs = [self.ids, self.mask, self.positions, self.beams]
        return ov.Model([op.result(logits, name="logits")], self.assigned, inputs, "llm")

    def weights(self, *shape: int, scale: float | None = None) -> Any:
        scale = shape[-1] ** -0.5 if scale is None else scale
        return self.compress((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def dense(self, x: Any, outputs: int, inputs: int) -> Any:
        return op.matmul(x, self.weights(outputs, inputs), False, True)

    def norm(self, x: Any) -> Any:
        """RMSNorm as exporters write it."""
        gain = self.rng.uniform(0.5, 1.5, (1, 1, self.sizes.width)).astype(np.float32)
        square = op.reduce_mean(op.power(x, _number(2)), op.constant(np.array([-1])), True)
        root = op.sqrt(op.add(square, _number(1e-5)))
        return op.multiply(op.constant(gain), op.multiply(x, op.divide(_number(1), root)))

    def turns(self) -> tuple[Any, Any]:
        """Cosines and sines of the positions, [batch, 1, tokens, head]."""
        half = np.arange(0, self.sizes.head, 2, dtype=np.float32) / self.sizes.head
        speeds = op.constant((10000.0**-half).astype(np.float32)[None, None])
        angles = op.multiply(op.unsqueeze(op.convert(self.positions, "f32"), op.constant(2)), speeds)
        both = op.unsqueeze(op.concat([angles, angles], -1), op.constant(1))
        return op.cos(both), op.sin(both)

    def turned(self, x: Any, turns: tuple[Any, Any]) -> Any:
        """Apply rotary embedding; the halves of a head are the coordinates."""
        half, end, one, last = (op.constant(np.array([n])) for n in (self.sizes.head // 2, 2**62, 1, 3))
        first = op.slice(x, op.constant(np.array([0])), half, one, last)
        second = op.slice(x, half, end, one, last)
        swapped = op.concat([op.multiply(second, _number(-1)), first], -1)
        return op.add(op.multiply(x, turns[0]), op.multiply(swapped, turns[1]))

    def bias(self) -> Any:
        """The attention bias, [batch, 1, tokens, all tokens]: 0 where a token may attend, else the lowest value."""
        total = op.gather(op.shape_of(self.mask), op.constant(1), op.constant(0))
        seen = op.range(op.constant(np.int64(0)), total, op.constant(np.int64(1)), "i64")
        allowed = op.less_equal(seen, op.unsqueeze(self.positions, op.constant(2)))
        kept = op.convert(op.unsqueeze(self.mask, op.constant(1)), "boolean")
        both = op.unsqueeze(op.logical_and(allowed, kept), op.constant(1))
        return op.select(both, _number(0), _number(np.finfo(np.float32).min))

    def attention(self, x: Any, layer: int, turns: tuple[Any, Any], mask: Any) -> Any:
        sizes = self.sizes
        query = self.turned(self.heads(x, sizes.heads), turns)
        key = self.kept(self.turned(self.heads(x, sizes.shared), turns), f"key.{layer}")
        value = self.kept(self.heads(x, sizes.shared), f"value.{layer}")
        mixed = op.scaled_dot_product_attention(query, self.repeated(key), self.repeated(value), mask)
        joined = op.reshape(op.transpose(mixed, op.constant(_ORDER)), op.constant([0, 0, sizes.width]), True)
        return self.dense(joined, sizes.width, sizes.width)

    def heads(self, x: Any, count: int) -> Any:
        """A projection as [batch, heads, tokens, head]."""
        flat = self.dense(x, count * self.sizes.head, self.sizes.width)
        apart = op.reshape(flat, op.constant([0, 0, count, self.sizes.head]), True)
        return op.transpose(apart, op.constant(_ORDER))

    def kept(self, new: Any, name: str) -> Any:
        """The cache in beam order with the new rows appended, which it then stores."""
        shape = [-1, self.sizes.shared, -1, self.sizes.head]
        batch = op.gather(op.shape_of(self.ids), op.constant([0]), op.constant(0))
        rest = op.constant(np.array([self.sizes.shared, 0, self.sizes.head]))
        empty = op.broadcast(_number(0), op.concat([batch, rest], 0))
        held = opset6.read_value(empty, name, np.float32, shape)
        grown = op.concat([op.gather(held, self.beams, op.constant(0)), new], 2)
        self.assigned.append(opset6.assign(grown, name))
        return grown

    def repeated(self, x: Any) -> Any:
        """Repeat key or value heads for the query heads that share them."""
        sizes = self.sizes
        times = op.constant(np.array([1, 1, sizes.heads // sizes.shared, 1, 1]))
        wide = op.broadcast(op.unsqueeze(x, op.constant(2)), times, broadcast_spec="BIDIRECTIONAL")
        return op.reshape(wide, op.constant([0, sizes.heads, -1, sizes.head]), True)

    def feed_forward(self, x: Any) -> Any:
        width, inner = self.sizes.width, self.sizes.inner
        gate = op.swish(self.dense(x, inner, width))
        return self.dense(op.multiply(gate, self.dense(x, inner, width)), width, inner)


_ORDER = [0, 2, 1, 3]


def _input(name: str, shape: list[int], dtype: type[Any]) -> Any:
    node = op.parameter(shape, dtype, name=name)
    node.output(0).get_tensor().set_names({name})
    return node


def _number(value: float) -> Any:
    return op.constant(np.float32(value))
