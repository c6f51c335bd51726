"""Conversions between types of NumPy, of Python and of OpenVINO."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..absent import answers
from ..exceptions import OVTypeError
from ..ir.element import ElementType
from ..ir.tensor import Array

__all__ = ["get_dtype", "get_element_type", "get_element_type_str", "get_ndarray", "get_shape"]

# Python's own types have no width; OpenVINO takes these.
_PYTHON = {int: np.int32, float: np.float32}


def get_element_type(data_type: Any) -> ElementType:
    """Return the element type of a type of NumPy or Python.

    Raises:
        OVTypeError: if there is none.
    """
    try:
        return ElementType.from_dtype(np.dtype(_PYTHON.get(data_type, data_type)))
    except (TypeError, ValueError, RuntimeError):
        raise OVTypeError(f"{data_type!r} has no element type") from None


def get_element_type_str(data_type: Any) -> str:
    """Return the name of the element type of a type of NumPy or Python, as `get_element_type`."""
    return str(get_element_type(data_type))


def get_dtype(openvino_type: ElementType) -> np.dtype[Any]:
    """Return the type of NumPy of an element type.

    Raises:
        OVTypeError: if there is none.
    """
    if openvino_type.is_dynamic():
        raise OVTypeError(f"{openvino_type} has no type in NumPy")
    return np.dtype(np.str_) if openvino_type is ElementType.string else openvino_type.to_dtype()


def get_ndarray(data: Any) -> Array:
    """Return an array of numbers or of an array."""
    return np.asarray(data)


def get_shape(data: Any) -> list[int]:
    """Return the shape of numbers or of an array."""
    return list(np.shape(data))


__getattr__ = answers(__name__)
