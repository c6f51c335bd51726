"""Adapters: how a runtime is given a case, and its outputs are taken. One for another runtime is a function of a case."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, TypeAlias

import numpy as np

from conformance.case import Case
from ir_runtime.backends import available
from ir_runtime.codes import Code
from ir_runtime.errors import InputError
from ir_runtime.ir.element import ElementType
from ir_runtime.ir.packing import pack, unpack
from ir_runtime.ir.tensor import Array

__all__ = ["Adapter", "Unsupported", "adapter"]

Adapter: TypeAlias = Callable[[Case], Sequence[Array]]
"""Runs a case and returns its outputs; raises `Unsupported` if the runtime lacks the operation, else any exception."""

PLUGIN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
}
"""Properties under which OpenVINO's devices compute what a model says."""


class Unsupported(Exception):  # noqa: N818 - an answer
    """The runtime does not implement the operation of a case."""


def adapter(name: str) -> Adapter:
    """Return the adapter for a runtime.

    Args:
        name: ``openvino`` for its CPU plugin, ``openvino:GPU`` for another device, ``openvino:reference`` for
            ``Model.evaluate``; or a backend of this package.

    Raises:
        InputError: if there is no such runtime.
    """
    kind, _, device = name.partition(":")
    if kind == "openvino":
        return _evaluate if device == "reference" else _OnDevice(device or "CPU")
    if name in available():
        return _OnBackend(name)
    raise InputError(
        f"unknown runtime {name!r}",
        code=Code.NO_SUCH_NAME,
        hint=f"expected openvino, openvino:DEVICE, openvino:reference, {', '.join(available())}",
    )


class _OnBackend:
    """A backend of this package."""

    def __init__(self, backend: str) -> None:
        self._backend = backend

    def __call__(self, case: Case) -> Sequence[Array]:
        from ir_runtime.openvino.core import compile_model
        from ir_runtime.openvino.reading import read_model

        compiled = compile_model(read_model(case.xml, case.weights), backend=self._backend)
        results = compiled(list(case.inputs))
        return [results[index] for index in range(len(compiled.outputs))]


class _OnDevice:
    """A device of OpenVINO."""

    def __init__(self, device: str) -> None:
        self._device = device

    def __call__(self, case: Case) -> Sequence[Array]:
        api: Any = import_module("openvino")
        model = api.Core().read_model(case.xml, case.weights)
        request = api.Core().compile_model(model, self._device, PLUGIN).create_infer_request()
        for index, (array, element) in enumerate(zip(case.inputs, case.input_types, strict=True)):
            request.set_input_tensor(index, _tensor(api, array, element))
        request.infer()
        return [_array(request.get_output_tensor(index)) for index in range(len(model.outputs))]


def _evaluate(case: Case) -> Sequence[Array]:
    """Run OpenVINO's own definitions of the operations."""
    api: Any = import_module("openvino")
    model = api.Core().read_model(case.xml, case.weights)
    shapes = [output.get_partial_shape() for output in model.outputs]
    outputs = [
        api.Tensor(output.get_element_type(), shape.to_shape() if shape.is_static else api.Shape([0]))
        for output, shape in zip(model.outputs, shapes, strict=True)
    ]
    inputs = [
        _tensor(api, array, element) for array, element in zip(case.inputs, case.input_types, strict=True)
    ]
    try:
        if not model.evaluate(outputs, inputs):
            raise Unsupported("Model.evaluate does not implement it")
    except RuntimeError as reason:
        raise Unsupported(str(reason).strip().splitlines()[-1]) from None
    return [_array(output) for output in outputs]


def _tensor(api: Any, array: Array, element: ElementType) -> Any:
    """Return an array as a tensor of OpenVINO, which takes types that NumPy lacks as bytes."""
    tensor = api.Tensor(getattr(api.Type, element.label), api.Shape(array.shape))
    if element is ElementType.string:
        tensor.str_data = array.astype(str)
    elif array.size:
        raw = np.ascontiguousarray(array).reshape(-1)
        if element.is_packed:
            raw = pack(raw.view(np.uint8) & ((1 << element.bits) - 1), element.bits)
        tensor.data.reshape(-1).view(np.uint8)[...] = raw.view(np.uint8)
    return tensor


def _array(tensor: Any) -> Array:
    element, shape = ElementType.parse(tensor.element_type.to_string()), tuple(tensor.shape)
    if element is ElementType.string:
        return np.array(tensor.str_data, object).reshape(shape)
    if not tensor.size:
        return np.empty(shape, element.dtype)
    raw = np.array(tensor.data).reshape(-1).view(np.uint8)
    if element.is_packed:
        raw = unpack(raw, element.bits, tensor.size)
    return np.asarray(raw.view(element.dtype).reshape(shape))
