"""Compress weights to f16, as OpenVINO does when it saves a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import numpy as np

from ...ir.element import ElementType
from ...ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ...ir.operation import Operation
from ...ir.tensor import Array, TensorType
from ...ops import registry
from .document import Content

__all__ = ["compress"]

_WIDE = (ElementType.f32, ElementType.f64)
_LARGEST = float(np.finfo(np.float16).max)
_SMALLEST = float(np.finfo(np.float16).smallest_subnormal)

# A constant is not compressed if this fraction of its values exceeds f16.
_BEYOND = 0.75

# Inputs whose values determine shapes and may be f32; f16 is not precise enough for them.
_DECIDING: Mapping[str, tuple[int, ...]] = {"Interpolate": (1, 2), "Range": (0, 1, 2)}

# Operations by which OpenVINO recognizes a model that is already quantized or compressed.
_QUANTIZING = ("FakeQuantize", "FakeConvert")
_SCALING = ("Multiply", "Subtract")
_SMALL = tuple(map(ElementType.parse, ("i8", "u8", "i4", "u4", "nf4", "f8e4m3", "f8e5m2")))

_BLOCK = 1 << 16

_DECOMPRESSION = MappingProxyType({"decompression": MappingProxyType({"version": "0"})})


def compress(content: Content) -> Content:
    """Replace f32 and f64 constants by f16 ones, each followed by a Convert.

    The Convert takes over the constant's id, name and consumers. A quantized or compressed model is left
    unchanged.
    """
    graph = content.graph
    return content if _is_compressed(graph) else replace(content, graph=_compress_graph(graph))


def _is_compressed(graph: Graph) -> bool:
    return any(
        layer.type in _QUANTIZING
        or "decompression" in layer.rt_info
        or _is_scaled(graph, layer)
        or any(_is_compressed(body.graph) for body in layer.bodies())
        for layer in graph.layers.values()
    )


def _is_scaled(graph: Graph, layer: Layer) -> bool:
    """Return whether a constant holds scaled quantized values of at most a byte each."""
    if layer.type != "Constant" or vars(layer.op)["element_type"] not in _SMALL:
        return False
    converts = [reader for reader in _readers(graph, layer) if reader.type == "Convert"]
    return any(reader.type in _SCALING for convert in converts for reader in _readers(graph, convert))


def _readers(graph: Graph, layer: Layer) -> list[Layer]:
    return [graph[reader.layer] for reader in graph.readers(Port(layer.id, 0))]


def _compress_graph(graph: Graph) -> Graph:
    exact = set(_shape_sources(graph))
    layers: list[Layer] = []
    edges = list(graph.edges)
    free = max(graph.layers, default=-1) + 1
    for layer in graph.layers.values():
        if layer.id in exact or not _can_be_narrow(layer):
            layers.append(replace(layer, op=layer.op and _with_bodies(layer.op)))
            continue
        constant, convert = _pair(layer, free)
        layers += [constant, convert]
        edges.append(Edge(Port(free, 0), Port(layer.id, 0)))
        free += 1
    return Graph(layers, edges)


def _shape_sources(graph: Graph) -> Iterator[int]:
    """Return the constants that shapes are computed from, and the layers in between."""
    waiting = [
        source
        for layer in graph.layers.values()
        for source in _select(graph.sources(layer), _DECIDING.get(layer.type, ()))
    ]
    seen = set()
    while waiting:
        number = waiting.pop().layer
        if number in seen or graph[number].type == "ShapeOf":  # a shape does not depend on values
            continue
        seen.add(number)
        yield number
        waiting += [source for source in graph.sources(graph[number]) if source is not None]


def _select(sources: tuple[Port | None, ...], numbers: tuple[int, ...]) -> list[Port]:
    return [source for number in numbers for source in sources[number : number + 1] if source is not None]


def _can_be_narrow(layer: Layer) -> bool:
    if layer.type != "Constant" or vars(layer.op)["element_type"] not in _WIDE:
        return False
    numbers = vars(layer.op)["value"]
    beyond = sum(_count_beyond(block) for block in _blocks(numbers))
    return bool(numbers.size) and beyond < _BEYOND * numbers.size


def _count_beyond(numbers: Array) -> int:
    sizes = np.abs(numbers)
    return int(np.count_nonzero((sizes > _LARGEST) | ((sizes < _SMALLEST) & (sizes != 0))))


def _to_f16(numbers: Array) -> Array:
    blocks = [np.clip(block, -_LARGEST, _LARGEST).astype(np.float16) for block in _blocks(numbers)]
    return np.concatenate(blocks).reshape(numbers.shape)


def _blocks(numbers: Array) -> Iterator[Array]:
    """Yield the values as f32 in blocks that fit in the cache."""
    flat = numbers.reshape(-1)
    for start in range(0, flat.size, _BLOCK):
        yield flat[start : start + _BLOCK].astype(np.float32, copy=False)


def _pair(layer: Layer, number: int) -> tuple[Layer, Layer]:
    """Return the compressed constant, and the Convert that restores its type."""
    operation = registry.require("Convert")
    assert layer.op is not None
    op = vars(layer.op)
    element, narrow = op["element_type"], TensorType(ElementType.f16, op["shape"])
    value = partial(_to_f16, op["value"])  # converted when written, to save memory
    stored = layer.op.replace(element_type=ElementType.f16, offset=0, size=0, value=value)
    constant = replace(
        layer, id=number, name=f"{layer.name}_compressed", op=stored, outputs=(PortSpec(0, narrow),)
    )
    convert = replace(
        layer,
        type=operation.name,
        version="opset1",
        op=operation(destination_type=element),
        inputs=(PortSpec(0, narrow),),
        outputs=(replace(layer.outputs[0], id=1),),
        attributes={},
        rt_info={**layer.rt_info, **_DECOMPRESSION},
    )
    return constant, convert


def _with_bodies(op: Operation) -> Operation:
    """Return the operation with the constants of its bodies compressed."""
    bodies = {name: body for name, body in vars(op).items() if isinstance(body, Body)}
    stored = {n: replace(body, graph=_compress_graph(body.graph)) for n, body in bodies.items()}
    return op.replace(**stored) if stored else op
