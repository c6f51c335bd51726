"""The properties of a layer: its name, operation, attributes, data and shapes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Protocol, TypeVar

from .._util.wrong_arguments import NoDataError
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.shape import PartialShape as AnyShape
from ..ir.tensor import Array
from .attributes import Shapes, attributes_of
from .building.layer import type_name
from .descriptor import DescriptorTensor
from .evaluating import evaluated
from .node_ports import AnyInput, AnyOutput
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape
from .tensor import Tensor
from .tensor_data import as_stored
from .type_info import DiscreteTypeInfo

__all__ = ["AttributeVisitor", "LayerInfo"]


class AttributeVisitor(Protocol):
    """Takes attributes."""

    def on_attributes(self, attributes: dict[str, Any]) -> object:
        """Take attributes by their names."""


_Output = TypeVar("_Output", bound=AnyOutput)
_Input = TypeVar("_Input", bound=AnyInput)


class LayerInfo(HasRTInfo, Generic[_Output, _Input]):
    """A layer with its outputs and inputs, to be read.

    A layer, what it reads and what it gives:

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, -1], np.float32, name="x")
    >>> node = opset1.add(x, opset1.constant(np.float32(3), name="three"), name="y")
    >>> node.friendly_name, node.type, node.type_info, node.get_input_size(), node.get_output_size()
    ('y', 'Add', <DiscreteTypeInfo: Add opset1>, 2, 1)
    >>> node.outputs(), node.inputs()
    ([<Output: names[] shape[2,?] type: f32>], [<Input: shape[2,?] type: f32>, <Input: shape[] type: f32>])
    >>> node.input_value(1).get_node().data, node.input_values()[0] == node.input(0).get_source_output()
    (array(3., dtype=float32), True)
    >>> node.partial_shape, node.element_type, node.get_output_partial_shape(0), node.get_output_element_type(0)
    (<PartialShape: [2,?]>, <Type: 'float32'>, <PartialShape: [2,?]>, <Type: 'float32'>)
    >>> node.get_input_partial_shape(0), node.get_input_shape(1), node.get_input_element_type(1)
    (<PartialShape: [2,?]>, <Shape: []>, <Type: 'float32'>)
    >>> node.get_output_tensor(0).names, node.get_input_tensor(0).partial_shape
    (set(), <PartialShape: [2,?]>)
    >>> opset1.relu(np.float32([1])).get_output_shape(0), node.get_instance_id() == x.get_instance_id()
    (<Shape: [1]>, False)
    >>> class Shown:
    ...     def on_attributes(self, attributes):
    ...         print(attributes)
    >>> node.visit_attributes(Shown())
    {'auto_broadcast': 'numpy'}
    True
    >>> total = ov.Tensor(np.zeros(2, np.float32))
    >>> node.evaluate([total], [ov.Tensor(np.float32([1, 2])), ov.Tensor(np.float32(3))]), total.data
    (True, array([4., 5.], dtype=float32))
    """

    def __init__(self, layer: Layer) -> None:
        self.layer: Layer = layer

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    def get_friendly_name(self) -> str:
        """Return the name of the layer."""
        return self.layer.name

    @property
    def type(self) -> str:
        """The operation as files spell it, such as ``ReLU``."""
        return self.layer.type

    def get_type_name(self) -> str:
        """Return the operation as OpenVINO spells it, such as ``Relu``."""
        return type_name(self.layer.type)

    @property
    def type_info(self) -> DiscreteTypeInfo:
        """The operation and the opset that introduced the version of it."""
        op = self.layer.op
        return DiscreteTypeInfo(
            self.get_type_name(), self.layer.version if op is None else f"opset{op.since}"
        )

    def get_type_info(self) -> DiscreteTypeInfo:
        """Return the operation and the opset that introduced the version of it."""
        return self.type_info

    def get_attributes(self) -> dict[str, Any]:
        """Return the attributes by their names in files, with their defaults, as numbers, texts and lists.

        Those that follow from shapes have the values that inference gives them, such as the pads of ``same_upper``.
        """
        return attributes_of(self.layer, self._shapes)

    def _shapes(self) -> Shapes:
        unknown = AnyShape.dynamic()
        inputs = [unknown if source is None else source._type.shape for source in self._sources]
        return inputs, self.output(0)._type.shape

    def _entries(self) -> Mapping[str, object]:
        return self.layer.rt_info

    @property
    def data(self) -> Array:
        """The contents of a Constant, as those of ``Tensor.data``."""
        return self.get_data()

    def get_data(self) -> Array:
        """Return the contents of a Constant, to be read, as those of ``Tensor.data``.

        Raises:
            InputError: for other layers.
        """
        found = as_stored(self._elements(), self.element_type)
        found.flags.writeable = False
        return found

    @property
    def elements(self) -> Array:
        """The contents of a Constant, to be read, with an entry for each element, of ml_dtypes where NumPy lacks the type.

        >>> import numpy as np
        >>> from ir_runtime import opset1
        >>> weights = opset1.constant([[1, -2, 3]], "i4")
        >>> weights.elements, weights.data
        (array([[1, -2, 3]], dtype=int4), array([-31,   3], dtype=int8))

        Raises:
            InputError: for other layers.
        """
        return self._elements()

    def _elements(self) -> Array:
        if self.layer.type != "Constant" or self.layer.op is None:
            raise NoDataError(
                f"layer {self.friendly_name!r} is a {self.layer.type}; only a Constant holds data",
                code=Code.BAD_REQUEST,
            )
        found: Array = self.layer.op.evaluate().view()
        found.flags.writeable = False
        return found

    @property
    @abstractmethod
    def _sources(self) -> Sequence[_Output | None]:
        """The outputs that it reads; None where nothing is connected."""

    @abstractmethod
    def outputs(self) -> list[_Output]:
        """Return every output. That of a Result is the output of the model."""

    @abstractmethod
    def inputs(self) -> list[_Input]:
        """Return every input."""

    def output(self, index: int = 0) -> _Output:
        """One output.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.outputs(), index, f"layer {self.friendly_name!r} has no output {index}")

    def input(self, index: int) -> _Input:
        """One input.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.inputs(), index, f"layer {self.friendly_name!r} has no input {index}")

    def input_values(self) -> list[_Output]:
        """Return the outputs of other layers that this one reads."""
        return [port.get_source_output() for port in self.inputs()]

    def input_value(self, index: int) -> _Output:
        """Return the output of another layer that an input reads."""
        found: _Output = self.input(index).get_source_output()
        return found

    def get_output_tensor(self, index: int) -> DescriptorTensor:
        """Return the tensor of an output, whose names can be changed."""
        return self.output(index).tensor

    def get_input_tensor(self, index: int) -> DescriptorTensor:
        """Return the tensor that an input reads."""
        return self.input(index).get_tensor()

    def get_instance_id(self) -> int:
        """Return a number that no other node has while this one is there."""
        return id(self)

    def get_output_size(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs())

    def get_input_size(self) -> int:
        """Return the number of inputs."""
        return len(self.layer.inputs)

    def visit_attributes(self, visitor: AttributeVisitor) -> bool:
        """Give the attributes by name to the ``on_attributes`` of a visitor."""
        visitor.on_attributes(self.get_attributes())
        return True

    def evaluate(
        self,
        output_values: Sequence[Tensor],
        input_values: Sequence[Tensor],
        evaluationContext: object = None,  # noqa: N803  # OpenVINO's name
    ) -> bool:
        """Compute the outputs into tensors, which get their shapes.

        Args:
            output_values: a tensor for each output, to write to.
            input_values: a tensor for each input.
            evaluationContext: is ignored.

        Returns:
            Whether the layer can be computed alone: variables and bodies cannot.
        """
        arrays = [each._data for each in input_values]
        found = evaluated(self.layer, arrays, [each.element_type for each in input_values])
        for tensor, array in zip(output_values, found or (), strict=False):
            tensor.copy_from(Tensor.of(array, tensor.element_type))
        return found is not None

    @property
    def shape(self) -> Shape:
        """The shape of the only output, all of which must be known.

        Raises:
            InputError: if there are several outputs, or none.
        """
        return self._only_output.shape

    @property
    def partial_shape(self) -> PartialShape:
        """The shape of the only output, as far as it is known.

        Raises:
            InputError: if there are several outputs, or none.
        """
        return self._only_output.partial_shape

    @property
    def element_type(self) -> ElementType:
        """The element type of the only output.

        Raises:
            InputError: if there are several outputs, or none.
        """
        return self._only_output.element_type

    @property
    def _only_output(self) -> _Output:
        outputs = self.outputs()
        if len(outputs) != 1:
            raise InputError(
                f"layer {self.friendly_name!r} has {len(outputs)} outputs: its shape and element type are not unique",
                code=Code.BAD_REQUEST,
                hint="node.output(index) has those of one output",
            )
        return outputs[0]

    def get_partial_shape(self) -> PartialShape:
        """Return the shape of the only output, as far as it is known."""
        return self.partial_shape

    def get_element_type(self) -> ElementType:
        """Return the element type of the only output."""
        return self.element_type

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """Return the shape of an output, as far as it is known."""
        return self.output(index).partial_shape

    def get_output_shape(self, index: int) -> Shape:
        """Return the shape of an output, all of which must be known."""
        return self.output(index).shape

    def get_output_element_type(self, index: int) -> ElementType:
        """Return the element type of an output."""
        return self.output(index).element_type

    def get_input_partial_shape(self, index: int) -> PartialShape:
        """Return the shape that an input reads, as far as it is known."""
        return self.input_value(index).partial_shape

    def get_input_shape(self, index: int) -> Shape:
        """Return the shape that an input reads, all of which must be known."""
        return self.input_value(index).shape

    def get_input_element_type(self, index: int) -> ElementType:
        """Return the element type that an input reads."""
        return self.input_value(index).element_type


_Item = TypeVar("_Item")


def _at(items: Sequence[_Item], index: int, message: str) -> _Item:
    if not 0 <= index < len(items):
        raise InputError(message, code=Code.NO_SUCH_NAME, hint=f"it has {len(items)}")
    return items[index]
