"""Information about the outputs of layers during a compilation: constant contents, and weights that stay compressed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.pages import MIN_BYTES, held, is_mapped, let_go
from ..ir.tensor import Array, TensorType, Value
from ..limits import current
from .fold import evaluated
from .quantized_weights import Found
from .widen import Widened

__all__ = ["CompileState"]


@dataclass(frozen=True, slots=True)
class CompileState:
    """What kernels may rely on.

    Args:
        graph: the layers.
        values: what was inferred and folded; it grows where compressed weights are unpacked.
        fold: whether contents other than those of constants may be taken for fixed.
        packed: weights that stay compressed, as long as every reader has a kernel for that.
        widened: what was widened to give the graph, if anything was.
    """

    graph: Graph
    values: dict[Port, Value]
    fold: bool
    packed: Mapping[Port, Found]
    widened: Widened | None = None

    def declared(self, port: Port) -> ElementType | None:
        """Return the element type that the model declares of a port that has another one."""
        return None if self.widened is None else self.widened.declared.get(port)

    def original(self, layer: Layer) -> Layer:
        """Return the layer of the model that a layer stands for."""
        return layer if self.widened is None else self.widened.layers.get(layer.id, layer)

    def is_inserted(self, layer: Layer) -> bool:
        """Return whether a layer converts what the model declares to what is computed, or back."""
        return self.widened is not None and layer.id in self.widened.inserted

    def body(self, layer: Layer, body: Body) -> Widened | None:
        """Return what was widened to give a body of a layer."""
        return None if self.widened is None else self.widened.bodies.get((layer.id, body.name))

    def type(self, port: Port) -> TensorType:
        """Return the type of a port."""
        return self.values[port].type

    def contents(self, port: Port) -> Array | None:
        """Return the contents, where they are fixed in the plan."""
        is_constant = self.graph[port.layer].type == "Constant"
        return self.values[port].known() if self.fold or is_constant else None

    def is_fixed(self, port: Port) -> bool:
        """Return whether there are `contents`, without computing them."""
        is_constant = self.graph[port.layer].type == "Constant"
        return (self.fold or is_constant) and self.values[port].is_known

    def visible_value(self, port: Port) -> Value:
        """Return what a kernel may rely on: contents only if they are fixed in the plan."""
        value = self.values[port]
        if self.is_fixed(port):
            return value
        found = self.packed.get(port)
        return Value(value.type, quantized=None if found is None else found.weights)

    def in_place(self, port: Port) -> Array | None:
        """Return the contents of the slot of a port before a run."""
        known = self.contents(port)
        if known is None:
            return self._stand_in(port) if port in self.packed else None
        return held(known) if known.nbytes < MIN_BYTES or not self.fold else known

    def _stand_in(self, port: Port) -> Array:
        """Return zeros instead of weights that stay packed: an array of their shape, without memory."""
        type = self.type(port)
        return np.broadcast_to(np.zeros((), type.element.dtype), type.shape.static)

    def owned(self, port: Port) -> bool:
        """Return whether a constant takes memory, not the file, from where the system fetches it and drops it again."""
        copied = self.values[port].element in (ElementType.boolean, ElementType.string)
        if not self.fold and (array := self.contents(port)) is not None and is_mapped(array):
            return True
        if port in self.packed and not self.is_fixed(port):
            return False
        return self.graph[port.layer].type != "Constant" or copied

    def release(self, ports: Iterable[Port]) -> None:
        """Release the pages of constants that were read; most kernels have copies."""
        for port in ports:
            if (array := self.contents(port)) is not None:
                let_go(array)

    def unpack(self, ports: Iterable[Port]) -> None:
        """Convert compressed weights to f32 if no kernel takes them as stored."""
        for port in ports:
            if self.is_fixed(port):
                continue
            layers = self.packed[port].layers
            for layer in layers:
                (array,) = evaluated(self.graph, layer, self.values, current().memory)
                self.values[Port(layer.id, 0)] = Value.constant(array, self.values[Port(layer.id, 0)].element)
            for layer in layers[:-1]:
                self.values[Port(layer.id, 0)] = Value(self.values[Port(layer.id, 0)].type)
