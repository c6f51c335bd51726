"""Fused layers, computed one by one by their operations, for inputs that a fused kernel does not compute."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.deferred import DeferredValue
from ...ir.graph import Layer, Port
from ...ir.tensor import Array
from .. import MatchContext

__all__ = ["LayerByLayer", "with_deferred"]


class LayerByLayer:
    """Computes layers in order from their input arrays, and returns the last result."""

    def __init__(self, context: MatchContext, layers: Sequence[Layer], reads: Sequence[Port]) -> None:
        self._reads = reads
        self._layers = [(layer, context.sources(layer)) for layer in layers]

    def __call__(self, *arrays: Array) -> Array:
        """Return the first output of the last layer."""
        found: dict[Port, Array] = dict(zip(self._reads, arrays, strict=True))
        for layer, sources in self._layers:
            assert layer.op is not None
            result: Array | tuple[Array, ...] = layer.op.evaluate(*(found[source] for source in sources))
            found[Port(layer.id, 0)] = result[0] if isinstance(result, tuple) else result
        return found[Port(self._layers[-1][0].id, 0)]


def with_deferred(context: MatchContext, layers: Sequence[Layer]) -> tuple[Layer, ...]:
    """Return the layers of a kernel after those that dequantize weights only they use.

    These weights are then computed only if the layers run one by one.
    """
    inside = {each.id for each in layers}
    ports = dict.fromkeys(port for each in layers for port in context.sources(each))
    alone = (port for port in ports if all(each.layer in inside for each in context.graph.readers(port)))
    values = map(context.value, alone)
    more = [layer for value in values if isinstance(value, DeferredValue) for layer in value.layers]
    return (*more, *layers)
