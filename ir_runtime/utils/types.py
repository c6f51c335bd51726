"""Conversions between NumPy, Python and OpenVINO types.

>>> import numpy as np
>>> from ir_runtime.utils import types
>>> types.get_element_type(np.float16), types.get_element_type_str(int), types.get_dtype(types.get_element_type(bool))
(<Type: 'float16'>, 'i32', dtype('bool'))
>>> types.get_ndarray([1, 2]), types.get_shape([[1, 2]])
(array([1, 2]), [1, 2])
>>> node = types.make_constant_node([1.5], np.float32, name="half")
>>> types.as_node(node) is node, [each.get_type_name() for each in types.as_nodes(1, 2.5)]
(True, ['Constant', 'Constant'])
>>> dict(types.openvino_to_numpy_types_str_map)["f32"], len(types.openvino_to_numpy_types_map) > 10
(<class 'numpy.float32'>, True)
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from .._util.absent import explain_absent
from .._util.arrays import DType
from ..exceptions import OVTypeError
from ..ir.element import ElementType
from ..ir.tensor import Array
from ..openvino.build.ends import Constant
from ..openvino.node import Node, Output

__all__ = [
    "NodeInput",
    "NumericData",
    "NumericType",
    "ScalarData",
    "TensorShape",
    "as_node",
    "as_nodes",
    "get_dtype",
    "get_element_type",
    "get_element_type_str",
    "get_ndarray",
    "get_shape",
    "make_constant_node",
    "openvino_to_numpy_types_map",
    "openvino_to_numpy_types_str_map",
]

NumericData: TypeAlias = int | float | Array
NumericType: TypeAlias = type | DType
ScalarData: TypeAlias = int | float
TensorShape: TypeAlias = list[int]
NodeInput: TypeAlias = Node | int | float | Array

_TEXTS = [(ElementType.string, type) for type in (str, np.str_, bytes, np.bytes_)]
_NUMBERS = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64"]

openvino_to_numpy_types_map: list[tuple[ElementType, type]] = [
    (ElementType.boolean, bool),
    (ElementType.boolean, np.bool_),
    *((ElementType.parse(name), ElementType.parse(name).dtype.type) for name in _NUMBERS),
    (ElementType.bf16, np.uint16),
    *_TEXTS,
]
openvino_to_numpy_types_str_map: list[tuple[str, type]] = [
    (element.label, type) for element, type in openvino_to_numpy_types_map if element is not ElementType.bf16
]

# Python's number types have no width; OpenVINO maps them to these.
_PYTHON = {int: np.int32, float: np.float32}


def get_element_type(data_type: Any) -> ElementType:
    """Return the element type for a NumPy or Python type.

    Raises:
        OVTypeError: if there is none.
    """
    if data_type is None:  # NumPy's f64
        raise _no_element_type(data_type)
    try:
        return ElementType.from_dtype(np.dtype(_PYTHON.get(data_type, data_type)))
    except (TypeError, ValueError, RuntimeError):
        raise _no_element_type(data_type) from None


def _no_element_type(data_type: object) -> OVTypeError:
    return OVTypeError(f"{data_type!r} has no element type")


def get_element_type_str(data_type: Any) -> str:
    """Return the name of the element type for a NumPy or Python type."""
    return get_element_type(data_type).label


def get_dtype(openvino_type: ElementType) -> DType:
    """Return the NumPy dtype for an element type.

    Raises:
        OVTypeError: if there is none.
    """
    if not isinstance(openvino_type, ElementType):
        raise OVTypeError(f"{openvino_type!r} is not an element type")
    if openvino_type.is_dynamic():
        raise OVTypeError(f"{openvino_type.label} has no type in NumPy")
    if openvino_type is ElementType.bf16:
        return np.dtype(np.uint16)  # the raw bits, as in OpenVINO
    return np.dtype(np.str_) if openvino_type is ElementType.string else openvino_type.to_dtype()


def get_ndarray(data: Any) -> Array:
    """Return ``data`` as an array, without a copy if it is one."""
    return np.asarray(data)


def get_shape(data: Any) -> list[int] | tuple[int, ...]:
    """Return the shape of ``data``: a tuple for an array, a list for a scalar or nested lists."""
    return data.shape if isinstance(data, np.ndarray) else list(np.shape(data))


def make_constant_node(value: Any, dtype: Any = None, *, name: str | None = None) -> Constant:
    """Return a Constant node.

    Args:
        value: an array-like.
        dtype: a NumPy type or an element type; by default, that of ``value``.
        name: the name of the node.
    """
    if isinstance(dtype, ElementType):
        node = Constant(dtype, get_shape(value), np.ravel(value).tolist())
    else:
        node = Constant(get_ndarray(value) if dtype is None else np.asarray(value, dtype))
    if name:
        node.set_friendly_name(name)
    return node


def as_node(input_value: Any, name: str | None = None) -> Node | Output:
    """Return a node or an output unchanged, and an array-like as a Constant named ``name``."""
    return (
        input_value if isinstance(input_value, Node | Output) else make_constant_node(input_value, name=name)
    )


def as_nodes(*input_values: Any, name: str | None = None) -> list[Node | Output]:
    """Return nodes and outputs unchanged, and array-likes as Constants named ``name``."""
    return [as_node(value, name=name) for value in input_values]


explain_absent(__name__)
