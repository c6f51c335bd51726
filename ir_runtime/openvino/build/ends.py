"""The node classes `Parameter`, `Constant`, `Result`, `Assign` and `ReadValue`, as in ``openvino.op``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import DTypeLike

from ...codes import Code
from ...errors import InputError
from ...ir.element import ElementType
from ...ir.graph import Layer
from ...ir.tensor import Array
from ...ops.conversion import convert
from ..layout import Layout
from ..node import Node, Output, as_output
from ..shapes import PartialShape, Shape, ShapeLike, Strides
from ..tensor import Tensor
from .layer import array_of, change_attribute, constant, incomplete, operation
from .variables import Variable

__all__ = [
    "Assign",
    "Constant",
    "Parameter",
    "ReadValue",
    "Result",
    "element_of",
    "fill",
    "holds",
]


# Conversion of the values of Constants to arrays.


def fill(element: ElementType, shape: Sequence[int], values: object) -> Array:
    """Return an array of ``shape`` from one value for each element, or from a single value for all.

    Raises:
        InputError: if the number of values is another, or a value is out of the range of the element type.
    """
    is_text = element is ElementType.string
    flat = (np.array(values, object) if is_text else _convert_in_range(element, np.asarray(values))).reshape(
        -1
    )
    if flat.size == 1:
        return np.broadcast_to(flat, shape).copy() if shape else flat.reshape(())
    count = int(np.prod(shape, dtype=np.int64))
    if flat.size != count:
        raise InputError(
            f"a constant of shape {list(shape)} takes {count} values, got {flat.size}", code=Code.BAD_REQUEST
        )
    return flat.reshape(shape)


def _convert_in_range(element: ElementType, values: Array) -> Array:
    """Convert values to an element type; for f32, values that are too large become infinite.

    Raises:
        InputError: if a finite value is out of the range of another type.
    """
    with np.errstate(over="ignore"):
        converted = values.astype(element.dtype)
    if values.dtype.kind not in "iuf" or element.is_encoded:
        return converted
    wrong = values[np.isfinite(values) & ~holds(element, values, converted)]
    if wrong.size:
        raise InputError(f"{wrong[0]} is out of the range of {element.label}", code=Code.BAD_REQUEST)
    return converted


def holds(element: ElementType, values: Array, converted: Array) -> Array:
    """Return a mask of the values within the range of an element type, given the converted values."""
    if element.is_integral_number():
        least = -(2 ** (element.bits - 1)) if element.is_signed() else 0
        return np.asarray((values >= least) & (values <= least + 2**element.bits - 1))
    small = element.is_real() and element.bits < 32
    return np.isfinite(converted.astype(np.float32)) if small else np.ones(values.shape, np.bool_)


def element_of(type: object) -> ElementType:
    """Return the element type for an element type, a NumPy or Python type, or a name.

    A name is looked up among element types first (``u8``), then among NumPy dtypes (``int64``).

    Raises:
        InputError: if there is no such element type.
    """
    if isinstance(type, ElementType):
        return type
    if type is int or type is float:  # OpenVINO maps types without a width to 32 bits
        return ElementType.i32 if type is int else ElementType.f32
    try:
        return _parse_name(type) if isinstance(type, str) else ElementType.from_dtype(type)
    except (TypeError, ValueError) as reason:
        raise InputError(str(reason), code=Code.BAD_REQUEST) from None


def _parse_name(name: str) -> ElementType:
    try:
        return ElementType.parse(name)
    except ValueError as unknown:
        try:
            return ElementType.from_dtype(name)
        except (TypeError, ValueError):
            raise unknown from None


class HasLayout:
    """Mixin with the layout of a Parameter or Result."""

    @property
    def layout(self) -> Layout:
        """The layout, empty if unset."""
        return self._end._layout

    @layout.setter
    def layout(self, layout: Layout) -> None:
        self._end._layout = layout

    @property
    def _end(self) -> Output:
        assert isinstance(self, Node)
        return self.output(0)

    def get_layout(self) -> Layout:
        """Return the layout, empty if unset."""
        return self.layout

    def set_layout(self, layout: Layout) -> None:
        """Set the layout, or remove it with an empty one."""
        self.layout = layout


class Parameter(HasLayout, Node, type="Parameter"):
    """An input of a model.

    >>> Parameter(ElementType.f32, PartialShape([1, -1])).partial_shape
    <PartialShape: [1,?]>
    >>> node = Parameter(ElementType.f32, [1, 3, 8, 8])
    >>> node.set_layout(Layout("NCHW"))
    >>> node.set_element_type(ElementType.f16)
    >>> node.set_partial_shape([1, 3, -1, -1])
    >>> node.layout, node.get_layout() == "NCHW", node.element_type, node.partial_shape
    (<Layout: [N,C,H,W]>, True, <Type: 'float16'>, <PartialShape: [1,3,?,?]>)
    >>> Parameter(ElementType.f32, [2]).get_shape()
    <Shape: [2]>
    """

    layer: Layer

    def __init__(self, element_type: object, shape: ShapeLike) -> None:
        element, partial = element_of(element_type), PartialShape(shape)
        self._build(operation("Parameter", 1, {"element_type": element, "shape": partial}), ())

    def set_element_type(self, element_type: object) -> None:
        """Change the element type of the input.

        Raises:
            InputError: if there is no such element type.
            ValidationError: if it is invalid for a layer; the input is then unchanged.
        """
        self._edit()
        self.layer = change_attribute(self.layer, "element_type", element_of(element_type))
        self._update()

    def set_partial_shape(self, partial_shape: ShapeLike) -> None:
        """Change the shape of the input.

        Raises:
            InputError: if it is not a shape.
            ValidationError: if it is invalid for a layer; the input is then unchanged.
        """
        self._edit()
        self.layer = change_attribute(self.layer, "shape", PartialShape(partial_shape))
        self._update()

    @property
    def partial_shape(self) -> PartialShape:
        """The shape, which may be dynamic."""
        return self.output(0).partial_shape

    @partial_shape.setter
    def partial_shape(self, shape: ShapeLike) -> None:
        self.set_partial_shape(shape)

    def get_shape(self) -> Shape:
        """Return the static shape."""
        return self.shape

    @property
    def element_type(self) -> ElementType:
        """The element type."""
        return self.output(0).element_type

    @element_type.setter
    def element_type(self, element_type: object) -> None:
        self.set_element_type(element_type)


class Constant(Node, type="Constant"):
    """A tensor stored in the model.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> node = Constant(ov.Type.f32, [2, 2], [1, 2, 3, 4.5])
    >>> node.value, node.get_vector(), node.get_value_strings()
    (array([[1. , 2. ],
           [3. , 4.5]], dtype=float32), array([1. , 2. , 3. , 4.5], dtype=float32), ['1', '2', '3', '4.5'])
    >>> node.get_data(dtype=np.int32), node.strides, node.get_byte_size(), node.tensor_view
    (array([[1, 2],
           [3, 4]], dtype=int32), <Strides: (8, 4)>, 16, <Tensor: shape[2,2] type: f32>)

    Args:
        value: an array or a tensor, or the element type.
        shape: the shape, if the element type is given.
        values: the values, or a single one to fill the shape, if the element type is given.
        shared_memory: whether to share the memory of the array instead of copying it.
    """

    def __init__(
        self,
        value: object,
        shape: Sequence[int] | None = None,
        values: object = None,
        *,
        shared_memory: bool = False,
    ) -> None:
        if isinstance(value, ElementType):
            array = fill(value, tuple(shape or ()), values)
            self._build(constant(array, value), ())
            return
        element = value.element_type if isinstance(value, Tensor) else None
        array = value._data if isinstance(value, Tensor) else array_of(value)
        self._build(constant(array if shared_memory else array.copy(), element), ())

    @property
    def value(self) -> Array:
        """The elements as an array."""
        return self.elements

    def get_vector(self) -> Array:
        """Return the elements as a vector, with booleans and sub-byte integers as int8 or uint8."""
        elements, element = self.elements.reshape(-1), self.element_type
        if element is ElementType.boolean:
            return elements.astype(np.int8)
        return elements.astype(element.stored_dtype) if element.is_packed and element.integral else elements

    def get_data(self, *, dtype: DTypeLike | None = None, copy: bool = False) -> Array:
        """Return the contents as ``Tensor.data`` does, or converted to a dtype.

        Args:
            dtype: the dtype to convert to.
            copy: whether to copy the contents.
        """
        element = self.element_type
        if dtype is None or np.dtype(dtype) == element.stored_dtype:
            stored = super().get_data()
            return stored.copy() if copy else stored
        elements, target = self.elements, np.dtype(dtype)
        if element is ElementType.nf4 and target.kind not in "biu":  # codes, which stand for numbers
            return convert(elements, ElementType.f32, element).astype(target, copy=False)
        return elements.astype(target, copy=copy)

    def get_strides(self) -> Strides:
        """Return the number of bytes from one element to the next along each axis.

        Raises:
            InputError: if elements are smaller than a byte.
        """
        return self.tensor_view.strides

    @property
    def strides(self) -> Strides:
        """The number of bytes from one element to the next along each axis."""
        return self.get_strides()

    def get_value_strings(self) -> list[str]:
        """Return each element as a string, with at most six digits for floats, as in OpenVINO."""
        return list(map(_number_text, self.get_vector().tolist()))

    def get_shape(self) -> Shape:
        """Return the shape.

        >>> import numpy as np
        >>> Constant(np.ones((2, 3), np.float32)).get_shape()
        <Shape: [2,3]>
        """
        return self.shape

    def get_byte_size(self) -> int:
        """Return the number of bytes."""
        return self.output(0).tensor.size

    def get_tensor_view(self) -> Tensor:
        """Return the contents as a tensor."""
        return Tensor.of(self.elements, self.element_type)

    @property
    def tensor_view(self) -> Tensor:
        """The contents as a tensor."""
        return self.get_tensor_view()


class Result(HasLayout, Node, type="Result"):
    """An output of a model. Its names are those of its input tensor unless set.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> Result(opset1.relu(opset1.parameter([2], np.float32))).shape
    <Shape: [2]>
    >>> opset1.result(opset1.relu(opset1.parameter([1, 3, 8, 8], np.float32))).layout
    <Layout: [...]>
    >>> result = Result(opset1.parameter([1, 3, 8, 8], np.float32))
    >>> result.set_layout(Layout("NCHW"))
    >>> result.get_layout()
    <Layout: [N,C,H,W]>
    """

    def __init__(self, output: Node | Output) -> None:
        source = as_output(output)
        self._build(operation("Result", 1, {}), [source])

    @classmethod
    def with_names(cls, output: Node | Output) -> Result:
        """Return a Result with a copy of its input tensor's names, which it keeps if the input is replaced.

        >>> from ir_runtime import opset1
        >>> x = opset1.parameter([2], name="x")
        >>> x.output(0).set_names({"image"})
        >>> Result.with_names(x).output(0).names
        {'image'}
        """
        result = cls(output)
        result._set_names(0, result._names_of(0))
        return result


class Assign(Node, type="Assign"):
    """Assigns a value to a variable.

    >>> import numpy as np
    >>> from ir_runtime import opset6
    >>> x = opset6.parameter([2], np.float32)
    >>> opset6.assign(opset6.read_value(x, "count", "f32", [2]), "count").get_variable_id()
    'count'
    """

    _shown_class = "assign"

    def __init__(
        self, new_value: object = None, variable: Variable | str | None = None, name: str = ""
    ) -> None:
        """Assign ``new_value`` to ``variable``. Without arguments, both are set later."""
        if variable is None:
            if new_value is not None:
                raise InputError("an Assign needs a variable", code=Code.BAD_REQUEST)
            self._build_incomplete(incomplete("Assign", 6), [])
            return
        variable_id = variable if isinstance(variable, str) else variable.info.variable_id
        self._build(operation("Assign", 6, {"variable_id": variable_id}), [as_output(new_value)])
        if name:
            self.set_friendly_name(name)

    def get_variable_id(self) -> str:
        """Return the id of the variable."""
        return self.layer.attributes["variable_id"]


class ReadValue(Node, type="ReadValue"):
    """Reads a variable.

    >>> import numpy as np
    >>> from ir_runtime import opset6
    >>> opset6.read_value(opset6.parameter([2], np.float32), "count", "f32", [2]).get_variable_id()
    'count'
    """

    _shown_class = "read_value"

    def __init__(self, new_value: object = None, variable: Variable | None = None) -> None:
        """Read ``variable``, initialized with ``new_value`` if given. Without arguments, both are set later."""
        if new_value is None and variable is None:
            self._build_incomplete(incomplete("ReadValue", 6), [])
            return
        inputs = [] if isinstance(new_value, Variable) else [as_output(new_value)]
        variable_ = new_value if isinstance(new_value, Variable) else variable
        if variable_ is None:
            raise InputError("a ReadValue needs a variable", code=Code.BAD_REQUEST)
        self._build(operation("ReadValue", 6, variable_.info.attributes()), inputs)

    def get_variable_id(self) -> str:
        """Return the id of the variable."""
        return self.layer.attributes["variable_id"]


def _number_text(number: object) -> str:
    if isinstance(number, float):
        return {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}.get(text := f"{number:g}", text)
    return str(int(number)) if isinstance(number, bool) else str(number)
