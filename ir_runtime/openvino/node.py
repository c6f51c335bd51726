"""`Node`, `Output` and `Input`: editable layers of a model, which may also exist without a model."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias
from weakref import ref

from .._util.absent import ExplainsAbsent
from .._util.forks import cached_property
from .._util.wrong_arguments import ArgumentTypeError, NoDataError, checked
from ..analysis.infer import Inferred, infer_layer, infer_shapes
from ..codes import Code
from ..errors import InputError, ValidationError
from ..io.reader.source import Weights
from ..ir import shape as shapes
from ..ir.array import as_booleans
from ..ir.element import ElementType
from ..ir.evaluation import evaluate_layer, stands_alone
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import Array, TensorType, Value
from ..ops import Op, find_operation
from .any_value import Entries
from .build.layer import (
    array_of,
    change_attribute,
    complete,
    constant,
    incomplete,
    new_layer,
    operation,
    plain_ports,
    rename_port,
    set_port_info,
    type_name,
    unique_name,
)
from .custom_operation import CustomOperation
from .layout import Layout, check_layout, layout_of, with_layout
from .ports import DescriptorTensor, TensorPort, check_names
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape, ShapeLike
from .tensor import Tensor
from .tensor_data import as_stored

__all__ = [
    "EDITS",
    "UNKNOWN",
    "DiscreteTypeInfo",
    "GraphNodes",
    "Input",
    "Node",
    "Output",
    "as_output",
    "as_outputs",
    "infers_alone",
]

UNKNOWN = Value(TensorType(ElementType.dynamic, shapes.PartialShape.dynamic()))
"""The value of an output before inference."""


_VARIABLES = frozenset({"Assign", "ReadValue"})
# From this number of consumers on, dead references are purged whenever the number has doubled.
_MANY = 16


@dataclass(eq=True)
class DiscreteTypeInfo:
    """The type of an operation: its name as OpenVINO spells it, and the opset that introduced its version.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> info = opset1.relu(opset1.parameter([2], np.float32)).get_type_info()
    >>> info.name, info.version_id
    ('Relu', 'opset1')
    >>> info.hash() == opset1.relu(opset1.parameter([3], np.float32)).get_type_info().hash(), info.parent
    (True, None)
    """

    name: str
    version_id: str

    @property
    def parent(self) -> DiscreteTypeInfo | None:
        """The supertype, which is None, as operations have no common supertypes here."""
        return None

    def hash(self) -> int:
        """Return the hash of the type."""
        return hash((self.name, self.version_id))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # unhashable, as in OpenVINO

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name} {self.version_id}>"


class Edits:
    """The number of edits of all nodes. A model compares it with the count of its graph to detect changes."""

    count: int = 0

    def next(self) -> int:
        """Count an edit, and return its number."""
        self.count += 1
        return self.count


EDITS = Edits()


class Operators:
    """The arithmetic operators of nodes and outputs: ``a + b`` creates an Add, as in OpenVINO."""

    # Without this, NumPy would apply ``array + node`` to each element.
    __array_ufunc__ = None

    def __add__(self, other: object) -> Node:
        return Node.create("Add", 1, [self, other])

    def __radd__(self, other: object) -> Node:
        return Node.create("Add", 1, [other, self])

    def __sub__(self, other: object) -> Node:
        return Node.create("Subtract", 1, [self, other])

    def __rsub__(self, other: object) -> Node:
        return Node.create("Subtract", 1, [other, self])

    def __mul__(self, other: object) -> Node:
        return Node.create("Multiply", 1, [self, other])

    def __rmul__(self, other: object) -> Node:
        return Node.create("Multiply", 1, [other, self])

    def __truediv__(self, other: object) -> Node:
        return Node.create("Divide", 1, [self, other])

    def __rtruediv__(self, other: object) -> Node:
        return Node.create("Divide", 1, [other, self])


class Output(TensorPort, HasRTInfo, Operators, ExplainsAbsent):
    """An output of a node: a tensor of the model. As OpenVINO's ``Output``.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> port = opset1.relu(x, name="y").output(0)
    >>> port.shape, port.element_type, port.get_node().friendly_name, port.index
    (<Shape: [2,3]>, <Type: 'float32'>, 'y', 0)
    >>> port.set_names(["first"])
    >>> port.add_names(["second"])
    >>> sorted(port.names), port.any_name, port.get_tensor() == port.tensor
    (['first', 'second'], 'first', True)
    >>> reader = opset1.exp(port)
    >>> port.target_inputs == {reader.input(0)}
    True
    >>> port.replace(x.output(0))
    >>> reader.input_value(0).get_node().friendly_name, sorted(x.output(0).names)
    ('x', ['first', 'second'])
    >>> x.output(0).remove_target_input(reader.input(0))
    >>> x.output(0).get_target_inputs()
    {<Input: shape[2,3] type: f32>}
    """

    def __init__(self, node: Node, index: int) -> None:
        self._node, self._index = node, index

    @staticmethod
    def _from_node(node: Node) -> Output:
        """Return the first output of a node. Private in OpenVINO too, but programs call it."""
        return node.output(0)

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
    def node(self) -> Node:
        """The node that the output belongs to. For an output of a model, this is its Result."""
        return self._node

    def get_node(self) -> Node:
        """Return the node."""
        return self._node

    @property
    def index(self) -> int:
        """The index among the outputs of the node."""
        return self._index

    def get_index(self) -> int:
        """Return the index among the outputs of the node."""
        return self.index

    @property
    def target_inputs(self) -> set[Input]:
        """The inputs that read the tensor. An output of a model has none."""
        return set(self._node._targets(self._index))

    def get_target_inputs(self) -> set[Input]:
        """Return the inputs that read the tensor."""
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
        self._node.layer = replace(layer, outputs=set_port_info(layer.outputs, self._index, entries))

    @property
    def _layout(self) -> Layout:
        """The layout, empty if unset."""
        producer = self._producer()
        return layout_of(producer._node.layer, producer._index)

    @_layout.setter
    def _layout(self, layout: Layout) -> None:
        check_layout(layout, self._type.shape, self.label)
        producer = self._producer()
        producer._node._edit()
        producer._node.layer = with_layout(producer._node.layer, producer._index, layout)

    def _producer(self) -> Output:
        """Return the output that computes the tensor, which is the operand in case of a Result."""
        source = self._node._sources[0] if self._node.layer.type == "Result" else None
        return self if source is None else source

    def set_names(self, names: Iterable[str]) -> None:
        """Replace the names of the tensor."""
        self._node._rename(self._index, check_names(names))

    def add_names(self, names: Iterable[str]) -> None:
        """Add names to the tensor."""
        self._node._add_names(self._index, check_names(names))

    def replace(self, replacement: Output) -> None:
        """Connect all consumers of this tensor to another output, and add the names of the tensor to it.

        Raises:
            InputError: if ``replacement`` is not an output of a node.
        """
        if not isinstance(replacement, Output):
            type_name = type(replacement).__name__
            raise ArgumentTypeError(f"expected an output of a node, got {type_name}", code=Code.BAD_REQUEST)
        for target in list(self._node._targets(self._index)):
            target._node._connect(target._index, replacement)
        replacement._node._add_names(replacement._index, self._names)

    def remove_target_input(self, target_input: Input) -> None:
        """Disconnect an input that reads this tensor."""
        if target_input in self.target_inputs:
            target_input._node._connect(target_input._index, None)

    def belongs_to(self, name: str) -> bool:
        """Return whether ``name`` is the name of the node, or of a Result that reads the tensor."""
        node = self._node
        if node.layer.type != "Result":
            return name in (node.layer.name, f"{node.layer.name}:{self._index}")
        return name == node.layer.name or any(s is not None and s.belongs_to(name) for s in node._sources)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __lt__(self, other: object) -> bool:
        """Order the outputs of a node by index, and nodes by identity."""
        return _position(self) < _position(other) if isinstance(other, Output) else NotImplemented

    def __le__(self, other: object) -> bool:
        return _position(self) <= _position(other) if isinstance(other, Output) else NotImplemented

    def __copy__(self) -> Output:
        return self

    def __deepcopy__(self, memo: object) -> Output:
        raise TypeError(f"cannot copy {self!r}: copy the model, with model.clone()")


class Input(HasRTInfo, ExplainsAbsent):
    """An input of a node. As OpenVINO's ``Input``.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> port = opset1.relu(x).input(0)
    >>> port.get_shape(), port.get_source_output().get_node().friendly_name
    (<Shape: [2,3]>, 'x')
    >>> port.get_index(), port.get_partial_shape(), port.get_element_type(), port.get_tensor().names
    (0, <PartialShape: [2,3]>, <Type: 'float32'>, set())
    >>> port.replace_source_output(opset1.exp(x).output(0))
    >>> port.get_source_output().get_node().get_type_name()
    'Exp'
    """

    def __init__(self, node: Node, index: int) -> None:
        self._node, self._index = node, index

    def get_source_output(self) -> Output:
        """Return the output that the input is connected to.

        Raises:
            InputError: if the input is not connected.
        """
        source = self._node._sources[self._index]
        if source is None:
            layer = self._node.layer
            message = f"input port {layer.inputs[self._index].id} of layer {layer.name!r} has no edge"
            raise InputError(message, code=Code.BAD_REQUEST)
        return source

    def replace_source_output(self, new_source_output: Output) -> None:
        """Connect the input to another output. Types are inferred again when the model is next used."""
        self._node._connect(self._index, new_source_output)

    def get_node(self) -> Node:
        """Return the node."""
        return self._node

    def get_index(self) -> int:
        """Return the index among the inputs of the node."""
        return self._index

    def get_tensor(self) -> DescriptorTensor:
        """Return the tensor that the input reads."""
        return self.get_source_output().tensor

    def get_partial_shape(self) -> PartialShape:
        """Return the shape, which may be dynamic."""
        return self.get_source_output().partial_shape

    def get_shape(self) -> Shape:
        """Return the static shape."""
        return self.get_source_output().shape

    def get_element_type(self) -> ElementType:
        """Return the element type."""
        return self.get_source_output().element_type

    def _entries(self) -> Mapping[str, object]:
        return self._node.layer.inputs[self._index].rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        layer = self._node._edit()
        self._node.layer = replace(layer, inputs=set_port_info(layer.inputs, self._index, entries))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Input) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __lt__(self, other: object) -> bool:
        """Order the inputs of a node by index, and nodes by identity."""
        return _position(self) < _position(other) if isinstance(other, Input) else NotImplemented

    def __le__(self, other: object) -> bool:
        return _position(self) <= _position(other) if isinstance(other, Input) else NotImplemented

    def __repr__(self) -> str:
        try:
            return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type().label}>"
        except InputError as reason:
            return f"<Input: {reason.message}>"


def _position(port: Input | Output) -> tuple[int, int]:
    return id(port._node), port._index


class AttributeVisitor(Protocol):
    """Protocol of visitors that receive the attributes of a node."""

    def on_attributes(self, attributes: dict[str, Any]) -> object:
        """Receive the attributes by name."""


class NodeBodies(Protocol):
    """Protocol of the bodies of a node, which `Bodies` implements."""

    def operation(self, name: str) -> Operation | None:
        """Return the operation with the current bodies."""

    def changed_since(self, edit: int) -> bool:
        """Return whether a body was changed after edit number ``edit``."""


class Node(HasRTInfo, Operators, ExplainsAbsent):
    """A layer with its outputs and inputs. As OpenVINO's ``Node``.

    A node of a model that was read is a handle on a layer of its graph (``_home``), which holds its operands, consumers
    and values. Once changed, it is *detached*: it holds its operands and values itself, as nodes built in Python always
    do, and its neighbours still find it. The model derives its graph again when next used.

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
    >>> node.partial_shape, node.element_type, node.get_attributes()
    (<PartialShape: [2,?]>, <Type: 'float32'>, {'auto_broadcast': 'numpy'})
    >>> total = ov.Tensor(np.zeros(2, np.float32))
    >>> node.evaluate([total], [ov.Tensor(np.float32([1, 2])), ov.Tensor(np.float32(3))]), total.data
    (True, array([4., 5.], dtype=float32))

    Names, attributes and operands can be replaced, after which `validate_and_infer_types` infers the outputs:

    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> node = opset1.reduce_sum(x, np.int64([1]), name="sum")
    >>> node.set_friendly_name("total")
    >>> node.set_attribute("keep_dims", True)
    >>> node.validate_and_infer_types()
    >>> node.friendly_name, node.name.startswith("ReduceSum_"), node.shape
    ('total', True, <Shape: [2,1]>)
    >>> node.set_argument(1, opset1.constant(np.int64([0])).output(0))
    >>> node.validate_and_infer_types()
    >>> node.shape
    <Shape: [1,3]>
    >>> node.set_arguments([x.output(0), opset1.constant(np.int64([0, 1])).output(0)])
    >>> node.constructor_validate_and_infer_types()
    >>> node.shape
    <Shape: [1,1]>
    >>> node.set_output_size(2)
    >>> node.set_output_type(1, ElementType.f16, [5])
    >>> node.output(1).partial_shape
    <PartialShape: [5]>
    """

    layer: Layer
    _home: GraphNodes | None = None
    """The nodes of the graph that contains the layer, None for a node built in Python."""
    _is_attached = False
    """Whether the node is unchanged from its layer in that graph."""
    _own_sources: list[Output | None] | None = None
    """The operands, None if they have not been looked up in that graph yet."""
    _own_values: tuple[Value, ...] | None = None
    """The values of the outputs, None if they are those of the graph."""
    _basis: Sequence[object] | None = None
    """The `_basis_of` the own values, None if unknown."""
    _consumers: dict[int, ref[Node]] | None = None
    """The consumers connected after that graph was read, by `id`; None if there were none."""
    _edited = 0
    """The number of the node's last edit."""
    _given_name: str
    _weights: Weights | None = None
    """The weights file of the model, of which the contents of a Constant may be a view."""
    _classes: ClassVar[dict[str, type[Node]]] = {}
    _shown_class: ClassVar[str] = ""
    """The name of the class in OpenVINO, if it differs from that of the operation."""

    def __init__(self, layer: Layer) -> None:
        self.layer = layer

    def __init_subclass__(cls, type: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if type:
            Node._classes[type] = cls

    @staticmethod
    def _of(home: GraphNodes, layer: Layer) -> Node:
        """Create the node of a layer in the graph of ``home``."""
        cls, op = Node._classes.get(layer.type), layer.op
        # Layers with bodies, whose classes are imported on demand.
        if cls is None and op is not None and op.needs("visit"):
            import_module(".build.control", __package__)
            cls = Node._classes.get(layer.type)
        defined = op.node if isinstance(op, CustomOperation) else None
        if isinstance(defined, Node):  # a copy keeps the attributes that programs have set
            node = type(defined).__new__(type(defined))
            vars(node).update(vars(defined))
            node._own_sources = node._own_values = node._consumers = None
        else:
            node = object.__new__(Node if cls is None else cls)
        node.layer, node._home, node._is_attached = layer, home, True
        node._given_name, node._weights = layer.name, home.weights
        return node

    @staticmethod
    def create(
        type: str,
        opset: int,
        inputs: Iterable[object] = (),
        attributes: Mapping[str, object] | None = None,
        name: str | None = None,
    ) -> Node:
        """Create a node for an operation on nodes, outputs or array-likes.

        Args:
            type: the name of the operation, such as ``Add``.
            opset: the opset that selects its version.
            inputs: the operands. A node stands for all its outputs; an array-like becomes a Constant.
            attributes: the attributes by name, None for the default.
            name: the friendly name; by default, a unique name such as ``Add_7``.

        Raises:
            UnsupportedError: if the opset has no such operation.
            ValidationError: if attributes or operands are invalid.
        """
        if name is not None:
            checked(name, str)
        sources = [source for value in inputs for source in as_outputs(value)]
        node = Node.__new__(Node._classes.get(type, Node))
        node._build(operation(type, opset, attributes or {}), sources, name)
        return node

    @staticmethod
    def create_incomplete(type: str, opset: int) -> Node:
        """Create an operation to be completed by ``set_arguments`` and ``set_attribute``.

        >>> import numpy as np
        >>> from ir_runtime import opset1
        >>> node = Node.create_incomplete("Concat", 1)
        >>> node.set_attribute("axis", 0)
        >>> node.set_arguments([opset1.parameter([2], np.float32), opset1.parameter([3], np.float32)])
        >>> node.validate_and_infer_types()
        >>> node.shape
        <Shape: [5]>

        Raises:
            UnsupportedError: if the opset has no such operation.
        """
        node = Node.__new__(Node._classes.get(type, Node))
        node._build_incomplete(incomplete(type, opset), [])
        return node

    def _build(self, op: Operation, sources: Sequence[Output], name: str | None = None) -> None:
        """Initialize the node with an operation and operands, and infer its outputs."""
        unique = unique_name(op.name)
        self._build_incomplete(new_layer(op, len(sources), unique if name is None else name), sources)
        self._given_name = unique
        self._update()

    def _build_incomplete(self, layer: Layer, sources: Sequence[Output]) -> None:
        """Initialize the node without inferring its outputs."""
        if len(layer.inputs) != len(sources):
            layer = layer.with_ports(plain_ports(0, len(sources)), layer.outputs)
        self.layer, self._given_name = layer, layer.name
        self._own_sources, self._own_values = [_skip_result(source) for source in sources], ()
        self._register()

    @property
    def _bodies(self) -> NodeBodies | None:
        """The bodies of an If, Loop or TensorIterator; None for other operations."""
        return None

    # Names and the operation.

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @friendly_name.setter
    def friendly_name(self, name: str) -> None:
        self.set_friendly_name(name)

    def get_friendly_name(self) -> str:
        """Return the name of the layer."""
        return self.layer.name

    def set_friendly_name(self, name: str) -> None:
        """Rename the layer."""
        checked(name, str)
        self._edit()
        self.layer = replace(self.layer, name=name, where=replace(self.layer.where, layer=name))

    @property
    def name(self) -> str:
        """The name that the layer was created with."""
        return self._given_name

    def get_name(self) -> str:
        """Return the name that the layer was created with."""
        return self._given_name

    @property
    def type(self) -> str:
        """The name of the operation as files spell it, such as ``ReLU``."""
        return self.layer.type

    def get_type_name(self) -> str:
        """Return the name of the operation as OpenVINO's API spells it, such as ``Relu``."""
        return type_name(self.layer.type)

    @property
    def type_info(self) -> DiscreteTypeInfo:
        """The name of the operation, and the opset that introduced its version."""
        op = self.layer.op
        return DiscreteTypeInfo(
            self.get_type_name(), self.layer.version if op is None else f"opset{op.since}"
        )

    def get_type_info(self) -> DiscreteTypeInfo:
        """Return the name of the operation, and the opset that introduced its version."""
        return self.type_info

    def get_instance_id(self) -> int:
        """Return a number that identifies the node during its lifetime."""
        return id(self)

    def _entries(self) -> Mapping[str, object]:
        return self.layer.rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        self.layer = replace(self._edit(), rt_info=entries)

    # Attributes.

    def get_attributes(self) -> dict[str, Any]:
        """Return the attributes by their names in files, with defaults, as numbers, strings and lists.

        Attributes that depend on shapes, such as the pads for ``same_upper``, have their inferred values.
        """
        return _attributes_of(self.layer, self._shapes)

    def _shapes(self) -> tuple[list[shapes.PartialShape], shapes.PartialShape]:
        unknown = shapes.PartialShape.dynamic()
        inputs = [unknown if source is None else source._type.shape for source in self._sources]
        return inputs, self.output(0)._type.shape

    def set_attribute(self, name: str, value: object) -> None:
        """Set the attribute ``name`` of the operation to ``value``.

        Raises:
            ValidationError: if the attribute or its value is invalid.
        """
        self._edit()
        layer = self.layer
        if layer.op is None and find_operation(layer.type, None) is None:
            raise InputError(f"layer {layer.name!r} has no known attributes", code=Code.BAD_REQUEST)
        self.layer = change_attribute(layer, name, value)

    def visit_attributes(self, visitor: AttributeVisitor) -> bool:
        """Pass the attributes by name to ``visitor.on_attributes``."""
        visitor.on_attributes(self.get_attributes())
        return True

    if not TYPE_CHECKING:  # hidden from type checkers, which would accept any name

        def __getattr__(self, name: str) -> object:
            """Return the getter or setter of an attribute: ``get_axis`` and ``set_axis`` for ``axis``."""
            # The property has just raised an AttributeError: raise it again.
            if name in (
                "data",
                "elements",
            ):
                return self._elements()
            verb, _, rest = name.partition("_")
            attributes = self.get_attributes() if verb in ("get", "set") and "layer" in vars(self) else {}
            matches = [attribute for attribute in attributes if attribute.replace("-", "_") == rest]
            if not matches:
                return super().__getattr__(name)
            if verb == "get":
                return lambda: self.get_attributes()[matches[0]]
            return lambda value: self.set_attribute(matches[0], value)

    # The contents of Constants, and evaluation.

    @property
    def data(self) -> Array:
        """The contents of a Constant as a read-only array, in the form of ``Tensor.data``."""
        return self.get_data()

    def get_data(self) -> Array:
        """Return the contents of a Constant as a read-only array, in the form of ``Tensor.data``.

        Raises:
            InputError: for other layers.
        """
        array = as_stored(self._elements(), self.element_type)
        array.flags.writeable = False
        return array

    @property
    def elements(self) -> Array:
        """The elements of a Constant as a read-only array, of a type of ml_dtypes if NumPy lacks the element type.

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
        array: Array = self.layer.op.evaluate().view()
        array.flags.writeable = False
        return array

    def evaluate(
        self,
        output_values: Sequence[Tensor],
        input_values: Sequence[Tensor],
        evaluationContext: object = None,  # noqa: N803  # OpenVINO's name
    ) -> bool:
        """Compute the outputs, and store them in tensors, whose shapes are set.

        Args:
            output_values: a tensor to write for each output.
            input_values: a tensor for each input.
            evaluationContext: ignored.

        Returns:
            Whether the layer can be evaluated on its own, that is, without variables and bodies.
        """
        if not stands_alone(self.layer):
            return False
        arrays = [as_booleans(tensor._data) for tensor in input_values]
        results = evaluate_layer(self.layer, arrays, [tensor.element_type for tensor in input_values])
        for tensor, array in zip(output_values, results, strict=False):
            tensor.copy_from(Tensor.of(array, tensor.element_type))
        return True

    # Ports.

    def outputs(self) -> list[Output]:
        """Return all outputs. The output of a Result is the corresponding output of the model."""
        if self.layer.type == "Result":
            return [Output(self, 0)] if any(source is not None for source in self._sources) else []
        return [Output(self, i) for i in range(len(self.layer.outputs))]

    def inputs(self) -> list[Input]:
        """Return all inputs."""
        return [Input(self, i) for i in range(len(self.layer.inputs))]

    def output(self, index: int = 0) -> Output:
        """Return an output.

        Raises:
            InputError: if the index is out of range.
        """
        outputs = self.outputs()
        if not 0 <= index < len(outputs):
            raise self._no_port("output", index, len(outputs))
        return outputs[index]

    def input(self, index: int) -> Input:
        """Return an input.

        Raises:
            InputError: if the index is out of range.
        """
        if not 0 <= index < len(self.layer.inputs):
            raise self._no_port("input", index, len(self.layer.inputs))
        return Input(self, index)

    def _no_port(self, kind: str, index: int, count: int) -> InputError:
        message = f"layer {self.friendly_name!r} has no {kind} {index}"
        return InputError(message, code=Code.NO_SUCH_NAME, hint=f"it has {count}")

    def input_values(self) -> list[Output]:
        """Return the outputs that the inputs are connected to."""
        return [port.get_source_output() for port in self.inputs()]

    def input_value(self, index: int) -> Output:
        """Return the output that an input is connected to."""
        return self.input(index).get_source_output()

    def get_output_size(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs())

    def get_input_size(self) -> int:
        """Return the number of inputs."""
        return len(self.layer.inputs)

    def get_output_tensor(self, index: int) -> DescriptorTensor:
        """Return the tensor of an output, whose names can be changed."""
        return self.output(index).tensor

    def get_input_tensor(self, index: int) -> DescriptorTensor:
        """Return the tensor that an input reads."""
        return self.input(index).get_tensor()

    @property
    def shape(self) -> Shape:
        """The static shape of the only output.

        Raises:
            InputError: if there are several outputs, or none.
        """
        return self._only_output.shape

    @property
    def partial_shape(self) -> PartialShape:
        """The shape of the only output, which may be dynamic.

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
    def _only_output(self) -> Output:
        outputs = self.outputs()
        if len(outputs) != 1:
            raise InputError(
                f"layer {self.friendly_name!r} has {len(outputs)} outputs: its shape and element type are not unique",
                code=Code.BAD_REQUEST,
                hint="node.output(index) has those of one output",
            )
        return outputs[0]

    def get_partial_shape(self) -> PartialShape:
        """Return the shape of the only output, which may be dynamic."""
        return self.partial_shape

    def get_element_type(self) -> ElementType:
        """Return the element type of the only output."""
        return self.element_type

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """Return the shape of an output, which may be dynamic."""
        return self.output(index).partial_shape

    def get_output_shape(self, index: int) -> Shape:
        """Return the static shape of an output."""
        return self.output(index).shape

    def get_output_element_type(self, index: int) -> ElementType:
        """Return the element type of an output."""
        return self.output(index).element_type

    def get_input_partial_shape(self, index: int) -> PartialShape:
        """Return the shape of an input, which may be dynamic."""
        return self.input_value(index).partial_shape

    def get_input_shape(self, index: int) -> Shape:
        """Return the static shape of an input."""
        return self.input_value(index).shape

    def get_input_element_type(self, index: int) -> ElementType:
        """Return the element type of an input."""
        return self.input_value(index).element_type

    # Operands and consumers.

    @property
    def _sources(self) -> list[Output | None]:
        """The operands, None for an input that is not connected."""
        if self._own_sources is None:
            assert self._home is not None
            ports = self._home.graph.sources(self.layer)
            self._own_sources = [None if port is None else self._home.output(port) for port in ports]
        return self._own_sources

    def _reads(self) -> list[Node]:
        """Return the nodes of the operands, in order."""
        return [source._node for source in self._sources if source is not None]

    def _add_consumer(self, node: Node) -> None:
        if self._consumers is None:
            self._consumers = {}
        elif (count := len(self._consumers)) >= _MANY and not count & (count - 1):  # purge dead references
            self._consumers = {key: other for key, other in self._consumers.items() if other() is not None}
        self._consumers[id(node)] = ref(node)

    def _register(self) -> None:
        """Add this node to the consumers of its operands."""
        for source in self._sources:
            if source is not None:
                source._node._add_consumer(self)

    def _targets(self, index: int) -> Iterable[Input]:
        """Yield the inputs that read an output."""
        connected = [node for reader in (self._consumers or {}).values() if (node := reader()) is not None]
        if (home := self._home) is not None:
            for port in home.graph.readers(Port(self.layer.id, index)):
                if (node := home.reader(port.layer)) is None or (not node._is_attached and node in connected):
                    continue
                if node._is_attached or node._is_connected(port.number, self, index):
                    yield Input(node, port.number)
        for node in connected:
            for number, source in enumerate(node._sources):
                if source is not None and source._node is self and source._index == index:
                    yield Input(node, number)

    def _is_connected(self, number: int, node: Node, index: int) -> bool:
        """Return whether input ``number`` of this node is connected to output ``index`` of ``node``."""
        source = self._sources[number] if number < len(self._sources) else None
        return source is not None and source._node is node and source._index == index

    def set_argument(self, index: int, source: Output) -> None:
        """Connect input ``index`` to the output ``source``. The index after the last one adds an input."""
        self._edit()
        if index == len(self._sources):
            self._set_operands([*self._sources, None])
        self.input(index).replace_source_output(source)

    def set_arguments(self, arguments: Sequence[object]) -> None:
        """Replace all operands."""
        self._edit()
        sources = [source for argument in arguments for source in as_outputs(argument)]
        self._set_operands([None] * len(sources))
        for port, source in zip(self.inputs(), sources, strict=True):
            port.replace_source_output(source)

    def _set_operands(self, sources: Sequence[Output | None]) -> None:
        """Replace the operands, and with them the number of inputs."""
        self._own_sources = list(sources)
        specs = [*self.layer.inputs, *map(PortSpec, range(len(self.layer.inputs), len(sources)))]
        self.layer = self.layer.with_ports(tuple(specs[: len(sources)]), self.layer.outputs)

    def _connect(self, index: int, source: Node | Output | None) -> None:
        self._edit()
        operand = None
        if source is not None:
            operand = _skip_result(source if isinstance(source, Output) else as_output(source))
            operand._node._edit()
            operand._node._add_consumer(self)
        self._sources[index] = operand

    # Names of tensors.

    def _names_of(self, index: int) -> tuple[str, ...]:
        """Return the names of an output's tensor, including the operand's names in case of a Result."""
        if self.layer.type != "Result":
            outputs = self.layer.outputs
            return outputs[index].names if index < len(outputs) else ()
        own = self._own_names
        if own and not self._is_attached:
            return own
        return tuple(dict.fromkeys((*own, *(n for s in self._sources if s is not None for n in s._names))))

    @property
    def _own_names(self) -> tuple[str, ...]:
        """The names stored in a Result itself; empty for other layers."""
        is_named = self.layer.type == "Result" and self.layer.inputs
        return self.layer.inputs[0].names if is_named else ()

    def _add_names(self, index: int, names: Iterable[str]) -> None:
        """Add names to the tensor of an output, except for those that it already has."""
        before = self._names_of(index)
        if added := [name for name in dict.fromkeys(names) if name not in before]:
            self._rename(index, (*before, *added))

    def _rename(self, index: int, names: tuple[str, ...]) -> None:
        """Replace the names of an output's tensor. Names of a Result are also names of its operand."""
        self._edit()
        if self.layer.type != "Result":
            own = [name for target in self._targets(index) for name in target._node._own_names]
            self._set_names(index, tuple(dict.fromkeys([*names, *own])))
            return
        former = self._own_names
        self._set_names(index, names)
        for source in self._sources:
            if source is not None:
                remaining = [name for name in source._names if name not in former]
                source._node._rename(source._index, (*remaining, *names))

    def _set_names(self, index: int, names: tuple[str, ...]) -> None:
        inputs, outputs = self.layer.inputs, self.layer.outputs
        if self.layer.type == "Result":
            inputs = rename_port(inputs, index, names)
        else:
            outputs = rename_port(outputs, index, names)
        self.layer = self.layer.with_ports(inputs, outputs)

    # Inference.

    def _value(self, index: int) -> Value:
        """Return the inferred type, shape and contents of an output."""
        if self.layer.type == "Result":
            source = self._sources[0] if self._sources else None
            return UNKNOWN if source is None else source._node._value(source._index)
        if self._own_values is not None:
            return self._own_values[index]
        assert self._home is not None
        value = self._home.values.get(Port(self.layer.id, index))
        return value if isinstance(value, Value) else UNKNOWN

    def _operation(self, name: str) -> Operation | None:
        """Return the operation with its current bodies and attributes, for a layer named ``name``."""
        if self._bodies is not None:
            return self._bodies.operation(name)
        return complete(self.layer) if self.layer.op is None else self.layer.op

    def _update(self) -> None:
        """Infer the outputs from the operands."""
        op = self._operation(self.layer.name)
        if op is not self.layer.op:
            self.layer = replace(self.layer, op=op)
        sources = self._sources
        operands = [source._node._value(source._index) for source in sources if source is not None]
        if len(operands) != len(sources):
            self.input_values()  # raises an error that names the unconnected input
        try:
            self._set_values(infer_layer(self.layer, operands), self._basis_of(operands))
        except ValidationError:
            if (values := infer_shapes(self.layer, operands)) is None:
                raise
            self._set_values(values, None)  # inference of the whole graph will report why

    def _basis_of(self, operands: Sequence[Value]) -> Sequence[object]:
        """Return all that inference depends on: operation, name of a Parameter (for its symbols), and operands."""
        return self.layer.op, self.layer.name if self.layer.type == "Parameter" else "", *operands

    @property
    def _former_basis(self) -> Sequence[object] | None:
        """All that the current values were inferred from, in the form of `_basis_of`; None if unknown."""
        if self._own_values is not None:
            return self._basis
        assert self._home is not None
        if not self._home.is_sound:
            return None
        former = self._home.graph[self.layer.id]
        operands = [self._home.values.get(port) for port in self._home.graph.reads(former)]
        is_known = None not in operands and len(operands) == len(former.inputs)
        return (former.op, former.name if former.type == "Parameter" else "", *operands) if is_known else None

    def _set_values(self, values: Sequence[Value], basis: Sequence[object] | None) -> None:
        """Store inferred values with the basis of their inference, and adapt the number of outputs."""
        self._own_values, self._basis = tuple(values), basis
        if self.layer.type != "Result" and len(self.layer.outputs) != len(values):
            first = len(self.layer.inputs)
            former = self.layer.outputs[: len(values)]
            added = [PortSpec(first + i) for i in range(len(former), len(values))]
            self.layer = self.layer.with_ports(self.layer.inputs, (*former, *added))

    def validate_and_infer_types(self) -> None:
        """Infer the outputs from the operands.

        Raises:
            ValidationError: if the operands are invalid for the operation.
        """
        self._edit()
        self._update()

    def constructor_validate_and_infer_types(self) -> None:
        """Infer the outputs from the operands, like `validate_and_infer_types`."""
        self.validate_and_infer_types()

    def set_output_type(self, index: int, element_type: ElementType, shape: ShapeLike) -> None:
        """Set the type of output ``index``, which the next inference overwrites."""
        self._edit()
        if index >= len(self._values):
            self.set_output_size(index + 1)
        values = list(self._values)
        values[index] = Value(TensorType(element_type, shapes.PartialShape(shape)))
        self._own_values, self._basis = tuple(values), None

    def set_output_size(self, size: int) -> None:
        """Set the number of outputs. The type of a new one is unknown until inference."""
        self._edit()
        first, values = len(self.layer.inputs), self._values
        specs = [*self.layer.outputs, *(PortSpec(first + i) for i in range(len(self.layer.outputs), size))]
        self.layer = self.layer.with_ports(self.layer.inputs, tuple(specs[:size]))
        added = [UNKNOWN] * (size - len(values))
        self._own_values, self._basis = (*values, *added)[:size], None

    # Edits.

    def _edit(self) -> Layer:
        """Record an edit of this node, and return the current layer."""
        if self._is_attached:
            assert self._home is not None
            self._home.edit()
            self._detach()
        self._edited = EDITS.next()
        return self.layer

    def _changed_since(self, edit: int) -> bool:
        """Return whether the node or a body of it was changed after edit number ``edit``."""
        return self._edited > edit or (self._bodies is not None and self._bodies.changed_since(edit))

    @property
    def _values(self) -> tuple[Value, ...]:
        """The values of the outputs."""
        if self._own_values is not None:
            return self._own_values
        return tuple([self._value(index) for index in range(len(self.layer.outputs))])

    def _detach(self) -> None:
        """Detach the node from its layer in the graph, so that it can be changed."""
        if not self._is_attached:
            return
        assert self._home is not None
        if self.layer.type == "Result":
            self._set_names(0, self._names_of(0))
        elif self.layer.type == "Parameter":
            values = self._values
            if values and self.layer.op is not None:
                self._declare(values[0].type)
            self._own_values, self._basis = values, self._basis_of(()) if self._home.is_sound else None
        self._is_attached = False
        self._home.detached.add(self.layer.id)

    def _declare(self, type: TensorType) -> None:
        """Set the attributes of a Parameter to a type."""
        for name, value in (("element_type", type.element), ("shape", type.shape)):
            if vars(self.layer.op)[name] != value:
                self.layer = change_attribute(self.layer, name, value)

    def __repr__(self) -> str:
        shapes = [str(o.partial_shape) for o in self.outputs()]
        element = [o.element_type.c_name for o in self.outputs()] if self.layer.type == "Parameter" else []
        return f"<{self._shown_class or self.get_type_name()}: {self.layer.name!r} ({', '.join(shapes + element)})>"


_Shapes: TypeAlias = "tuple[Sequence[shapes.PartialShape], shapes.PartialShape]"
"""The shapes of the inputs of a layer, and of its first output."""


def _attributes_of(layer: Layer, shapes: Callable[[], _Shapes]) -> dict[str, Any]:
    """Return the attributes of a layer, with defaults, as numbers, strings and lists by their names in files.

    Args:
        layer: the layer.
        shapes: returns the shapes of the inputs and of the first output, for attributes that depend on them.
    """
    if layer.op is None:
        return dict(layer.attributes)
    fields = layer.op.attributes()
    if not isinstance(layer.op, Op):
        return {name: _plain(value) for name, value in fields.items()}
    if type(layer.op).shown is not Op.shown and len(layer.inputs) >= _count_required(layer.op):
        fields |= layer.op.shown(*shapes())
    schema = layer.op.schema()
    stored = ("offset", "size") if layer.type == "Constant" else ()
    return {schema[name].xml: _plain(value) for name, value in fields.items() if name not in stored}


def _count_required(op: Op) -> int:
    """Return the number of inputs that are not optional."""
    return sum(not port.optional for port in op.inputs)


def _plain(value: object) -> object:
    if isinstance(value, shapes.PartialShape):
        return [-1] if value.rank is None else [d.min if d.is_static else -1 for d in value]
    if isinstance(value, tuple):
        return list(value)
    return value.label if isinstance(value, ElementType) else value


def as_outputs(value: object) -> list[Output]:
    """Return the outputs that an argument stands for: itself, all outputs of a node, or a new Constant."""
    if isinstance(value, Output):
        return [value]
    if isinstance(value, Node):
        return value.outputs()
    node = Node.__new__(Node._classes.get("Constant", Node))
    node._build(constant(array_of(value)), ())
    return node.outputs()


def as_output(value: object) -> Output:
    """Return the output that an argument stands for: itself, the only output of a node, or a new Constant.

    Raises:
        InputError: if the argument is a node with several outputs or none.
    """
    outputs = as_outputs(value)
    if len(outputs) != 1:
        raise InputError(f"expected one output, got the {len(outputs)} of {value!r}", code=Code.BAD_REQUEST)
    return outputs[0]


def _skip_result(output: Output) -> Output:
    """Return the operand for the output of a Result, which layers cannot read; other outputs unchanged."""
    node = output._node
    return node.input_value(0) if node.layer.type == "Result" else output


def infers_alone(layer: Layer) -> bool:
    """Return whether a layer's outputs depend only on its operands, not on variables, bodies or user code."""
    op = layer.op
    if op is None or layer.type in _VARIABLES:
        return False
    return not (op.needs("visit") or isinstance(op, CustomOperation))


class GraphNodes:
    """The nodes of an immutable graph, created on demand.

    Args:
        graph: the layers.
        values: the inferred values of their outputs.
        origin: the nodes of the graph of which this one is a variant. Layers of the same id share their node.
        nodes: the nodes by layer id, if the graph was derived from them.
        read: the nodes of the graph as it was read, some of which may be in ``nodes``.
    """

    def __init__(
        self,
        graph: Graph,
        values: Inferred,
        origin: GraphNodes | None = None,
        nodes: Mapping[int, Node] | None = None,
        read: GraphNodes | None = None,
    ) -> None:
        self.graph: Graph = graph
        self.values: Inferred = values
        self.origin: GraphNodes | None = origin
        self.weights: Weights | None = None
        self.is_sound: bool = False
        """Whether the graph has no findings, so that its values are valid."""
        self.created: dict[int, Node] = dict(nodes or {})
        self._described: Inferred | None = None
        self.is_edited: bool = nodes is not None
        """Whether nodes may differ from the graph: they were changed, or the graph was derived from them."""
        self._is_derived, self._read = nodes is not None, read
        self.detached: set[int] = set()
        """Layers whose nodes are detached, or have left the model."""

    @property
    def read(self) -> GraphNodes | None:
        """The nodes of the graph as it was read, None if the model was built in Python."""
        return self._read if self._is_derived else self

    @property
    def is_as_read(self) -> bool:
        """Whether the graph is the one that was read, and inference of each layer depends only on its operands."""
        return not self._is_derived and self.origin is None and self.is_plain

    @cached_property
    def places(self) -> Mapping[int, int]:
        """The position of each layer in topological order."""
        return {layer.id: place for place, layer in enumerate(self.graph)}

    @cached_property
    def is_plain(self) -> bool:
        """Whether the graph is sound, and inference of each layer depends only on its operands."""
        kinds = {(layer.type, type(layer.op)): layer for layer in self.graph.layers.values()}
        return self.is_sound and all(map(infers_alone, kinds.values()))

    def node(self, layer: int) -> Node:
        """Return the node of a layer."""
        if layer not in self.created:
            self.created[layer] = Node._of(self, self.graph[layer])
        return self.created[layer]

    def original(self, layer: int) -> Node:
        """Return the node of a layer in the graph of ``origin`` if it has the layer, else in this one."""
        if self.origin is not None and layer in self.origin.graph.layers:
            return self.origin.original(layer)
        return self.node(layer)

    def reader(self, layer: int) -> Node | None:
        """Return the node of a consuming layer, or None if it has left the model."""
        return self.created.get(layer) if layer in self.detached else self.node(layer)

    def output(self, port: Port) -> Output:
        """Return an output of a layer."""
        return Output(self.node(port.layer), port.number)

    def port(self, output: Output) -> Port | None:
        """Return the port of an output, or None if the output belongs to another graph."""
        if self.origin is not None and (port := self.origin.port(output)):
            return port
        if not self.is_edited:
            id = output._node.layer.id
            return Port(id, output._index) if self.created.get(id) is output._node else None
        ids = (id for id, node in self.created.items() if node is output._node)
        return next((Port(id, output._index) for id in ids), None)

    def annotate(self) -> Graph:
        """Return the graph with its networkx nodes and edges annotated with the current types."""
        if self._described is not self.values:
            from .drawing import describe

            graph = self.graph
            if not graph.claim_description(self.values):  # annotated for another model or other shapes
                graph = Graph(graph.layers.values(), graph.edges, graph.severed)
                graph.claim_description(self.values)
            self.graph, self._described = graph, self.values
            describe(self.graph, self.values)
        return self.graph

    def follow(self) -> None:
        """Point the nodes to the layers of the graph after it was replaced."""
        for id, node in self.created.items():
            node.layer = self.graph[id]

    def edit(self) -> None:
        """Prepare for the first edit: detach Parameters and Results, so that they keep their types and names."""
        if not self.is_edited:
            self.is_edited = True
            for layer in self.graph.of_type("Parameter", "Result"):
                self.node(layer.id)._detach()

    def release(self, present: Collection[int]) -> None:
        """Drop the nodes that left the model, which cease to be consumers of its nodes unless referenced elsewhere.

        Args:
            present: the `id` of each node that is part of the model.
        """
        for layer, node in list(self.created.items()):
            if id(node) not in present:
                node._detach()
                node._register()
                del self.created[layer]
        if not self._is_derived:
            self.detached.update(self.graph.layers.keys() - self.created.keys())
        elif self._read is not None:
            self._read.release(present)
