"""Emulate the rounding of runtimes that compute in bf16 or f16, beyond that of results.

A node that begins with a product reads its constants in the lower precision: weights, with a following
factor, and biases. Attention rounds its normalised probabilities. Nodes after the last products, and the sums
leading there, run in f32: other consumers of them read rounded values. For f16, the whole model is converted:
layers in f32, such as recurrent sequences, read rounded constants and model inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..ir.evaluation import evaluate_layer
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array
from .numerics import Numerics
from .precision import Prepare, emulated, rounding_to
from .reference import Arrays, Change
from .tensors import computed_layers, end_of_node
from .terms import PRODUCTS, RECURRENT, SAMPLERS

__all__ = ["nodes_in"]

_ATTENTION = "ScaledDotProductAttention"


def nodes_in(numerics: Numerics, graph: Graph, boundaries: Collection[Port]) -> Change | None:
    """Return a change that rounds like the nodes of a runtime; ``None`` for f32.

    Args:
        numerics: the numerics of the runtime.
        graph: the layers.
        boundaries: the tensors between nodes.
    """
    if numerics.precision == "f32":  # sums are not rounded, so nodes are irrelevant
        return emulated("f32", bounded=numerics.bounded, prepare=numerics.prepare)
    changing = {layer.id for layer in (*computed_layers(graph), *graph.of_type("Parameter"))}
    rounded = rounding_to(numerics.precision, numerics.bounded)
    wide, held = frozenset(numerics.wide), frozenset(numerics.held)
    return _Nodes(
        graph, rounded, boundaries, wide, held, changing, numerics.precision == "f16", numerics.prepare
    )


@dataclass
class _Nodes:
    """A change that rounds the results of each layer like the nodes of a runtime."""

    graph: Graph
    rounded: Callable[[Array], Array]
    boundaries: Collection[Port]
    """The tensors between nodes."""
    wide: Collection[int]
    """The layers that compute in f32."""
    held: Collection[int]
    """The layers that give f32."""
    changing: Collection[int]
    """The layers that are not constant."""
    converted: bool
    """Whether layers that compute in f32 read constants and inputs of the model that were rounded."""
    prepare: Prepare | None = None
    """The preparation of layer inputs."""
    factors: dict[int, Array] = field(default_factory=dict)
    """The constant number by which a node multiplies its product, by the product."""
    rounds: Mapping[int, Collection[int]] = field(init=False)
    """Which inputs of a layer are rounded."""

    def __post_init__(self) -> None:
        products = [layer for layer in self.graph if layer.type in PRODUCTS and layer.id not in self.wide]
        rounds = {layer.id: {*range(len(self.graph.reads(layer)))} for layer in products}
        for layer in self.graph:
            if layer.id not in self.wide and layer.type != "Result":
                held = {i for i, port in enumerate(self.graph.reads(layer)) if port.layer in self.held}
                rounds.setdefault(layer.id, set()).update(held)
        for layer in self.graph.of_type(*RECURRENT, *SAMPLERS):
            if layer.id not in self.wide:
                rounds[layer.id] = {*range(len(self.graph.reads(layer)))}
        for product in products:
            for layer in self._following(product):
                rounds[layer.id] |= {
                    i for i, port in enumerate(self.graph.reads(layer)) if port.layer not in self.changing
                }
        if self.converted:
            rounds |= self._given_to_wide()
        for product in products:
            if (scaled := self._scaled(product)) is not None:
                layer, self.factors[product.id] = scaled
                rounds[layer.id].clear()
        self.rounds = {id: inputs for id, inputs in rounds.items() if inputs}

    def _given_to_wide(self) -> dict[int, set[int]]:
        """Return the f32 layers' inputs that are constants or model inputs, and so in lower precision."""
        graph = self.graph
        sources = {layer.id for layer in graph if layer.id not in self.changing or layer.type == "Parameter"}
        return {
            id: {i for i, port in enumerate(graph.reads(graph[id])) if port.layer in sources}
            for id in self.wide
        }

    def _following(self, product: Layer) -> Iterator[Layer]:
        """Yield the layers fused into the node of a product."""
        end, port = end_of_node(self.graph, product, self.changing), product.output_ports[0]
        while port != end:
            layer = self.graph[self.graph.readers(port)[0].layer]
            yield layer
            port = layer.output_ports[0]

    def _scaled(self, product: Layer) -> tuple[Layer, Array] | None:
        """Return the layer that scales a product by a constant factor, and the factor."""
        following = next(self._following(product), None)
        sources = self.graph.reads(product)
        if following is None or following.type != "Multiply" or sources[1].layer in self.changing:
            return None
        read = next(port for port in self.graph.reads(following) if port.layer not in self.changing)
        factor = self.graph[read.layer]
        if factor.type != "Constant" or factor.op is None:
            return None
        number = np.asarray(factor.op.evaluate())
        return (following, number.reshape(())) if number.size == 1 else None

    def __call__(self, layer: Layer, inputs: Sequence[Array], outputs: Arrays) -> Arrays:
        if layer.op is None or layer.op.needs("variables") or layer.op.needs("visit"):
            return outputs
        prepared = inputs if self.prepare is None else self.prepare(layer, inputs)
        given = [
            self.rounded(array) if index in self.rounds.get(layer.id, ()) else array
            for index, array in enumerate(prepared)
        ]
        if layer.id in self.factors:
            factor = self.factors[layer.id]
            given[1] = np.asarray(self.rounded(inputs[1] * factor) / factor)
        if layer.type == _ATTENTION and layer.id not in self.wide:
            outputs = self._attention(layer, given)
        elif any(a is not b for a, b in zip(given, inputs, strict=True)):
            outputs = evaluate_layer(layer, given)
        if layer.id in self.wide or layer.id in self.held:
            return outputs
        return tuple(
            self.rounded(array) if Port(layer.id, index) in self.boundaries else array
            for index, array in enumerate(outputs)
        )

    def _attention(self, layer: Layer, inputs: Sequence[Array]) -> Arrays:
        """Compute attention with rounded probabilities, which are its results for unit values."""
        query, key, value = map(self.rounded, inputs[:3])
        unit = np.broadcast_to(np.eye(key.shape[-2], dtype=value.dtype), (*key.shape[:-1], key.shape[-2]))
        (probabilities,) = evaluate_layer(layer, [query, key, unit, *inputs[3:]])
        return (np.asarray(np.matmul(self.rounded(probabilities), value)),)
