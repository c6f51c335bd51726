"""Create a `Side` from the name of a runtime or backend, the path of another model, arrays, or a function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .._util.nearest import did_you_mean
from ..backends import Precision, available, load
from ..codes import Code
from ..compiler.compile import compile_plan
from ..compiler.widen import has_f16, widen
from ..errors import InputError
from ..executor.step import Step
from ..ir.element import ElementType
from ..ir.graph import Graph, Port
from ..ir.tensor import Array
from .extract import cut, stateless
from .matching import match
from .observation import NamedArrays, Observation, Repeated, Side, SideLike
from .recorded_side import Recorded, recorded
from .reference import Recorder, Reference, in_f32
from .spilling import Kept, run_limits
from .tensors import name_of, named_ports, ports_by_name

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["OtherParts", "parts_side", "to_recorded", "side_of", "variants_of"]


def side_of(side: object) -> Side:
    """Return the side that a name, a path, arrays or a function stand for.

    Raises:
        InputError: if there is no such side.
    """
    if isinstance(side, str | Path):
        return _side_by_name(str(side))
    if isinstance(side, Repeated):
        return side_of(side.side)
    if isinstance(side, Mapping):
        return Recorded("arrays", side)
    if isinstance(side, Side):
        return side
    if callable(side):
        return _Function(side)
    if isinstance(side, Sequence):
        return Recorded("arrays", dict(enumerate(side)))
    raise InputError(
        f"a side must be a name, arrays or a function, got {type(side).__name__}",
        code=Code.BAD_REQUEST,
        hint="such as 'openvino', 'numpy', 'theirs.npz' or {'layer': array}",
    )


def to_recorded(side: SideLike) -> SideLike:
    """Convert arrays, or files of arrays, to a `Recorded` side; return any other side unchanged."""
    is_name = isinstance(side, str | Path)
    if str(side).endswith((".npz", ".npy")) if is_name else isinstance(side, Mapping | Sequence):
        return side_of(side)
    return side


def parts_side(side: SideLike, whole: Reference) -> SideLike:
    """Return a side that can run parts of a model; another IR is cut at the matching tensors.

    Args:
        side: the side.
        whole: the whole model.

    Raises:
        InputError: if the side consists of arrays, a function, or a model that cannot be cut.
    """
    if isinstance(side, Repeated):
        part = parts_side(side.side, whole)
        return part if isinstance(part, OtherParts) else replace(side, side=part)
    expected = "expected openvino, openvino:HINT, a backend or another IR"
    if isinstance(side, str | Path):
        if str(side).endswith(".xml"):
            return OtherParts(str(side), whole)
        if str(side).endswith(".onnx"):
            raise InputError(
                f"an ONNX model cannot be cut where the IR is: {expected}", code=Code.BAD_REQUEST
            )
    if str(side).endswith((".npz", ".npy")) if isinstance(side, str | Path) else not isinstance(side, Side):
        raise InputError(f"the side must run parts of the model: {expected}", code=Code.BAD_REQUEST)
    return side


def variants_of(side: SideLike) -> dict[str, SideLike]:
    """Return the variants of a side by description: with one thread, without fusion, or with more exact properties."""
    single = side_of(side)
    others: dict[str, Side] = single.variants() if hasattr(single, "variants") else {}
    if isinstance(side, Repeated):
        return {name: Repeated(other, side.times) for name, other in others.items()}
    return dict(others)


def _side_by_name(name: str) -> Side:
    if name.endswith((".npz", ".npy")):
        return recorded(name)
    if name.endswith(".xml"):
        return _OtherModel(name)
    kind, _, hint = name.partition(":")
    if kind == "openvino":
        from .openvino_side import OpenVINO

        return OpenVINO(hint)
    if kind == "onnxruntime":
        from .onnxruntime_side import OnnxRuntime

        return OnnxRuntime(hint)
    if kind in available():
        return _Backend(kind, hint)
    names = ["openvino", "openvino:default", "openvino:bf16", "onnxruntime", *available()]
    expected = "expected openvino, openvino:HINT, onnxruntime:MODEL.onnx, a backend, native:bf16, or the path of an .npz or .xml"
    raise InputError(
        f"unknown side {name!r}", code=Code.NO_SUCH_NAME, hint=did_you_mean(name, names) or expected
    )


class _Watch:
    """Observer that records the outputs of layers outside of bodies."""

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self._graph, self._recorder = graph, recorder

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Do nothing before a step."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the requested outputs of a step."""
        if (layer := step.layers[-1]) in self._graph:
            self._recorder.record(layer, outputs)


