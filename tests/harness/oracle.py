"""OpenVINO's answers: its reference where it has one, else its CPU plugin at f32."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import openvino as ov

from ir_runtime.ir.element import ElementType
from ir_runtime.ir.tensor import Array

PLUGIN = {
    "INFERENCE_PRECISION_HINT": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
    "KV_CACHE_PRECISION": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "NUM_STREAMS": "1",
}

# Types whose numbers OpenVINO's Python package hands over as bits in a dtype of NumPy's own.
FOREIGN = (ElementType.bf16, ElementType.f8e4m3, ElementType.f8e5m2, ElementType.f8e8m0)


@cache
def core() -> Any:
    """OpenVINO itself."""
    return ov.Core()


def read(xml: bytes, weights: bytes = b"") -> Any:
    """A model in OpenVINO's hands."""
    return core().read_model(xml, weights)


def answer(model: Any, inputs: Sequence[Array], oracle: str = "reference") -> list[Array]:
    """The outputs, from the reference if it is asked for and implements the operations."""
    if oracle == "reference" and (found := _evaluate(model, inputs)) is not None:
        return found
    return plugin(model, inputs)


def plugin(model: Any, inputs: Sequence[Array]) -> list[Array]:
    """What the CPU plugin gives, without its own shortcuts."""
    request = core().compile_model(model, "CPU", PLUGIN).create_infer_request()
    for i, x in enumerate(inputs):
        request.set_input_tensor(i, _tensor(x))
    request.infer()
    return [_array(request.get_output_tensor(i)) for i in range(len(model.outputs))]


def _evaluate(model: Any, inputs: Sequence[Array]) -> list[Array] | None:
    outputs = [ov.Tensor(o.get_element_type(), _shape(o)) for o in model.outputs]
    try:
        if not model.evaluate(outputs, [_tensor(x) for x in inputs]):
            return None
    except RuntimeError:
        return None
    return [_array(o) for o in outputs]


def _tensor(array: Array) -> Any:
    element = ElementType.from_dtype(array.dtype)
    if element not in FOREIGN:
        return ov.Tensor(np.array(array, order="C"))
    tensor = ov.Tensor(getattr(ov.Type, element.label), ov.Shape(array.shape))
    tensor.data[...] = array.view(tensor.data.dtype)
    return tensor


def _array(tensor: Any) -> Array:
    element = ElementType.parse(tensor.element_type.to_string())
    copy = np.array(tensor.data)
    return copy.view(element.dtype) if element in FOREIGN else copy


def _shape(output: Any) -> Any:
    shape = output.get_partial_shape()
    return shape.to_shape() if shape.is_static else ov.Shape([0])
