"""Create a `Side` from its name: a runtime, a backend, another model, arrays, or a function."""

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
from .observation import NamedArrays, Observation, Repeated, Side, SideLike
from .other_model import OtherModel, OtherParts
from .recorded_side import Recorded, recorded
from .reference import Recorder, Reference, in_f32
from .spilling import Kept, run_limits
from .tensors import named_ports

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["parts_side", "recorded_of", "side_of", "variants_of"]


def side_of(side: object) -> Side:
    """Return the side for a name, arrays or a function.

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


def recorded_of(side: SideLike) -> SideLike:
    """Return arrays, in files or not, as a `Recorded` side; any other side as it is."""
    is_name = isinstance(side, str | Path)
    if str(side).endswith((".npz", ".npy")) if is_name else isinstance(side, Mapping | Sequence):
        return side_of(side)
    return side


def parts_side(side: SideLike, whole: Reference) -> SideLike:
    """Return a side that runs parts of a model; another IR is cut at the matching tensors.

    Args:
        side: the side.
        whole: the whole model.

    Raises:
        InputError: if it stands for arrays, a function, or a model that cannot be cut.
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
    """Return the variants of a side, if any: with one thread, without fusion, or with more exact properties."""
    single = side_of(side)
    others: dict[str, Side] = single.variants() if hasattr(single, "variants") else {}
    if isinstance(side, Repeated):
        return {name: Repeated(other, side.times) for name, other in others.items()}
    return dict(others)


def _side_by_name(name: str) -> Side:
    if name.endswith((".npz", ".npy")):
        return recorded(name)
    if name.endswith(".xml"):
        return OtherModel(name)
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
    """An observer that records the outputs of layers outside of bodies."""

    def __init__(self, graph: Graph, recorder: Recorder) -> None:
        self._graph, self._recorder = graph, recorder

    def before(self, step: Step, inputs: Sequence[Array]) -> None:
        """Ignore the start of a step."""

    def after(self, step: Step, outputs: Sequence[Array], seconds: float) -> None:
        """Record the requested outputs of a step."""
        if (layer := step.layers[-1]) in self._graph:
            self._recorder.record(layer, outputs)


@dataclass(frozen=True)
class _Backend:
    """A backend of this package, with its fusions.

    Args:
        backend: its name.
        hint: the requested precision: ``f32`` or ``bf16``; by default that of the model.
        fused: if False, every layer is computed alone.
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
        """Run the model, and observe the result of each kernel."""
        name, chain = load(self.backend)
        outputs, folds = [port._port for port in reference.outputs], self.fused and name != "reference"
        requested = Precision(self.hint or "f32")
        runs = chain[0].followed(requested) if chain else Precision()
        graph, types = reference.graph, reference.types
        widens = bool(chain) and has_f16(graph, types)
        if widens:  # as a compilation would, but for inputs and outputs: what is seen is not rounded
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
    """A function of the inputs and the names of tensors."""

    function: Callable[[list[Array], list[str]], NamedArrays]

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Call the function."""
        name = getattr(self.function, "__name__", "function")
        arrays = self.function(list(feeds), [name for _, name in named_ports(reference.graph, ports)])
        return Recorded(name, arrays).observe(model, reference, feeds, ports)
