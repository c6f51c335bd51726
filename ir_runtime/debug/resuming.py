"""Resume an interrupted run of the reference, from the saved inputs of the remaining layers."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from itertools import starmap
from typing import Any

from .._util.records import Json, Record
from ..ir.graph import Layer, Port
from ..ir.tensor import Array
from ..openvino.model import Model
from .caching import Entry
from .extract import cut
from .reference import Reference
from .tensors import computed_layers

__all__ = ["Resumable"]


class Resumable:
    """A run of the reference that tracks the inputs of the remaining layers, and can save them to resume later.

    Args:
        model: the model.
        whole: the reference of the model.
        feeds: an array for each input.
        entry: the cache entry, or ``None``.
    """

    def __init__(self, model: Model, whole: Reference, feeds: Sequence[Array], entry: Entry | None) -> None:
        layers = computed_layers(whole.graph)
        is_pure = all(layer.op is not None and layer.op.pure for layer in layers)
        self._entry = entry if is_pure else None  # a cut drops variables
        self._model, self._whole, self._feeds = model, whole, list(feeds)
        self._ends = [port._port for port in whole.outputs]
        self._waiting = {layer.id for layer in layers}
        self._tensors: dict[Port, Array] = {}
        self.notes: Any = None
        """The notes saved by the interrupted run."""

    def start(
        self, asked: Sequence[Port], found: MutableMapping[Port, Array]
    ) -> tuple[Reference, list[Array]]:
        """Restore the saved state; return the reference of the remaining part, and an array for each of its inputs.

        Args:
            asked: the tensors requested in addition to the outputs.
            found: receives those that the interrupted run already computed.
        """
        saved = None if self._entry is None else self._entry.read("cut")
        if saved is None:
            return self._whole, self._feeds
        record, arrays = saved
        starts, done = (list(starmap(Port, record[key])) for key in ("starts", "asked"))
        self._waiting, self.notes = set(record["waiting"]), record["notes"]
        self._tensors = dict(zip(starts, arrays, strict=False))
        found.update(zip(done, arrays[len(starts) :], strict=True))
        part = cut(self._model, starts, [*self._ends, *(port for port in asked if port not in found)])
        parameters = self._whole.graph.of_type("Parameter")
        feeds = {layer.name: feed for layer, feed in zip(parameters, self._feeds, strict=True)}
        rest = [feeds[node.friendly_name] for node in part.parameters[len(starts) :]]
        return self._whole.computing(part), [*arrays[: len(starts)], *rest]

    def note(self, layer: Layer, inputs: Sequence[Array], outputs: tuple[Array, ...]) -> tuple[Array, ...]:
        """Keep tensors that later layers read; a `Change` that changes nothing."""
        if self._entry is None or layer.id not in self._waiting:
            return outputs
        self._waiting.remove(layer.id)
        self._tensors.update(
            (port, array)
            for port, array in zip(layer.output_ports, outputs, strict=False)
            if self._is_needed(port)
        )
        for source in self._whole.graph.reads(self._whole.graph[layer.id]):
            if source in self._tensors and not self._is_needed(source):
                del self._tensors[source]
        return outputs

    def _is_needed(self, port: Port) -> bool:
        readers = self._whole.graph.readers(port)
        return port in self._ends or any(reader.layer in self._waiting for reader in readers)

    def save(self, found: Mapping[Port, Array], notes: Json = None) -> None:
        """Save the state of the run, with the requested tensors computed so far, and notes."""
        if self._entry is not None:
            record: Record = {
                "starts": list(self._tensors), "asked": list(found), "waiting": sorted(self._waiting), "notes": notes,
            }  # fmt: skip
            self._entry.write("cut", record, [*self._tensors.values(), *found.values()])
