"""Layers of a model with their inputs and outputs. They can be changed, and may exist without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar, Protocol
from weakref import WeakSet

from ..analysis.infer import Inferred
from ..analysis.infer_layer import infer_layer, infer_shapes
from ..codes import Code
from ..errors import InputError, ValidationError
from ..io.reader.weights import Weights
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from .building.layer import array_of, changed, constant, incomplete, new_layer, operation
from .custom_operation import CustomOperation
from .layers import LayerInfo
from .node_changes import EDITS, UNKNOWN, NodeChanges
from .node_ports import InputBase, OutputBase
from .operators import Operators

__all__ = ["Input", "Node", "Origin", "Output", "as_output", "as_outputs"]


class Origin(Protocol):
    """The graph that nodes come from; see `GraphNodes`."""

    graph: Graph
    values: Inferred
    weights: Weights | None
    is_sound: bool

    def node(self, layer: int) -> Node:
        """Return the node of a layer."""

    def output(self, port: Port) -> Output:
        """Return an output of a layer."""

    def settle(self) -> None:
        """Let the nodes keep what they read themselves."""


class Output(OutputBase["Node", "Input"]):
    """An output of a layer: a tensor of the model. As OpenVINO's ``Output``.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> port = opset1.relu(opset1.parameter([2, 3], np.float32, name="x"), name="y").output(0)
    >>> port.shape, port.element_type, port.get_node().friendly_name
    (<Shape: [2,3]>, <Type: 'float32'>, 'y')
    """

    @staticmethod
    def _from_node(node: Node) -> Output:
        """Return the only output of the node."""
        return node.output(0)

    def _binary(self, type: str, left: object, right: object) -> Node:
        return Node.create(type, 1, [left, right])


class Input(InputBase["Node", "Output"]):
    """An input of a layer. As OpenVINO's ``Input``.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> port = opset1.relu(x).input(0)
    >>> port.get_shape(), port.get_source_output().get_node().friendly_name
    (<Shape: [2,3]>, 'x')
    """


class Node(NodeChanges["Output", "Input"], Operators["Node"]):
    """A layer of a model. As OpenVINO's ``Node``.

    What it reads follows from the graph that it comes from, until the graph is changed; then it is settled, and
    knows that itself, as nodes that were built do.

    >>> import numpy as np
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> node = opset1.softmax(x, 1)
    >>> node.get_type_name(), node.get_attributes(), node.output(0).shape
    ('Softmax', {'axis': 1}, <Shape: [2,3]>)
    >>> Node.create("Relu", 1, [x]).shape
    <Shape: [2,3]>
    """

    layer: Layer
    _home: Origin | None
    """The graph that it comes from, unless it is settled."""
    _consumers: WeakSet[Node]
    _edited = 0
    """The number of its last change."""
    _weights: Weights | None
    """Those of the model that it was read with: its contents may be a view of them."""
    _classes: ClassVar[dict[str, type[Node]]] = {}
    _shown_class: ClassVar[str] = ""
    """The name of the class in OpenVINO, where it is not that of the operation."""

    def __init_subclass__(cls, type: str = "", **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if type:
            Node._classes[type] = cls

    @staticmethod
    def _of(home: Origin, layer: Layer) -> Node:
        defined = layer.op.node if isinstance(layer.op, CustomOperation) else None
        cls = type(defined) if isinstance(defined, Node) else Node._classes.get(layer.type, Node)
        node = cls.__new__(cls)
        if isinstance(defined, Node):  # with the attributes that programs have given it
            vars(node).update(vars(defined))
        LayerInfo.__init__(node, layer)
        node._home, node._consumers, node._given_name = home, WeakSet(), layer.name
        node._weights = home.weights
        return node

    @staticmethod
    def create(
        type: str, opset: int, inputs: Iterable[object] = (), attributes: Mapping[str, object] | None = None
    ) -> Node:
        """Create an operation on tensors, nodes or numbers.

        Args:
            type: the operation, such as ``Add``.
            opset: the opset whose version of it is meant.
            inputs: what it reads. A node stands for all of its outputs, a number or an array for a Constant.
            attributes: by name; those that are ``None`` have their defaults.

        Raises:
            UnsupportedError: if the opset has no such operation.
            ValidationError: if attributes or inputs do not fit.
        """
        sources = [source for value in inputs for source in as_outputs(value)]
        node = Node.__new__(Node._classes.get(type, Node))
        node._build(operation(type, opset, attributes or {}), sources)
        return node

    @staticmethod
    def create_incomplete(type: str, opset: int) -> Node:
        """Create an operation without inputs and attributes: ``set_arguments`` and ``set_attribute`` give them to it.

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

    def _build(self, op: Operation, sources: Sequence[Output]) -> None:
        """Become a new node."""
        self._build_incomplete(new_layer(op, len(sources)), sources)
        self._update()

    def _build_incomplete(self, layer: Layer, sources: Sequence[Output]) -> None:
        """Become a new node, whose outputs are not known yet."""
        if len(layer.inputs) != len(sources):
            layer = replace(layer, inputs=tuple(map(PortSpec, range(len(sources)))))
        LayerInfo.__init__(self, layer)
        self._home, self._weights, self._consumers, self._given_name = None, None, WeakSet(), layer.name
        self._own_sources = list(sources)
        for source in sources:
            source._node._consumers.add(self)
        self._own_values = ()

    def _settle(self) -> None:
        """Keep the sources in its own list."""
        if self._home is None:
            return
        sources, values = self._sources, tuple(self._value(i) for i in range(len(self.layer.outputs)))
        if self.layer.type == "Result":
            self._set_names(0, self._names_of(0))
        if self.layer.type == "Parameter" and values and self.layer.op is not None:
            self._declare(values[0].type)
        read = [source._node._value(source._index) for source in sources if source is not None]
        self._basis = self._basis_of(read) if self._home.is_sound and len(read) == len(sources) else None
        self._own_sources, self._own_values, self._home = list(sources), values, None
        for source in sources:
            if source is not None:
                source._node._consumers.add(self)

    def _declare(self, type: TensorType) -> None:
        """Give a Parameter the type that the model was reshaped to."""
        for name, value in (("element_type", type.element), ("shape", type.shape)):
            if vars(self.layer.op)[name] != value:
                self.layer = changed(self.layer, name, value)

    def _edit(self) -> Layer:
        """Prepare for a change, and return the layer as it is."""
        if self._home is not None:
            self._home.settle()
        self._edited = EDITS.next()
        return self.layer

    def _changed_since(self, edit: int) -> bool:
        """Return whether it was changed after the change of that number."""
        return self._edited > edit

    @property
    def _sources(self) -> Sequence[Output | None]:
        if self._home is None:
            return self._own_sources
        found = self._home.graph.sources(self.layer)
        return [None if port is None else self._home.output(port) for port in found]

    def _reads(self) -> list[Node]:
        """Return the nodes that it reads, in the order of its inputs."""
        return [source._node for source in self._sources if source is not None]

    def _value(self, index: int) -> Value:
        if self.layer.type == "Result":
            source = self._sources[0] if self._sources else None
            return UNKNOWN if source is None else source._node._value(source._index)
        if self._home is None:
            return self._own_values[index]
        found = self._home.values.get(Port(self.layer.id, index))
        return found if isinstance(found, Value) else UNKNOWN

    def _connect(self, index: int, source: Node | Output | None) -> None:
        self._edit()
        read = None if source is None else as_output(source)
        if read is not None:
            read._node._edit()
            read._node._consumers.add(self)
        self._own_sources[index] = read

    def _targets(self, index: int) -> Iterable[Input]:
        source = Output(self, index)
        for node in list(self._consumers):
            yield from (Input(node, i) for i, found in enumerate(node._sources) if found == source)
        if self._home is not None:
            for reader in self._home.graph.readers(Port(self.layer.id, index)):
                yield Input(self._home.node(reader.layer), reader.number)

    def _names_of(self, index: int) -> tuple[str, ...]:
        if self.layer.type != "Result":
            return tuple(name for spec in self.layer.outputs[index : index + 1] for name in spec.names)
        own = self._own_names
        if self._home is None and own:
            return own
        return tuple(dict.fromkeys((*own, *(n for s in self._sources if s is not None for n in s._names))))

    def _outputs_of(self, value: object) -> list[Output]:
        return as_outputs(value)

    def _update(self) -> None:
        """Infer the outputs from what is read."""
        op = self._operation(self.layer.name)
        if op is not self.layer.op:
            self.layer = replace(self.layer, op=op)
        read = [source._node._value(source._index) for source in self._own_sources if source is not None]
        if len(read) != len(self._own_sources):
            self.input_values()  # which says which input reads nothing
        try:
            self._set_values(infer_layer(self.layer, read), self._basis_of(read))
        except ValidationError:
            if (shapes := infer_shapes(self.layer, read)) is None:
                raise
            self._set_values(
                shapes, None
            )  # so that the graph is inferred, which says why it cannot be computed

    def _binary(self, type: str, left: object, right: object) -> Node:
        return Node.create(type, 1, [left, right])

    def outputs(self) -> list[Output]:
        """Return every output. That of a Result is the output of the model."""
        if self.layer.type == "Result":
            return [Output(self, 0)] if any(source is not None for source in self._sources) else []
        return [Output(self, i) for i in range(len(self.layer.outputs))]

    def inputs(self) -> list[Input]:
        """Return every input."""
        return [Input(self, i) for i in range(len(self.layer.inputs))]

    def __repr__(self) -> str:
        shapes = [str(o.partial_shape) for o in self.outputs()]
        element = [o.element_type.c_name for o in self.outputs()] if self.layer.type == "Parameter" else []
        return f"<{self._shown_class or self.get_type_name()}: {self.layer.name!r} ({', '.join(shapes + element)})>"


def as_outputs(value: object) -> list[Output]:
    """Return the tensors that an operation reads for an argument: all of a node, or a Constant for numbers."""
    if isinstance(value, Output):
        return [value]
    if isinstance(value, Node):
        return value.outputs()
    made = Node.__new__(Node._classes.get("Constant", Node))
    made._build(constant(array_of(value)), ())
    return made.outputs()


def as_output(value: object) -> Output:
    """Return the only tensor of an argument."""
    found = as_outputs(value)
    if len(found) != 1:
        raise InputError(f"expected one output, got the {len(found)} of {value!r}", code=Code.BAD_REQUEST)
    return found[0]
