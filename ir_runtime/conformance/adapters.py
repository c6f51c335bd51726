"""Adapters: functions that run a case in a runtime and return its outputs.

The adapters for OpenVINO configure it to compute as the specification says: in f32 where the model is f32, and without
quantization that the model does not contain.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np

from .._util.child_process import describe_exit, run_command
from .._util.command_folder import Entry, list_entries
from .._util.files import create
from .._version import __version__
from ..backends import available
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.tensor import Array
from .case import Case, encode, from_bytes, load_arrays, npy, to_bytes

__all__ = ["Adapter", "Crashed", "Unsupported", "adapter", "is_foreign", "version_of", "write_folder"]

Adapter: TypeAlias = Callable[[Case], Sequence[Array]]
"""A function that runs a case and returns its outputs, step after step. It raises `Unsupported` if the runtime lacks the
operation, and any other exception if it refuses the model or the inputs."""


class Unsupported(Exception):  # noqa: N818 - an answer
    """The runtime does not implement the operation of a case."""


class Crashed(Exception):  # noqa: N818 - an answer
    """The process of the runtime crashed."""


def adapter(name: str) -> Adapter:
    """Return the adapter for a runtime.

    Args:
        name: ``openvino`` for its CPU plugin, ``openvino:DEVICE`` for another device, ``openvino:reference`` for
            ``Model.evaluate``; a backend of this package; or a command, which contains a space or a slash.

    Raises:
        InputError: if there is no such runtime.
    """
    runtime, _, device = name.partition(":")
    if runtime == "openvino" and not name.endswith(":"):
        return _evaluate if device == "reference" else _Plugin(device or "CPU")
    if name in available():
        return _Backend(name)
    if any(sign in name for sign in " /\\"):
        return _Command(_words(name))
    raise InputError(
        f"unknown runtime {name!r}",
        code=Code.NO_SUCH_NAME,
        hint="expected openvino, openvino:GPU, openvino:reference, a backend such as numpy, or a command with a space or a slash",
    )


def is_foreign(name: str) -> bool:
    """Return whether a runtime is an imported library other than this package."""
    return name.partition(":")[0] == "openvino"


def version_of(name: str) -> str:
    """Return the version of a runtime, or an empty string for a command.

    Raises:
        InputError: if the runtime does not exist, or is not installed.
    """
    adapter(name)
    if is_foreign(name):
        return str(_openvino().get_version()).partition("-")[0]
    return __version__ if name in available() else ""


def _words(command: str) -> list[str]:
    try:
        return shlex.split(command)
    except ValueError as reason:
        message = f"{command!r} is not a command: {str(reason).lower()}"
        raise InputError(message, code=Code.BAD_REQUEST) from None


class _Backend:
    """The adapter for a backend of this package."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def __call__(self, case: Case) -> Sequence[Array]:
        from ..openvino.core import compile_model
        from ..openvino.reading import read_model

        compiled = compile_model(read_model(case.xml, case.weights), backend=self._backend)
        request = compiled.create_infer_request()
        outputs: list[Array] = []
        for feeds in case.feeds:
            results = request.infer(list(feeds))
            outputs += [_copy(results[index]) for index in range(len(compiled.outputs))]
        return outputs


def _copy(array: Array) -> Array:
    """Return a copy of an array, with strings as Python objects like those of cases."""
    return array.astype(object) if array.dtype.kind == "U" else np.array(array)


class _Plugin:
    """The adapter for a device of OpenVINO, in f32 and without optimizations that change results."""

    config = {"INFERENCE_PRECISION_HINT": "f32"}
    cpu_config = {
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
        "KV_CACHE_PRECISION": "f32",
        "NUM_STREAMS": "1",
        "INFERENCE_NUM_THREADS": "1",
    }

    def __init__(self, device: str) -> None:
        self._device = device
        self._config = self.config | (self.cpu_config if device == "CPU" else {})

    def __call__(self, case: Case) -> Sequence[Array]:
        api = _openvino()
        model = _read(api, case)
        try:
            compiled = _core(api).compile_model(model, self._device, self._config)
        except RuntimeError as reason:
            if "Cannot fallback on ngraph reference implementation" in str(reason):
                raise Unsupported(str(reason).strip().splitlines()[-1]) from None
            raise
        request = compiled.create_infer_request()
        outputs: list[Array] = []
        for feeds in case.feeds:
            for index, tensor in enumerate(_tensors(api, case, feeds)):
                request.set_input_tensor(index, tensor)
            request.infer()
            outputs += [_array(request.get_output_tensor(index)) for index in range(len(model.outputs))]
        return outputs


