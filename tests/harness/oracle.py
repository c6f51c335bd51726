"""OpenVINO's answers: its reference where it has one, else its CPU plugin at f32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import openvino as ov

from harness.files import packed
from ir_runtime.ir.element import ElementType, unpack
from ir_runtime.ir.tensor import Array

PLUGIN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "NUM_STREAMS": "1",
}


@cache
def core() -> Any:
    """OpenVINO itself."""
    return ov.Core()


def read(xml: bytes, weights: bytes = b"") -> Any:
    """A model in OpenVINO's hands."""
    return core().read_model(xml, weights)


def answer(model: Any, inputs: Sequence[Array], oracle: str = "reference") -> list[Array]:
    """The outputs, from the reference if it is asked for and implements the operations."""
    if oracle == "reference" and (found := evaluated(model, inputs)) is not None:
        return found
    return plugin(model, inputs)


def plugin(model: Any, inputs: Sequence[Array]) -> list[Array]:
    """What the CPU plugin gives, without its own shortcuts."""
    request = core().compile_model(model, "CPU", PLUGIN).create_infer_request()
    for i, tensor in enumerate(_tensors(model, inputs)):
        request.set_input_tensor(i, tensor)
    request.infer()
    return [array_of(request.get_output_tensor(i)) for i in range(len(model.outputs))]


def evaluated(model: Any, inputs: Sequence[Array]) -> list[Array] | None:
    """What OpenVINO's own definitions of the operations give, if it has all of them."""
    outputs = [ov.Tensor(o.get_element_type(), _shape(o)) for o in model.outputs]
    try:
        if not model.evaluate(outputs, _tensors(model, inputs)):
            return None
    except RuntimeError:
        return None
    return [array_of(o) for o in outputs]


def _tensors(model: Any, inputs: Sequence[Array]) -> list[Any]:
    return [tensor(x, o.get_element_type().to_string()) for x, o in zip(inputs, model.inputs, strict=True)]


def tensor(array: Array, label: str) -> Any:
    """An array in OpenVINO's hands, which knows some types as bits only."""
    element = ElementType.parse(label)
    if element is ElementType.dynamic:
        element = ElementType.from_dtype(array.dtype)
    found = ov.Tensor(getattr(ov.Type, element.label), ov.Shape(array.shape))
    if element is ElementType.string:
        found.str_data = array.astype(str)
    elif array.size:
        found.data.reshape(-1).view(np.uint8)[...] = np.frombuffer(packed(array, element), np.uint8)
    return found


def array_of(tensor: Any) -> Array:
    """The other way round."""
    element, shape = ElementType.parse(tensor.element_type.to_string()), tuple(tensor.shape)
    if element is ElementType.string:
        return np.array(tensor.str_data, object).reshape(shape)
    if not tensor.size:
        return np.empty(shape, element.dtype)
    raw = np.array(tensor.data).reshape(-1).view(np.uint8)
    if element.bits < 8:
        raw = unpack(raw, element.bits, tensor.size)
    return raw.view(element.dtype).reshape(shape)


def _shape(output: Any) -> Any:
    shape = output.get_partial_shape()
    return shape.to_shape() if shape.is_static else ov.Shape([0])
