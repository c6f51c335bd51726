"""The subject of a comparison: a model, its inputs, and the observations of a side."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from copy import copy
from dataclasses import replace
from math import prod

from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from .decisions import decides, is_elementwise
from .numerics import Numerics, numerics_of, other_numerics
from .observation import Observation
from .reference import Change, Reference, as_declared
from .spilling import Kept
from .spilling import tensors as stored
from .tensors import computed_layers

__all__ = ["Case"]


def _kept_outputs(seen: Observation) -> Kept:
    """Return the outputs of a side within the memory budget, taking them over."""
    return seen.outputs if isinstance(seen.outputs, Kept) else Kept(iter(seen.outputs))


class Case:
    """A model, its inputs, and the observations of a side.

    Args:
        plain: the reference in the model's own types.
        wide: the reference in f64.
        feeds: an array for each input.
        seen: the observations; the caller must drop its tensors, which may not fit into memory.
        types: ``real`` or ``declared``.
    """

    def __init__(
        self, plain: Reference, wide: Reference, feeds: list[Array], seen: Observation, types: str
    ) -> None:
        self.plain, self.wide = plain, wide
        """The reference in the types of the model, and in f64."""
        self.feeds = feeds
        self.layers = computed_layers(plain.graph)
        """The layers that compute."""
        self.computed = {layer.id for layer in self.layers}
        """Their ids."""
        self.deciding = {layer.id: layer for layer in self.layers if decides(plain.graph, plain.types, layer)}
        """The deciding layers, by id."""
        self.rounding: Change | None = as_declared(plain.types) if types == "declared" else None
        """The rounding of f64."""
        self._shapes = plain.with_shapes(feeds).types
        self.tensors = self._kept(seen)
        """The observed tensors of the side, including deciding outputs."""
        self.seen = replace(seen, tensors={}, outputs=_kept_outputs(seen))
        """The other observations."""
        numerics = numerics_of(seen, plain.graph)
        self.numerics = replace(numerics, declared=True) if types == "declared" else numerics
        """How the side computes."""

    def computing(self, numerics: Numerics) -> Case:
        """Return the case with other numerics of the side."""
        other = copy(self)
        other.numerics = numerics
        return other

    @property
    def reference(self) -> Reference:
        """The reference that computes like the side, without the rounding of `numerics`."""
        if not self.numerics.bounded and self.numerics.precision == "f32":
            return self.wide
        return self.plain if self.numerics.declared else self.plain.in_f32

    def others(self) -> list[Numerics]:
        """Return other possible numerics of the side, the most exact first."""
        has_f16 = self.rounding is None and self.plain.in_f32 is not self.plain
        return other_numerics(self.numerics, self.seen, has_f16)

    def _kept(self, seen: Observation) -> MutableMapping[Port, Array]:
        tensors, waiting = stored(), dict(seen.tensors)
        while waiting:  # tensors spilled to files leave memory one by one
            port, array = waiting.popitem()
            tensors[port] = array
        for index in self.given(seen):
            output, array = self.plain.outputs[index], seen.outputs[index]
            layer = self.deciding.get(output._port.layer)
            if layer is not None and is_elementwise(layer):  # rounding may explain its decisions
                tensors.setdefault(output._port, array)
        return tensors

    @staticmethod
    def given(seen: Observation) -> list[int]:
        """Return the indices of the outputs that the side provides."""
        return [index for index in range(len(seen.outputs)) if index not in seen.absent]

    def observed(self, layer: Layer, outputs: Sequence[Array]) -> tuple[Array, ...]:
        """Replace the outputs of a layer by the side's observed tensors, restoring shapes of flat ones.

        Tensors of impossible shapes are left out.
        """
        replaced = list(outputs)
        for index, port in enumerate(layer.output_ports[: len(outputs)]):
            if port in self.tensors:
                self.shape(port, outputs[index].shape)
                seen = self.tensors[port]
                if seen.shape == outputs[index].shape or self._shapes[port].shape.contains(seen.shape):
                    replaced[index] = seen.astype(outputs[index].dtype, copy=False)
        return tuple(replaced)

    def shape(self, port: Port, shape: tuple[int, ...]) -> None:
        """Reshape a tensor that was observed flat."""
        seen = self.tensors[port]
        if seen.ndim == 1 and seen.ndim != len(shape) and seen.size == prod(shape):
            self.tensors[port] = seen.reshape(shape)