def _evaluate(case: Case) -> Sequence[Array]:
    """Run a case by ``Model.evaluate``, OpenVINO's reference implementations."""
    api = _openvino()
    model = _read(api, case)
    if case.steps > 1:
        raise Unsupported("Model.evaluate keeps no variables")
    outputs = [api.Tensor(port.get_element_type(), _shape(api, port)) for port in model.outputs]
    tensors = _tensors(api, case, case.inputs)
    try:
        implemented = model.evaluate(outputs, tensors)
    except RuntimeError as reason:
        if "Evaluation failed on" not in str(reason):
            raise
        implemented = False
    if not implemented:
        raise Unsupported("Model.evaluate does not implement it")
    return [_array(tensor) for tensor in outputs]


def _openvino() -> Any:
    try:
        return import_module("openvino")
    except ImportError:
        raise InputError(
            "OpenVINO is not installed", code=Code.BAD_REQUEST, hint="pip install openvino"
        ) from None


_CORES: list[Any] = []


def _core(api: Any) -> Any:
    if not _CORES:
        _CORES.append(api.Core())
    return _CORES[0]


def _read(api: Any, case: Case) -> Any:
    try:
        return _core(api).read_model(case.xml, case.weights)
    except RuntimeError as reason:
        if "unsupported opset" in str(reason) or "Cannot create" in str(reason):
            raise Unsupported(str(reason).strip().splitlines()[-1]) from None
        raise


def _tensors(api: Any, case: Case, feeds: Sequence[Array]) -> list[Any]:
    return [
        _tensor(api, array, element)
        for array, element in zip(feeds, case.input_types[: len(feeds)], strict=True)
    ]


def _tensor(api: Any, array: Array, element: ElementType) -> Any:
    """Return an array as a tensor of OpenVINO; contents are copied as bytes, as some types have no NumPy dtype there."""
    tensor = api.Tensor(getattr(api.Type, element.label), api.Shape(array.shape))
    if element is ElementType.string:
        tensor.str_data = array.astype(str)
    elif array.size:
        raw = np.frombuffer(to_bytes(array, element), np.uint8)
        tensor.data.reshape(-1).view(np.uint8)[...] = raw
    return tensor


def _array(tensor: Any) -> Array:
    """Return a copy of a tensor of OpenVINO as an array."""
    element, shape = ElementType.parse(tensor.element_type.to_string()), tuple(tensor.shape)
    if element is ElementType.string:
        return np.array(tensor.str_data, object).reshape(shape)
    if not tensor.size:
        return np.empty(shape, element.dtype)
    return from_bytes(np.array(tensor.data).reshape(-1).view(np.uint8), element, shape)


def _shape(api: Any, port: Any) -> Any:
    shape = port.get_partial_shape()
    return shape.to_shape() if shape.is_static else api.Shape([0])


class _Command:
    """The adapter for a command that is called with a folder, as by ``compare --run``.

    The folder contains ``model.xml``, ``model.bin``, ``inputs/0.npy`` and so on, and ``names.json``; the command writes
    ``outputs/0.npy`` and so on. Its exit code is 0; 4 if it does not implement the operation; any other if it refuses the
    model or the inputs.
    """

    UNSUPPORTED = 4

    def __init__(self, command: Sequence[str]) -> None:
        self._command = command

    def __call__(self, case: Case) -> Sequence[Array]:
        if case.steps > 1:
            raise Unsupported("commands run one step")
        with TemporaryDirectory() as name:
            folder = Path(name)
            write_folder(folder, case)
            code, printed = run_command([*self._command, name])
            last = (printed.strip().splitlines() or [describe_exit(code)])[-1]
            if code == self.UNSUPPORTED:
                raise Unsupported(last)
            if code < 0:
                raise Crashed(describe_exit(code))
            if code:
                raise RuntimeError(f"the command fails: {last}")
            count = len(list((folder / "outputs").glob("*.npy")))
            files = {f"{index}.npy": (folder / f"outputs/{index}.npy") for index in range(count)}
            contents = {name: path.read_bytes() for name, path in files.items() if path.exists()}
            return load_arrays(contents, "", case.output_types[:count])


def write_folder(folder: Path, case: Case) -> None:
    """Write the folder with which a command is called: the model, the inputs, and a list of all files."""
    inputs = _entries("inputs", case.inputs, case.input_types)
    outputs = _entries("outputs", case.expected, case.output_types)
    list_entries(folder, {"inputs": inputs, "outputs": outputs, "tensors": []})
    files = {"model.xml": case.xml, "model.bin": case.weights}
    for entry, array, element in zip(inputs, case.inputs, case.input_types, strict=True):
        files[entry.file] = npy(encode(array, element))
    for name, contents in files.items():
        if contents:  # models without constants have no .bin
            with create(folder / name) as file:
                file.write(contents)


def _entries(kind: str, arrays: Sequence[Array], types: Sequence[ElementType]) -> list[Entry]:
    return [
        Entry.of(kind, index, f"{kind.removesuffix('s')} {index}", (), element.label, array.shape)
        for index, (array, element) in enumerate(zip(arrays, types, strict=True))
    ]
