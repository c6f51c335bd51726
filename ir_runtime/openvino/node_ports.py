"""Outputs and inputs of nodes: their names and types, and the tensors that inputs read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

from .._util.wrong_arguments import ArgumentTypeError
from ..codes import Code
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Layer
from ..ir.tensor import TensorType, Value
from .any_value import Entries
from .building.layer import informed
from .descriptor import DescriptorTensor, NamedPort, listed_names
from .layout import Layout
from .layout_info import check_layout, layout_of, with_layout
from .operators import Operators
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["AnyInput", "AnyOutput", "InputBase", "OutputBase", "PortNode"]


class PortNode(Protocol):
    """The interface of a node that its ports use."""

    layer: Layer

    @property
    def _sources(self) -> Sequence[AnyOutput | None]:
        """The tensors that it reads."""

    def _value(self, index: int) -> Value:
        """Return the type, shape and contents of an output, as far as inferred."""

    def _names_of(self, index: int) -> tuple[str, ...]:
        """Return the names of the tensor of an output."""

    def _rename(self, index: int, names: tuple[str, ...]) -> None:
        """Name the tensor of an output."""

    def _targets(self, index: int) -> Iterable[AnyInput]:
        """Yield the inputs that read an output."""

    def _edit(self) -> Layer:
        """Prepare for a change, and return the layer."""

    def _connect(self, index: int, source: Any) -> None:
        """Let an input read an output of a node; with None, nothing."""


_Node = TypeVar("_Node", bound=PortNode)
AnyOutput: TypeAlias = "OutputBase[Any, Any]"
AnyInput: TypeAlias = "InputBase[Any, Any]"
"""Ports of nodes of any class."""

_Input = TypeVar("_Input", bound=AnyInput)
_Output = TypeVar("_Output", bound=AnyOutput)


class OutputBase(NamedPort, HasRTInfo, Operators[_Node], Generic[_Node, _Input]):
    """An output of a node of some class.

    Which layer computes a tensor, and which inputs read it:

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> port = opset1.relu(x).output(0)
    >>> port.set_names(["first"])
    >>> port.add_names(["second"])
    >>> sorted(port.names), port.any_name, port.index, port.get_tensor() == port.tensor
    (['first', 'second'], 'first', 0, True)
    >>> reader = opset1.exp(port)
    >>> port.target_inputs == {reader.input(0)}
    True
    >>> port.replace(x.output(0))
    >>> reader.input_value(0).get_node().friendly_name, sorted(x.output(0).names)
    ('x', ['first', 'second'])
    >>> x.output(0).remove_target_input(reader.input(0))
    >>> x.output(0).get_target_inputs()
    {<Input: shape[2] type: f32>}
    """

    def __init__(self, node: _Node, index: int) -> None:
        self._node, self._index = node, index

    @property
    def _type(self) -> TensorType:
        return self._node._value(self._index).type

    @property
    def _names(self) -> tuple[str, ...]:
        return self._node._names_of(self._index)

    @property
    def _owner(self) -> str:
        node = self._node
        if node.layer.type == "Result":
            source = node._sources[0] if node._sources else None
            return source._owner if source is not None else node.layer.name
        single = len(node.layer.outputs) == 1
        return node.layer.name if single else f"{node.layer.name}:{self._index}"

    @property
    def node(self) -> _Node:
        """The layer: for an output of a model, its Result."""
        return self._node

    def get_node(self) -> _Node:
        """Return the layer."""
        return self._node

    @property
    def index(self) -> int:
        """Which output of its layer this is."""
        return self._index

    def get_index(self) -> int:
        """Which output of its layer this is."""
        return self.index

    @property
    def target_inputs(self) -> set[_Input]:
        """The inputs of layers that read it; an output of a model is not read."""
        return set(self._node._targets(self._index))  # type: ignore[arg-type]  # those of its class of nodes

    def get_target_inputs(self) -> set[_Input]:
        """Return the inputs of layers that read it."""
        return self.target_inputs

    @property
    def tensor(self) -> DescriptorTensor:
        """The tensor, whose names can be changed."""
        return DescriptorTensor(self)

    def get_tensor(self) -> DescriptorTensor:
        """Return the tensor, whose names can be changed."""
        return self.tensor

    def _entries(self) -> Mapping[str, object]:
        spec = self._node.layer.outputs[self._index : self._index + 1]
        return spec[0].rt_info if spec else {}

    def _replace_rt_info(self, entries: Entries) -> None:
        layer = self._node._edit()
        self._node.layer = replace(layer, outputs=informed(layer.outputs, self._index, entries))

    @property
    def _layout(self) -> Layout:
        """The layout; an empty one where the model does not say."""
        node, index = self._computed()
        return layout_of(node.layer, index)

    @_layout.setter
    def _layout(self, layout: Layout) -> None:
        check_layout(layout, self._type.shape, self.label)
        node, index = self._computed()
        node._edit()
        node.layer = with_layout(node.layer, index, layout)

    def _computed(self) -> tuple[PortNode, int]:
        """Return the layer that computes the tensor, and which of its outputs it is."""
        source = self._node._sources[0] if self._node.layer.type == "Result" else None
        return (self._node, self._index) if source is None else (source._node, source._index)

    def set_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names only."""
        self._node._rename(self._index, listed_names(names))

    def add_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names, too."""
        known = self._names
        if more := tuple(name for name in dict.fromkeys(listed_names(names)) if name not in known):
            self._node._rename(self._index, (*known, *more))

    def replace(self, replacement: OutputBase[_Node, _Input]) -> None:
        """Let all that reads this tensor read another one instead, which also takes its names.

        Raises:
            InputError: if ``replacement`` is not an output of a node.
        """
        if not isinstance(replacement, OutputBase):
            got = type(replacement).__name__
            raise ArgumentTypeError(f"expected an output of a node, got {got}", code=Code.BAD_REQUEST)
        for target in self.target_inputs:
            target.replace_source_output(replacement)
        replacement.add_names(self._names)

    def remove_target_input(self, target_input: _Input) -> None:
        """Let an input that reads this tensor read nothing."""
        if target_input in self.target_inputs:
            target_input._node._connect(target_input._index, None)

    def belongs_to(self, name: str) -> bool:
        """Return whether this is an output of the layer, or what the Result, of that name takes."""
        node = self._node
        if node.layer.type != "Result":
            return name in (node.layer.name, f"{node.layer.name}:{self._index}")
        return name == node.layer.name or any(s is not None and s.belongs_to(name) for s in node._sources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OutputBase) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __lt__(self, other: object) -> bool:
        """Order the outputs of a node by their index, and those of different nodes in some lasting way."""
        return _position(self) < _position(other) if isinstance(other, OutputBase) else NotImplemented

    def __le__(self, other: object) -> bool:
        return _position(self) <= _position(other) if isinstance(other, OutputBase) else NotImplemented

    def __copy__(self) -> OutputBase[_Node, _Input]:
        return self

    def __deepcopy__(self, memo: object) -> OutputBase[_Node, _Input]:
        raise TypeError(f"cannot copy {self!r}: copy the model, with model.clone()")


class InputBase(HasRTInfo, Generic[_Node, _Output]):
    """An input of a node of some class.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2], np.float32, name="x")
    >>> port = opset1.relu(x).input(0)
    >>> port.get_index(), port.get_partial_shape(), port.get_element_type(), port.get_tensor().names
    (0, <PartialShape: [2]>, <Type: 'float32'>, set())
    >>> port.replace_source_output(opset1.exp(x).output(0))
    >>> port.get_source_output().get_node().get_type_name()
    'Exp'
    """

    def __init__(self, node: _Node, index: int) -> None:
        self._node, self._index = node, index

    def get_source_output(self) -> _Output:
        """Return the tensor it reads.

        Raises:
            InputError: if nothing feeds it.
        """
        source = self._node._sources[self._index]
        if source is None:
            layer = self._node.layer
            message = f"input port {layer.inputs[self._index].id} of layer {layer.name!r} has no edge"
            raise InputError(message, code=Code.BAD_REQUEST)
        return source  # type: ignore[return-value]  # an output of its class of nodes

    def replace_source_output(self, new_source_output: _Output) -> None:
        """Read another tensor. Types are inferred again when the model is validated, saved or compiled."""
        self._node._connect(self._index, new_source_output)

    def get_node(self) -> _Node:
        """Return the layer."""
        return self._node

    def get_index(self) -> int:
        """Which input of its layer this is."""
        return self._index

    def get_tensor(self) -> DescriptorTensor:
        """Return the tensor that it reads."""
        return self.get_source_output().tensor

    def get_partial_shape(self) -> PartialShape:
        """Return the shape, as far as it is known."""
        return self.get_source_output().partial_shape

    def get_shape(self) -> Shape:
        """Return the shape, all of which must be known."""
        return self.get_source_output().shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self.get_source_output().element_type

    def _entries(self) -> Mapping[str, object]:
        return self._node.layer.inputs[self._index].rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        layer = self._node._edit()
        self._node.layer = replace(layer, inputs=informed(layer.inputs, self._index, entries))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, InputBase) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __lt__(self, other: object) -> bool:
        """Order the inputs of a node by their index, and those of different nodes in some lasting way."""
        return _position(self) < _position(other) if isinstance(other, InputBase) else NotImplemented

    def __le__(self, other: object) -> bool:
        return _position(self) <= _position(other) if isinstance(other, InputBase) else NotImplemented

    def __repr__(self) -> str:
        try:
            return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type().label}>"
        except InputError as reason:
            return f"<Input: {reason.message}>"


def _position(port: AnyInput | AnyOutput) -> tuple[int, int]:
    return id(port._node), port._index
