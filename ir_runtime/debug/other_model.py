"""Another IR as a side, or its parts matching parts of a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Port
from ..ir.tensor import Array
from .extract import cut
from .matching import match
from .observation import Observation
from .reference import Recorder, Reference
from .spilling import Kept
from .stateless import stateless
from .tensors import name_of, named_ports, ports_by_name

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["OtherModel", "OtherParts"]


@dataclass(frozen=True)
class OtherModel:
    """Another IR computed by the reference; its tensors are matched by structure, or else by layer names."""

    path: str

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the other model on the same inputs."""
        other = _read(self.path, reference)
        return _observation(self.path, Reference(other), feeds, _partners(reference, Reference(other), ports))


class OtherParts:
    """Parts of another IR between the tensors matched with the ends of a model's part.

    Args:
        path: the path of the IR.
        whole: the whole model.

    Raises:
        InputError: if it cannot be read, or the number of outputs differs.
    """

    def __init__(self, path: str, whole: Reference) -> None:
        self._path, self._other = path, _read(path, whole)
        ports = [port for layer in whole.graph for port in layer.output_ports]
        pairs = _partners(whole, Reference(self._other), ports)
        self._theirs = {name: pairs[port] for port, name in named_ports(whole.graph, ports) if port in pairs}

    def part(self, model: Model) -> Model:
        """Extract the counterpart of a part of the model.

        Raises:
            InputError: if an end of the part has no counterpart.
        """
        ours = Reference(model)
        starts = [self._find(node.friendly_name) for node in model.parameters]
        return cut(self._other, starts, [self._find(name_of(ours.graph, p._port)) for p in ours.outputs])

    def _find(self, name: str) -> Port:
        if name in self._theirs:
            return self._theirs[name]
        raise InputError(
            f"{self._path!r} cannot be cut at {name!r}: it has no such layer, and none that is connected alike",
            code=Code.NO_SUCH_NAME,
            hint="compare looks at all layers that both models have",
        )

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the part on the same inputs."""
        other = Reference(self.part(model))
        names = named_ports(reference.graph, ports)
        theirs = {port: self._theirs[name] for port, name in names if name in self._theirs}
        return _observation(self._path, other, feeds, theirs)


def _read(path: str, reference: Reference) -> Model:
    from ..openvino.reading import read_model

    other = read_model(path)
    if other.get_variables() and not reference.graph.of_type("ReadValue"):
        other, _ = stateless(other)  # as the model is compared
    if len(other.outputs) != len(reference.outputs):
        raise InputError(
            f"{path!r} has {len(other.outputs)} outputs, the model {len(reference.outputs)}",
            code=Code.BAD_REQUEST,
        )
    return other


def _observation(
    path: str, other: Reference, feeds: Sequence[Array], theirs: dict[Port, Port]
) -> Observation:
    """Run another model; return its tensors by the matching ports."""
    recorder = Recorder(theirs.values())
    try:
        arrays = other.feeds(list(feeds))
    except InputError as reason:
        raise InputError(
            f"the other model, {path!r}, refuses the inputs: {reason.message}",
            code=reason.code,
            hint="give inputs that both models take",
        ) from None
    results = Kept(other.run(arrays, recorder))
    recorded = recorder.tensors
    tensors = {port: recorded[at] for port, at in theirs.items() if at in recorded}
    return Observation(path, results, tensors, f16_in_f32=False, settings={"backend": "reference"})


def _partners(reference: Reference, other: Reference, ports: Sequence[Port]) -> dict[Port, Port]:
    """Return the matching tensors of another model: by structure, or else by name."""
    pairs = match(reference.graph, other.graph).pairs
    matched, ports_of_name = set(pairs.values()), ports_by_name(other.graph, other.graph)
    matches: dict[Port, Port] = {}
    for port, name in named_ports(reference.graph, ports):
        if port.layer in pairs:
            matches[port] = Port(pairs[port.layer], port.number)
        elif name in ports_of_name and ports_of_name[name].layer not in matched:
            matches[port] = ports_of_name[name]
    return matches
