"""`make`, which the generated factories of opsets call, and the handwritten factories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Any, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import ArrayLike

from ...codes import Code
from ...errors import InputError
from ...ir.element import ElementType
from ...ir.signature import Element, port_at
from ...ir.tensor import Array
from ...ops import Op
from ..node import Node, Output, as_outputs
from ..shapes import PartialShape, ShapeLike
from ..tensor import Tensor
from .control import If, Loop, TensorIterator
from .ends import Assign, Constant, Parameter, ReadValue, Result, element_of, holds
from .layer import operation_class
from .variables import Variable, VariableInfo

__all__ = [
    "Assign",
    "If",
    "Loop",
    "NodeInput",
    "TensorIterator",
    "TypeLike",
    "constant",
    "constant_1",
    "make",
    "parameter",
    "read_value",
    "result",
    "roi_pooling",
]

NodeInput: TypeAlias = "Node | Output | ArrayLike"
"""An operand: an output, a node for all its outputs, or an array-like that becomes a Constant."""
TypeLike: TypeAlias = "ElementType | str | type | np.dtype[Any]"
"""An element type, its name, or a NumPy or Python type with an element type."""

_TENSOR = Node | Output
# OpenVINO's defaults of convolution and pooling attributes, per spatial axis.
_PER_AXIS = {"pads_begin": 0, "pads_end": 0, "dilations": 1}
# Placeholders of omitted optional inputs that precede present ones: a value, and the input whose type it takes.
_STAND_INS = {
    ("ScaledDotProductAttention", 3): (0, 0),
    ("EmbeddingBagOffsets", 3): (-1, 1),
    ("EmbeddingBagOffsetsSum", 3): (-1, 1),
    ("EmbeddingSegmentsSum", 4): (-1, 1),
}
# Defaults of the optional inputs of NonMaxSuppression, by index.
_NO_LIMITS: Mapping[int, np.generic] = {2: np.int64(0), 3: np.float32(0), 4: np.float32(0)}


def make(
    type: str,
    opset: int,
    inputs: Sequence[NodeInput | None],
    attributes: Mapping[str, object],
    name: str | None = None,
) -> Node:
    """Create an operation.

    Args:
        type: the operation.
        opset: the opset that determines its version.
        inputs: its operands, None for an omitted optional input.
        attributes: the attributes by name, None for the default.
        name: the name of the node, and the prefix of new Constants' names.

    Raises:
        ValidationError: if inputs or attributes are invalid.
    """
    operands: Sequence[object] = inputs
    if not all(isinstance(value, _TENSOR) for value in inputs):
        operands = _promote_numbers(operation_class(type, opset), _fill_inputs(type, list(inputs)))
        operands = [_name_constant(value, name) for value in operands]
    return Node.create(type, opset, operands, _per_axis(attributes), name)


def _fill_inputs(type: str, inputs: list[NodeInput | None]) -> list[NodeInput]:
    """Drop omitted trailing inputs, and replace other omitted ones by values that have the same effect."""
    if type == "NonMaxSuppression":
        inputs = [_NO_LIMITS.get(i) if value is None else value for i, value in enumerate(inputs)]
    while inputs and inputs[-1] is None:
        inputs.pop()
    return [_stand_in(type, i, inputs) if value is None else value for i, value in enumerate(inputs)]


def _stand_in(type: str, index: int, inputs: Sequence[NodeInput | None]) -> NodeInput:
    if (type, index) not in _STAND_INS:
        message = f"input {index} of {type}, counted from 0, must be given where later ones are"
        raise InputError(message, code=Code.BAD_REQUEST)
    number, like = _STAND_INS[type, index]
    return make("ConvertLike", 1, [np.int32(number), inputs[like]], {})


def _name_constant(value: object, name: str | None) -> object:
    """Convert an array-like operand to a Constant named after the consuming node; return nodes and outputs unchanged."""
    if isinstance(value, _TENSOR) or name is None:
        return value
    node = as_outputs(value)[0].node
    node.set_friendly_name(f"{name}/{node.friendly_name}")
    return node


def _per_axis(attributes: Mapping[str, object]) -> Mapping[str, object]:
    strides = attributes.get("strides")
    if strides is None or not isinstance(strides, Sized):
        return attributes
    absent = [name for name in _PER_AXIS if name in attributes and attributes[name] is None]
    return {**attributes, **{name: [_PER_AXIS[name]] * len(strides) for name in absent}}


# Type promotion of Python numbers among operands.


def _promote_numbers(cls: type[Op], inputs: Sequence[object]) -> list[object]:
    """Convert Python numbers among the operands to arrays of the types that the operation requires.

    As in ``add(x, 1)``, that is the type of another operand. Numbers outside its range are not converted.
    """
    if not any(map(_is_numbers, inputs)):
        return list(inputs)
    types = [_type_of(value) for value in inputs]
    if None in types:
        return list(inputs)
    required: dict[str, ElementType] = {}
    for index, type in enumerate(types):
        port = port_at(cls.inputs, index)
        if port is not None and type is not None and type is not ElementType.dynamic and port.element.shared:
            required.setdefault(port.element.name, type)
    return [_convert_number(value, cls, index, required) for index, value in enumerate(inputs)]


def _convert_number(value: object, cls: type[Op], index: int, required: dict[str, ElementType]) -> object:
    port = port_at(cls.inputs, index)
    if not _is_numbers(value) or port is None:
        return value
    array = np.asarray(value)
    element = required.get(port.element.name) if port.element.shared else _narrower(array, port.element)
    return value if element is None else _convert_exactly(array, element, value)


def _narrower(array: Array, allowed: Element) -> ElementType | None:
    """Return f32 if an array of f64, as of Python floats, is given to an input that accepts f32 but not f64, else None."""
    is_refused = array.dtype == np.float64 and ElementType.f64 not in allowed.allowed
    return ElementType.f32 if is_refused and ElementType.f32 in allowed.allowed else None


def _convert_exactly(array: Array, element: ElementType, value: object) -> object:
    """Convert an array of numbers to another type, rounding floats.

    Returns ``value`` if an integer is out of range, floats would become integers, or the type is not numeric.
    """
    if (
        array.dtype.kind not in "if"
        or element.is_encoded
        or (array.dtype.kind == "f" and not element.is_real())
    ):
        return value
    if not element.is_real() and not (element.is_integral_number() and element.bits >= 8):
        return value
    converted = array.astype(element.dtype)
    return converted if element.is_real() or holds(element, array, converted).all() else value


def _type_of(value: object) -> ElementType | None:
    """Return the element type of an operand: ``dynamic`` for Python numbers, None for a node with several outputs."""
    if isinstance(value, Node):
        outputs = value.outputs()
        return outputs[0].element_type if len(outputs) == 1 else None
    if isinstance(value, Output):
        return value.element_type
    if isinstance(value, np.ndarray | np.generic):
        try:
            return ElementType.from_dtype(value.dtype)
        except ValueError:
            return ElementType.dynamic
    return ElementType.dynamic


def _is_numbers(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(map(_is_numbers, value))
    return isinstance(value, int | float) and not isinstance(value, bool | np.generic)


# Handwritten factories.


def parameter(shape: ShapeLike, dtype: TypeLike = np.float32, name: str | None = None) -> Parameter:
    """Parameter-1: an input of the model.

    Args:
        shape: its shape, -1 for dynamic dims.
        dtype: its element type.
        name: the name of the node.
    """
    return _set_name(Parameter(dtype, PartialShape(shape)), name)


def result(data: NodeInput, name: str | None = None) -> Result:
    """Result-1: an output of the model.

    Args:
        data: the returned value.
        name: the name of the node.
    """
    return _set_name(Result(as_outputs(data)[0]), name)


def constant_1(value: ArrayLike, dtype: TypeLike | None = None, name: str | None = None) -> Constant:
    """Constant-1: a tensor stored in the model.

    Args:
        value: its elements; at least one.
        dtype: its element type; by default, that of ``value``.
        name: the name of the node.
    """
    if value is None or np.size(value) == 0:
        raise ValueError("a Constant must have at least one element")
    return constant(value, dtype, name)


@overload
def constant(
    value: ArrayLike, dtype: TypeLike | None = None, name: str | None = None, *, shared_memory: bool = False
) -> Constant: ...
@overload
def constant(tensor: Tensor, shared_memory: bool = True, name: str | None = None) -> Constant: ...
def constant(*args: Any, **kwargs: Any) -> Constant:
    """Constant-1: a tensor stored in the model.

    Args:
        *args: the value, the element type to convert it to, and the name of the node; or a tensor, whether to
            share its memory, and the name of the node.
        **kwargs: the same as keywords: ``value``, ``dtype``, ``name`` and ``shared_memory``; or ``tensor``,
            ``shared_memory`` and ``name``.
    """
    value = args[0] if args else kwargs.get("tensor")
    return (
        _constant_of_tensor(*args, **kwargs)
        if isinstance(value, Tensor)
        else _constant_of_numbers(*args, **kwargs)
    )


def _constant_of_tensor(tensor: Tensor, shared_memory: bool = True, name: str | None = None) -> Constant:
    return _set_name(Constant(tensor, shared_memory=shared_memory), name)


def _constant_of_numbers(
    value: ArrayLike, dtype: TypeLike | None = None, name: str | None = None, *, shared_memory: bool = False
) -> Constant:
    if dtype is None:
        return _set_name(Constant(value, shared_memory=shared_memory), name)
    element = element_of(dtype)
    array = _convert_overflowing(np.asarray(value), element)
    node = Constant(element, array.shape, array) if array.size else Constant(array.astype(element.dtype))
    return _set_name(node, name)


def _convert_overflowing(array: Array, element: ElementType) -> Array:
    """Convert numbers to a type that NumPy has, letting large values overflow as in OpenVINO; else return them unchanged."""
    if array.dtype.kind not in "biuf" or element.is_encoded or element.dtype.isbuiltin != 1:
        return array
    with np.errstate(over="ignore", invalid="ignore"):
        return array.astype(element.dtype)


_NodeT = TypeVar("_NodeT", bound=Node)


def _set_name(node: _NodeT, name: str | None) -> _NodeT:
    if name is not None:
        node.set_friendly_name(name)
    return node


@overload
def read_value(
    init_value: NodeInput,
    variable_id: str | Variable,
    variable_type: TypeLike | None = None,
    variable_shape: ShapeLike | None = None,
    name: str | None = None,
) -> ReadValue: ...
@overload
def read_value(
    variable_id: str | Variable,
    variable_type: TypeLike | None = None,
    variable_shape: ShapeLike | None = None,
    name: str | None = None,
) -> ReadValue: ...
def read_value(*args: Any, **kwargs: Any) -> ReadValue:
    """ReadValue-6: the value of a variable.

    Args:
        *args: the initial value, which may be omitted; the variable, or its id, element type and shape; the
            name of the node.
        **kwargs: the same as keywords: ``init_value``, ``variable_id``, ``variable_type``,
            ``variable_shape``, ``name``.
    """
    has_value = "init_value" in kwargs or (bool(args) and not isinstance(args[0], str | Variable))
    return _make_read_value(*args, **kwargs) if has_value else _make_read_value(None, *args, **kwargs)


def _make_read_value(
    init_value: NodeInput | None,
    variable_id: str | Variable,
    variable_type: TypeLike | None = None,
    variable_shape: ShapeLike | None = None,
    name: str | None = None,
) -> ReadValue:
    variable = (
        variable_id
        if isinstance(variable_id, Variable)
        else _variable(variable_id, variable_type, variable_shape)
    )
    if init_value is None:
        return _set_name(ReadValue(variable), name)
    return _set_name(ReadValue(_name_constant(init_value, name), variable), name)


def _variable(id: str, type: TypeLike | None, shape: ShapeLike | None) -> Variable:
    info = VariableInfo()
    info.variable_id = id
    info.data_type = ElementType.dynamic if type is None else element_of(type)
    info.data_shape = PartialShape.dynamic() if shape is None else PartialShape(shape)
    return Variable(info)


def roi_pooling(
    input: NodeInput,
    coords: NodeInput,
    output_roi: Sequence[int] | None = None,
    spatial_scale: float | None = None,
    method: str = "max",
    name: str | None = None,
    *,
    output_size: Sequence[int] | None = None,
) -> Node:
    """ROIPooling-1: pool regions of feature maps.

    Args:
        input: the feature maps.
        coords: the regions ``[N, 5]``: batch index, x1, y1, x2, y2.
        output_roi: the height and width of the output.
        spatial_scale: the factor that maps region coordinates to the feature maps.
        method: ``max`` or ``bilinear``.
        name: the name of the node.
        output_size: OpenVINO's former name of ``output_roi``.
    """
    size = output_roi if output_size is None else output_size
    if size is None or spatial_scale is None:
        raise AttributeError(f"roi_pooling needs {'output_roi' if size is None else 'spatial_scale'}")
    height, width = size
    attributes = {
        "pooled_h": height,
        "pooled_w": width,
        "spatial_scale": spatial_scale,
        "method": method.lower(),
    }
    return make("ROIPooling", 2, [input, coords], attributes, name)
