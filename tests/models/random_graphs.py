"""Random graphs: their results, the margins of these, and their files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from harness.files import Writer
from harness.sample import text

from ir_runtime.errors import IRError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.shape import PartialShape
from ir_runtime.ir.tensor import Array, TensorType, Value
from ir_runtime.ops import Op

# A graph is compared to 1e-5 of its largest numbers. Numbers that differ by NOISE where they are
# computed must not come to differ by more than SAFE, or order of summing would decide.
NOISE, SAFE = 2e-7, 2e-6
# i64 is i32 in OpenVINO's plugin, and f32 counts exactly up to 2**24.
LARGEST, LEAST = 1e6, 1e-12

# Not to be taken further.
ENDS = ("Const", "Result", "Assign")


class UnsafeError(Exception):
    """Raised if two correct implementations could give different results."""


class Pair(NamedTuple):
    """A tensor, and its value under different rounding."""

    value: Array
    other: Array


@dataclass(eq=False)
class Tensor:
    """An output of a layer in the run for which the graph is built."""

    layer: Layer
    port: int
    pair: Pair
    exact: bool
    """Whether every implementation finds these very numbers."""
    safe: bool = True
    """Whether other layers may go on from here."""

    @property
    def value(self) -> Array:
        return self.pair.value

    @property
    def element(self) -> ElementType:
        return ElementType.from_dtype(self.value.dtype)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape


Run = Callable[[list[Pair]], list[Pair]]


@dataclass(eq=False)
class Layer:
    """A layer and its operands. ``parts`` are the bodies of branches and loops."""

    type: str
    version: int
    sources: list[Tensor]
    run: Run
    attributes: Mapping[str, str] = field(default_factory=dict)
    shape: str | None = None
    """What a Parameter says of its shape."""
    parts: list[Part] = field(default_factory=list)
    outputs: list[Tensor] = field(default_factory=list)


@dataclass
class Part:
    """A body, the positions of its ports, and its loop-carried values."""

    tag: str
    graph: Graph
    inputs: list[tuple[int, Layer, dict[str, str]]]
    outputs: list[tuple[int, Layer, dict[str, str]]]
    back: list[tuple[Layer, Layer]] = field(default_factory=list)


@dataclass(eq=False, repr=False)
class Graph:
    """Layers in order of creation."""

    open: bool = False
    """Whether ports leave every dimension open."""
    layers: list[Layer] = field(default_factory=list)
    results: list[Layer] = field(default_factory=list)
    sinks: list[Layer] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<graph of {len(self.layers)} layers>"

    def add(self, layer: Layer, exact: bool) -> list[Tensor]:
        """Add a layer if its results are safe."""
        pairs = layer.run([t.pair for t in layer.sources])
        layer.outputs = [
            Tensor(layer, i, p, exact or p.value.dtype.kind != "f", is_safe(p)) for i, p in enumerate(pairs)
        ]
        self.layers.append(layer)
        return layer.outputs

    def result(self, tensor: Tensor) -> Layer:
        """Add an output."""
        layer = Layer("Result", 1, [tensor], lambda pairs: pairs)
        self.layers.append(layer)
        self.results.append(layer)
        return layer

    @property
    def tensors(self) -> list[Tensor]:
        """Return the tensors that further layers may read."""
        return [t for layer in self.layers for t in layer.outputs if t.safe and layer.type not in ENDS]

    def needed(self) -> list[Layer]:
        """Return the layers that results and sinks depend on, in order."""
        found, ahead = set(), [*self.results, *self.sinks]
        while ahead:
            layer = ahead.pop()
            if layer not in found:
                found.add(layer)
                ahead += [t.layer for t in layer.sources]
        return [layer for layer in self.layers if layer in found]

    def parameters(self) -> list[Layer]:
        return [layer for layer in self.needed() if layer.type == "Parameter"]

    def replay(self, fed: Mapping[Layer, Pair]) -> dict[Layer, list[Pair]]:
        """Return the results of all layers, given other results of some, such as Parameters."""
        found: dict[Layer, list[Pair]] = {}
        for layer in self.layers:
            if layer in fed:
                found[layer] = [fed[layer]]
            else:
                found[layer] = layer.run([found[t.layer][t.port] for t in layer.sources])
        return found

    def write(self, weights: bytes = b"", closed: bool = False) -> tuple[Writer, dict[Layer, int]]:
        """Return the file and the ids of its layers; with ``closed``, all shapes are static."""
        writer, ids = Writer(), {}
        writer.weights = weights
        for layer in self.needed():
            ids[layer] = self._write(layer, writer, ids, closed)
        return writer, ids

    def _write(self, layer: Layer, writer: Writer, ids: Mapping[Layer, int], closed: bool) -> int:
        outputs = [self._type(t, closed) for t in layer.outputs]
        if layer.type == "Const":
            return writer.constant(layer.outputs[0].value)
        if layer.type == "Parameter":
            found = layer.outputs[0]
            shape = text(found.shape) if closed or layer.shape is None else layer.shape
            return writer.parameter(found.element, shape, TensorType(found.element, PartialShape(shape)))
        said = dict(layer.attributes)
        if "variable_shape" in said and closed:
            said["variable_shape"] = text(layer.outputs[0].shape)
        return writer.layer(
            layer.type,
            f"opset{layer.version}",
            said,
            [(ids[t.layer], len(t.layer.sources) + t.port) for t in layer.sources],
            outputs,
            [self._type(t, closed) for t in layer.sources],
            inside=self._inside(layer, writer, closed),
        )

    def _type(self, tensor: Tensor, closed: bool) -> TensorType:
        left_open = self.open and not closed
        shape = PartialShape.dynamic(len(tensor.shape)) if left_open else PartialShape(tensor.shape)
        return TensorType(tensor.element, shape)

    @staticmethod
    def _inside(layer: Layer, writer: Writer, closed: bool) -> str:
        maps, bodies = "", ""
        for part in layer.parts:
            inner, ids = part.graph.write(writer.weights, closed)
            writer.weights = inner.weights
            prefix = part.tag.removesuffix("body")
            entries = _entries("input", part.inputs, ids) + _entries("output", part.outputs, ids)
            maps += f"<{prefix}port_map>{entries}</{prefix}port_map>"
            if part.back:
                edges = (f'<edge from-layer="{ids[a]}" to-layer="{ids[b]}"/>' for a, b in part.back)
                maps += f"<back_edges>{''.join(edges)}</back_edges>"
            bodies += f"<{part.tag}>\n{inner.graph()}</{part.tag}>"
        return maps + bodies


def _entries(kind: str, ports: Iterable[tuple[int, Layer, dict[str, str]]], ids: Mapping[Layer, int]) -> str:
    """Return the entries of a port map."""
    return "".join(
        f'<{kind} external_port_id="{port}" internal_layer_id="{ids[layer]}"{_said(extra)}/>'
        for port, layer, extra in ports
    )


def _said(attributes: Mapping[str, str]) -> str:
    return "".join(f' {k}="{v}"' for k, v in attributes.items())


def same(array: Array) -> Run:
    """Return the function of a layer with fixed results."""
    return lambda pairs: [Pair(array, array)]


def running(op: Op, sources: Sequence[Tensor], exact: bool, trusted: bool = False) -> Run:
    """Return the function of a layer: it runs twice, the second time on inputs with noise.

    Args:
        op: the operation with its attributes.
        sources: its inputs.
        exact: whether the operation is exact.
        trusted: whether any values are acceptable, as nothing depends on them.
    """
    evaluate = op.evaluator([Value.constant(t.value).element for t in sources])

    def run(pairs: list[Pair]) -> list[Pair]:
        try:
            with np.errstate(all="ignore"):
                value, other = (evaluate(*arrays) for arrays in zip(*pairs, strict=True))
        except IRError:
            raise UnsafeError from None  # numbers that the operation refuses
        values, others = (x if isinstance(x, tuple) else (x,) for x in (value, other))
        found = [Pair(v, o if exact else _noisy(o)) for v, o in zip(values, others, strict=True)]
        if not trusted:
            check(found)
        return found

    return run


def _noisy(array: Array) -> Array:
    if array.dtype.kind != "f":
        return array
    signs = np.random.default_rng(array.size).choice([-NOISE, NOISE], array.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(array * (1 + signs)).astype(array.dtype)


def check(pairs: Iterable[Pair]) -> None:
    """Raise `UnsafeError` if another correct implementation could give different final results."""
    if not all(map(is_safe, pairs)):
        raise UnsafeError


def is_safe(pair: Pair) -> bool:
    """Return whether both values agree up to rounding, are numeric, and are not too large."""
    value, other = (x.astype(np.float64) for x in pair)
    if value.shape != other.shape or not value.size:
        return False
    largest = np.abs(value).max()
    if not largest <= LARGEST or 0 < largest < LEAST:
        return False
    bound = SAFE * largest if pair.value.dtype.kind == "f" else 0
    return bool(np.abs(value - other).max() <= bound)