@dataclass(frozen=True)
class _Backend:
    """A side that runs a backend of this package, with its fusions.

    Args:
        backend: the name of the backend.
        hint: the requested precision: ``f32`` or ``bf16``; by default the model's.
        fused: if False, each layer is computed separately.
    """

    backend: str
    hint: str = ""
    fused: bool = True

    def __post_init__(self) -> None:
        if self.hint not in ("", "f32", "bf16"):
            message = f"unknown precision {self.hint!r}"
            raise InputError(message, code=Code.NO_SUCH_NAME, hint="expected f32 or bf16")

    def variants(self) -> dict[str, Side]:
        """Return the backend without fusion."""
        return {"without fusion": replace(self, fused=False)}

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the model, observing the results of each kernel."""
        name, chain = load(self.backend)
        outputs, folds = [port._port for port in reference.outputs], self.fused and name != "reference"
        requested = Precision(self.hint or "f32")
        runs = chain[0].followed(requested) if chain else Precision()
        graph, types = reference.graph, reference.types
        widens = bool(chain) and has_f16(graph, types)
        if (
            widens
        ):  # as compilation does, except for inputs and outputs, so that observed tensors are not rounded
            graph, types = widen(graph, types, ElementType.f32)
            feeds = list(map(in_f32, feeds))
        plan = compile_plan(graph, types, outputs, chain, folds, model.limits, precision=runs)
        recorder = Recorder(ports)
        limits = run_limits(model.limits, reference.needed(feeds).bytes)
        results = plan.run(feeds, [_Watch(graph, recorder)], limits=limits)
        for index in range(len(results)):
            results[index] = reference.declared_output(index, results[index])
        kept_results = Kept(results, copies=True)
        ran = (runs.products,) if self.hint else ()
        settings = {
            "backend": name,
            "INFERENCE_PRECISION_HINT": runs.products,
            "fusion": "on" if folds else "off",
        }
        return Observation(
            self.backend, kept_results, recorder.tensors, self.hint, ran, f16_in_f32=widens, settings=settings
        )


@dataclass(frozen=True)
class _Function:
    """A side that calls a function of the inputs and the names of the tensors to observe."""

    function: Callable[[list[Array], list[str]], NamedArrays]

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Call the function."""
        name = getattr(self.function, "__name__", "function")
        arrays = self.function(list(feeds), [name for _, name in named_ports(reference.graph, ports)])
        return Recorded(name, arrays).observe(model, reference, feeds, ports)


@dataclass(frozen=True)
class _OtherModel:
    """A side that runs another IR by the reference; tensors are matched by structure, or else by layer names."""

    path: str

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the other model on the same inputs."""
        other = _read(self.path, reference)
        return _observation(self.path, Reference(other), feeds, _partners(reference, Reference(other), ports))


class OtherParts:
    """A side that runs parts of another IR, cut at the tensors that match the ends of a part of the model.

    Args:
        path: the path of the other IR.
        whole: the whole model.

    Raises:
        InputError: if the other IR cannot be read, or its number of outputs differs.
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
        """Run the counterpart of the part on the same inputs."""
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
    """Run another model; return its tensors by the matching ports of this one."""
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
    """Match tensors with those of another model, by structure or else by name."""
    pairs = match(reference.graph, other.graph).pairs
    matched, ports_of_name = set(pairs.values()), ports_by_name(other.graph, other.graph)
    matches: dict[Port, Port] = {}
    for port, name in named_ports(reference.graph, ports):
        if port.layer in pairs:
            matches[port] = Port(pairs[port.layer], port.number)
        elif name in ports_of_name and ports_of_name[name].layer not in matched:
            matches[port] = ports_of_name[name]
    return matches
