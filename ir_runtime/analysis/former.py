"""Reuse inference from before a change of the graph, for the layers that the change does not affect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import Value

__all__ = ["Former", "is_same"]


class Former:
    """The values of a former graph, reused where a layer has the same operation and inputs.

    Args:
        graph: the graph as it was.
        values: its inferred values, without findings.
        layers: by the id of a layer in the derived graph, its id in the former one.
    """

    def __init__(self, graph: Graph, values: Mapping[Port, Value], layers: Mapping[int, int]) -> None:
        self._graph, self._values, self._layers = graph, values, layers

    def outputs(self, layer: Layer, inputs: Sequence[Value | None]) -> list[Value] | None:
        """Return a layer's former outputs if it had the same inputs, else ``None``."""
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
        values = [self._values.get(Port(id, index)) for index in range(len(former.outputs))]
        present = [value for value in values if value is not None]
        return present if len(present) == len(values) else None


def is_same(one: Value | None, other: Value | None) -> bool:
    """Return whether inference cannot tell two values apart: the same object, or equal types and no data."""
    if one is other:
        return True
    if one is None or other is None or one.element is not other.element:
        return False
    is_known = any(
        v.data is not None or v.bounds is not None or v.quantized is not None for v in (one, other)
    )
    return not is_known and _is_same_shape(one.shape, other.shape)


def _is_same_shape(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are equal, including the symbols of their dims."""
    if one.is_static or other.is_static:
        return one == other
    if one.rank is None or other.rank is None:
        return one.rank is other.rank
    return tuple(one) == tuple(other)
