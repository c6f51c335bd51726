"""Reuse what was inferred about a graph before a change, for the layers that the change does not affect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Value

__all__ = ["Former", "is_same"]


class Former:
    """The values of a graph, to be used again where a layer of a derived graph has the same operation and inputs.

    Args:
        graph: the graph as it was.
        values: what was inferred about it, without findings.
        layers: by the id of a layer in the derived graph, its id in the former one.
    """

    def __init__(self, graph: Graph, values: Mapping[Port, Value], layers: Mapping[int, int]) -> None:
        self._graph, self._values, self._layers = graph, values, layers

    def outputs(self, layer: Layer, inputs: Sequence[Value | None]) -> list[Value] | None:
        """Return the outputs of a layer that receives these inputs, if they are those that it had."""
        id, op = self._layers.get(layer.id), layer.op
        if id is None or op is None or op is not self._graph[id].op:
            return None
        # The symbols of a Parameter have its name, which may have changed; bodies are inferred for their own sake.
        if not op.pure or layer.type == "Parameter" or layer.bodies():
            return None
        former = self._graph[id]
        sources = self._graph.sources(former)
        if len(sources) != len(inputs):
            return None
        for source, value in zip(sources, inputs, strict=True):
            if source is None or not is_same(self._values.get(source), value):
                return None
        found = [self._values.get(Port(id, index)) for index in range(len(former.outputs))]
        known = [value for value in found if value is not None]
        return known if len(known) == len(found) else None


def is_same(one: Value | None, other: Value | None) -> bool:
    """Return whether inference cannot tell two values apart: they are one, or only their types are known, and equal."""
    if one is other:
        return True
    if one is None or other is None or one.element is not other.element:
        return False
    is_known = any(
        v.data is not None or v.bounds is not None or v.quantized is not None for v in (one, other)
    )
    return not is_known and _is_same_shape(one.shape, other.shape)


def _is_same_shape(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are equal, also in which of their lengths are known to be the same as others."""
    if one.is_static or other.is_static:
        return one == other
    if one.rank is None or other.rank is None:
        return one.rank is other.rank
    return tuple(one) == tuple(other)
