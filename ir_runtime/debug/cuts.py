"""Cuts between the layers of a model, and the parts between cuts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.graph import Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .extract import cut
from .reference import Reference
from .tensors import computed_layers

__all__ = ["Cuts"]


class Cuts:
    """The computing layers of a model in topological order; cut ``n`` is before layer ``n``.

    Args:
        model: the model.
        reference: its reference, which has the graph.
        feeds: an array for each input.
    """

    def __init__(self, model: Model, reference: Reference, feeds: Sequence[Array]) -> None:
        self._model, self._graph = model, reference.graph
        self.layers = computed_layers(self._graph)
        self._place = {layer.id: index for index, layer in enumerate(self.layers)}
        self._outputs = {port._port for port in reference.outputs}
        parameters = self._graph.of_type("Parameter")
        self._feeds = {layer.name: feed for layer, feed in zip(parameters, feeds, strict=True)}

    def crossing(self, place: int) -> list[Port]:
        """Return the tensors computed before a cut and read after it."""
        return [port for port in self._made(0, place) if self._is_read(port, place, len(self.layers))]

    def ends(self, low: int, high: int) -> list[Port]:
        """Return the tensors computed between two cuts that are read later or are outputs."""
        made = self._made(low, high)
        return [p for p in made if p in self._outputs or self._is_read(p, high, len(self.layers))]

    def part(self, low: int, high: int, values: Mapping[Port, Array]) -> tuple[Model, list[Array]]:
        """Return the layers between two cuts as a model, and an array for each of its inputs.

        Args:
            low: the cut before them.
            high: the second cut.
            values: the tensors that cross the first cut.
        """
        starts = [port for port in values if self._is_read(port, low, high)]
        part = cut(self._model, starts, self.ends(low, high))
        rest = [self._feeds[node.friendly_name] for node in part.parameters[len(starts) :]]
        return part, [*(values[port] for port in starts), *rest]

    def _made(self, low: int, high: int) -> list[Port]:
        return [port for layer in self.layers[low:high] for port in layer.output_ports]

    def _is_read(self, port: Port, low: int, high: int) -> bool:
        return any(low <= self._place.get(reader.layer, -1) < high for reader in self._graph.readers(port))
