"""ONNX Runtime's CPU provider as a side: it runs the ONNX model that the IR was converted from.

OpenVINO's converter keeps the names of ONNX tensors, so tensors with the same name in both models are compared.
Intermediate tensors are observed as additional outputs, as long as the original outputs stay bitwise unchanged:
additional outputs prevent fusions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Port
from ..ir.tensor import Array
from .observation import Observation, observe_faithfully, same_bits
from .reference import Reference

if TYPE_CHECKING:
    from ..openvino.model import Model

__all__ = ["OnnxRuntime", "onnx_files"]

_PROVIDER = "CPUExecutionProvider"
TRIES = 40
"""The most runs with added outputs."""


class OnnxRuntime:
    """A side that runs an ONNX model by ONNX Runtime.

    Args:
        path: the path of the ONNX model.
    """

    def __init__(self, path: str) -> None:
        if not Path(path).is_file():
            raise InputError(
                f"cannot read the ONNX model {path!r}: no such file",
                code=Code.BAD_REQUEST,
                hint="expected onnxruntime:MODEL.onnx",
            )
        self.path = path

    def observe(
        self, model: Model, reference: Reference, feeds: Sequence[Array], ports: Sequence[Port]
    ) -> Observation:
        """Run the ONNX model as it is, then with intermediate tensors as further outputs.

        Raises:
            InputError: if ONNX Runtime is not installed or cannot run the model, or its inputs or outputs do not match the IR.
        """
        session = _Session(self.path, reference, feeds)
        names = {port: name for port in ports if (name := session.name_of(port)) is not None}

        def look(wanted: Sequence[Port]) -> Mapping[Port, Array] | None:
            outputs, tensors = session.run([names[port] for port in wanted])
            return dict(zip(wanted, tensors, strict=True)) if same_bits(outputs, session.outputs) else None

        tensors = observe_faithfully(list(names), look, TRIES)
        missing = tuple(port for port in names if port not in tensors)
        settings = {"version": session.version, "providers": _PROVIDER, "optimization": "all"}
        return Observation("onnxruntime", session.outputs, tensors, unobserved=missing, settings=settings)


class _Session:
    """Runs an ONNX model on the inputs of an IR."""

    def __init__(self, path: str, reference: Reference, feeds: Sequence[Array]) -> None:
        self._runtime, onnx = _package("onnxruntime"), _package("onnx")
        self._reference, self._folder = reference, str(Path(path).parent)
        try:
            self._model = onnx.load(path, load_external_data=False)
        except Exception as reason:  # protobuf raises several kinds of exceptions
            raise InputError(f"{path!r} is not an ONNX model: {reason}", code=Code.BAD_REQUEST) from None
        self._own = [output.name for output in self._model.graph.output]
        self._tensors = {name for node in self._model.graph.node for name in node.output if name}
        self._feeds = self._feeds_by_name(feeds)
        self._order = self._output_order()
        self.outputs, _ = self.run(())
        self.version = str(self._runtime.__version__)

    def name_of(self, port: Port) -> str | None:
        """Return the ONNX name of a tensor of the IR; ``None`` if the ONNX model has no such tensor."""
        names = self._reference.graph[port.layer].outputs[port.number].names
        return next((name for name in names if name in self._tensors), None)

    def run(self, names: Sequence[str]) -> tuple[list[Array], list[Array]]:
        """Return the outputs of the model, and the tensors of these names."""
        model = type(self._model)()
        model.CopyFrom(self._model)
        for name in names:
            if name not in self._own:
                model.graph.output.add().name = name
        options = self._runtime.SessionOptions()
        options.log_severity_level = 4
        options.add_session_config_entry("session.model_external_initializers_file_folder_path", self._folder)
        try:
            session = self._runtime.InferenceSession(
                model.SerializeToString(), options, providers=[_PROVIDER]
            )
            results = session.run([*self._own, *names], self._feeds)
        except Exception as reason:  # exceptions of ONNX Runtime have no common base
            line = str(reason).strip().splitlines()[0]
            raise InputError(f"ONNX Runtime does not run the model: {line}", code=Code.BAD_REQUEST) from None
        arrays = [np.asarray(array) for array in results]
        return [arrays[index] for index in self._order], arrays[len(self._own) :]

    def _feeds_by_name(self, feeds: Sequence[Array]) -> dict[str, Array]:
        """Return the inputs by ONNX name, matched by tensor name, or else by order."""
        weights = {tensor.name for tensor in self._model.graph.initializer}
        required = [entry.name for entry in self._model.graph.input if entry.name not in weights]
        ports = self._reference.inputs
        feeds_by_name = {name: feed for port, feed in zip(ports, feeds, strict=True) for name in port.names}
        if not feeds_by_name.keys() >= set(required):
            _require_as_many("inputs", len(required), len(feeds))
            feeds_by_name = dict(zip(required, feeds, strict=True))
        return {name: feeds_by_name[name] for name in required}

    def _output_order(self) -> list[int]:
        """Return the index of the ONNX output for each output of the IR."""
        ports = self._reference.outputs
        by_name = [
            next((self._own.index(name) for name in port.names if name in self._own), None) for port in ports
        ]
        order = [index for index in by_name if index is not None]
        if len(order) < len(ports):
            _require_as_many("outputs", len(self._own), len(ports))
            return list(range(len(ports)))
        return order


def _require_as_many(what: str, theirs: int, ours: int) -> None:
    if theirs != ours:
        message = f"the ONNX model has {theirs} {what}, the IR {ours}"
        raise InputError(
            message, code=Code.BAD_REQUEST, hint="names that both have are matched, else their order"
        )


def _package(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError:
        raise InputError(
            f"{name} is not installed", code=Code.BAD_REQUEST, hint="pip install onnxruntime onnx"
        ) from None


def onnx_files(path: str) -> list[Path]:
    """Return an ONNX file and its external weight files; unreadable files are omitted.

    Args:
        path: the path of the ONNX file.
    """
    try:
        model = import_module("onnx").load(path, load_external_data=False)
    except Exception:  # protobuf raises several kinds of exceptions; running the model reports the error
        return []
    names = {
        entry.value
        for tensor in _tensors(model.graph)
        for entry in tensor.external_data
        if entry.key == "location"
    }
    files = [Path(path), *(Path(path).parent / name for name in sorted(names))]
    return [file for file in files if file.is_file()]


def _tensors(graph: Any) -> Iterator[Any]:
    """Yield the tensors stored in a graph and its subgraphs."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from _tensors(inner)
