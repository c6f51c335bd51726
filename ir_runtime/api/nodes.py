"""Layers of a model with their inputs and outputs. They can be changed, and may exist without a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, TypeVar
from weakref import WeakSet

from ..analysis.infer import Inferred
from ..analysis.infer_layer import infer_layer
from ..codes import Code
from ..errors import InputError
from ..ir import shape as shapes
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.tensor import TensorType, Value
from ..reader.weights import Weights
from .any_value import Entries
from .building.layer import array_of, changed, constant, informed, named, new_layer, operation
from .descriptor import DescriptorTensor, NamedPort
from .layers import LayerInfo
from .layout import Layout
from .layout_info import check_layout, layout_of, with_layout
from .operators import Operators
from .ports import described
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape

__all__ = [
    "EDITS",
    "ConstOutput",
    "Edits",
    "GraphNodes",
    "Input",
    "Node",
    "Output",
    "as_outputs",
    "show_ports",
]

_UNKNOWN = Value(TensorType(ElementType.dynamic, shapes.PartialShape.dynamic()))


class Edits:
    """Counts changes of nodes, so that models know when the graph that they derived is out of date."""

    count = 0


EDITS = Edits()


class GraphNodes:
    """The nodes of an immutable graph, each created when it is first asked for.

    Args:
        graph: the layers.
        values: what was inferred about them.
        origin: has the nodes of layers with the same ids, where the graph is a variant of another.
        nodes: the nodes by layer, where the graph was derived from them.
    """

    def __init__(
        self,
        graph: Graph,
        values: Inferred,
        origin: GraphNodes | None = None,
        nodes: Mapping[int, Node] | None = None,
    ) -> None:
        self.graph, self.values, self.origin = graph, values, origin
        self.weights: Weights | None = None
        self.made: dict[int, Node] = dict(nodes or {})
        self.is_settled = nodes is not None
        """Whether the nodes know by themselves what they read, and may differ from the graph."""

    def node(self, layer: int) -> Node:
        """Return the node of a layer."""
        if layer not in self.made:
            self.made[layer] = Node._of(self, self.graph[layer])
        return self.made[layer]

    def original(self, layer: int) -> Node:
        """Return the node of the layer in the graph that this is a variant of, if it is one."""
        known = self.origin is not None and layer in self.origin.graph.layers
        return self.origin.original(layer) if known and self.origin is not None else self.node(layer)

    def output(self, port: Port) -> Output:
        """Return an output of a layer."""
        return Output(self.node(port.layer), port.number)

    def port(self, output: Output) -> Port | None:
        """Return the port of an output, unless it belongs to another graph."""
        if self.origin is not None and (found := self.origin.port(output)):
            return found
        if not self.is_settled:
            id = output._node.layer.id
            return Port(id, output._index) if self.made.get(id) is output._node else None
        ids = (id for id, node in self.made.items() if node is output._node)
        return next((Port(id, output._index) for id in ids), None)

    def follow(self) -> None:
        """Let the nodes have the layers of a graph that took the place of the former one."""
        for id, node in self.made.items():
            node.layer = self.graph[id]

    def settle(self) -> None:
        """Create every node, and let them keep what they read themselves, so that they can be changed."""
        if self.is_settled:
            return
        for layer in self.graph.layers:
            self.node(layer)
        for node in self.made.values():
            node._settle()
        self.is_settled = True


class Output(NamedPort, HasRTInfo, Operators["Node"]):
    """An output of a layer: a tensor of the model. As OpenVINO's ``Output``."""

    def __init__(self, node: Node, index: int) -> None:
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
            return node._sources[0]._owner if node._sources and node._sources[0] else node.layer.name
        single = len(node.layer.outputs) == 1
        return node.layer.name if single else f"{node.layer.name}:{self._index}"

    @property
    def node(self) -> Node:
        """The layer: for an output of a model, its Result."""
        return self._node

    def get_node(self) -> Node:
        """The layer."""
        return self._node

    @property
    def index(self) -> int:
        """Which output of its layer this is."""
        return self._index

    def get_index(self) -> int:
        """Which output of its layer this is."""
        return self.index

    @property
    def target_inputs(self) -> set[Input]:
        """The inputs of layers that read it; an output of a model is read by nobody."""
        return set(self._node._targets(self._index))

    def get_target_inputs(self) -> set[Input]:
        """The inputs of layers that read it."""
        return self.target_inputs

    @property
    def tensor(self) -> DescriptorTensor:
        """The tensor, whose names can be changed."""
        return DescriptorTensor(self)

    def get_tensor(self) -> DescriptorTensor:
        """The tensor, whose names can be changed."""
        return self.tensor

    @property
    def _rt_info(self) -> Mapping[str, Any]:  # type: ignore[override]  # it is replaced by `_replace_rt_info`
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

    def _computed(self) -> tuple[Node, int]:
        """Return the layer that computes the tensor, and which of its outputs it is."""
        source = self._node._sources[0] if self._node.layer.type == "Result" else None
        return (self._node, self._index) if source is None else (source._node, source._index)

    def set_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names only."""
        self._node._rename(self._index, tuple(names))

    def add_names(self, names: Iterable[str]) -> None:
        """Give the tensor these names, too."""
        self._node._rename(self._index, tuple(dict.fromkeys((*self._names, *names))))

    def replace(self, replacement: Output) -> None:
        """Let all that reads this tensor read another one instead, which also takes its names."""
        for target in self.target_inputs:
            target.replace_source_output(replacement)
        replacement.add_names(self._names)

    def remove_target_input(self, target_input: Input) -> None:
        """Let an input that reads this tensor read nothing."""
        if target_input in self.target_inputs:
            target_input._connect(None)

    def belongs_to(self, name: str) -> bool:
        """Whether this is an output of the layer, or what the Result, of that name takes."""
        node = self._node
        if node.layer.type != "Result":
            return name in (node.layer.name, f"{node.layer.name}:{self._index}")
        return name == node.layer.name or any(s is not None and s.belongs_to(name) for s in node._sources)

    def _binary(self, type: str, left: Any, right: Any) -> Node:
        return Node.create(type, 1, [left, right])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Output) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __copy__(self) -> Output:
        return self

    def __deepcopy__(self, memo: Any) -> Output:
        raise TypeError(f"cannot copy {self!r}: copy the model, with model.clone()")


class ConstOutput(Output):
    """An input or output of a model that is compiled. As OpenVINO's ``ConstOutput``.

    Type and names are those that the model had when it was compiled.
    """

    def __init__(self, node: Node, index: int, port: Port, type: TensorType, names: tuple[str, ...]) -> None:
        super().__init__(node, index)
        self._port, self._fixed_type, self._fixed_names = port, type, names

    @property
    def _type(self) -> TensorType:
        return self._fixed_type

    @property
    def _names(self) -> tuple[str, ...]:
        return self._fixed_names


def show_ports(inputs: Iterable[Output], outputs: Iterable[Output]) -> str:
    """Inputs and outputs as OpenVINO shows them."""
    shown = (
        ",\n".join(described(port, ConstOutput.__name__) for port in ports) for ports in (inputs, outputs)
    )
    return "inputs[\n{}\n]\noutputs[\n{}\n]".format(*shown)


class Input(HasRTInfo):
    """An input of a layer. As OpenVINO's ``Input``."""

    def __init__(self, node: Node, index: int) -> None:
        self._node, self._index = node, index

    def get_source_output(self) -> Output:
        """The tensor it reads.

        Raises:
            InputError: if nothing feeds it.
        """
        source = self._node._sources[self._index]
        if source is None:
            layer = self._node.layer
            message = f"input port {layer.inputs[self._index].id} of layer {layer.name!r} has no edge"
            raise InputError(message, code=Code.BAD_REQUEST)
        return source

    def replace_source_output(self, new_source_output: Output) -> None:
        """Read another tensor. Types are inferred anew when the model is validated, saved or compiled."""
        self._connect(as_output(new_source_output))

    def _connect(self, source: Output | None) -> None:
        self._node._edit()
        if source is not None:
            source._node._edit()
            source._node._consumers.add(self._node)
        self._node._own_sources[self._index] = source

    def get_node(self) -> Node:
        """The layer."""
        return self._node

    def get_index(self) -> int:
        """Which input of its layer this is."""
        return self._index

    def get_tensor(self) -> DescriptorTensor:
        """The tensor that it reads."""
        return self.get_source_output().tensor

    def get_partial_shape(self) -> PartialShape:
        """The shape, as far as it is known."""
        return self.get_source_output().partial_shape

    def get_shape(self) -> Shape:
        """The shape, all of which must be known."""
        return self.get_source_output().shape

    def get_element_type(self) -> ElementType:
        """The element type."""
        return self.get_source_output().element_type

    @property
    def _rt_info(self) -> Mapping[str, Any]:  # type: ignore[override]  # it is replaced by `_replace_rt_info`
        return self._node.layer.inputs[self._index].rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        layer = self._node._edit()
        self._node.layer = replace(layer, inputs=informed(layer.inputs, self._index, entries))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Input) and self._node is other._node and self._index == other._index

    def __hash__(self) -> int:
        return hash((id(self._node), self._index))

    def __repr__(self) -> str:
        try:
            return f"<Input: shape{self.get_partial_shape()} type: {self.get_element_type()}>"
        except InputError as reason:
            return f"<Input: {reason.message}>"


class Node(LayerInfo, Operators["Node"]):
    """A layer of a model. As OpenVINO's ``Node``.

    What it reads follows from the graph that it comes from, until the graph is changed; then it is settled, and
    knows that itself, as nodes that were built do.
    """

    # Set where it is settled: what it reads, and the values of its outputs.
    _own_sources: list[Output | None]
    _own_values: tuple[Value, ...]
    _home: GraphNodes | None
    _consumers: WeakSet[Node]
    _given_name: str
    _weights: Weights | None
    """Those of the model that it was read with: its contents may be a view of them."""
    _classes: ClassVar[dict[str, type[Node]]] = {}

    def __init_subclass__(cls, type: str = "", **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if type:
            Node._classes[type] = cls

    @staticmethod
    def _of(home: GraphNodes, layer: Layer) -> Node:
        cls = Node._classes.get(layer.type, Node)
        node = cls.__new__(cls)
        LayerInfo.__init__(node, layer)
        node._home, node._consumers, node._given_name = home, WeakSet(), layer.name
        node._weights = home.weights
        return node

    @staticmethod
    def create(
        type: str, opset: int, inputs: Iterable[Any] = (), attributes: Mapping[str, Any] | None = None
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

    def _build(self, op: Operation, sources: Sequence[Output]) -> None:
        """Become a node of its own."""
        self._build_incomplete(new_layer(op, len(sources)), sources)
        self._update()

    def _build_incomplete(self, layer: Layer, sources: Sequence[Output]) -> None:
        """Become a node of its own, whose outputs are not known yet."""
        LayerInfo.__init__(self, replace(layer, inputs=tuple(map(PortSpec, range(len(sources))))))
        self._home, self._consumers, self._given_name = None, WeakSet(), self.layer.name
        self._weights = None
        self._own_sources = list(sources)
        for source in sources:
            source._node._consumers.add(self)
        self._own_values = ()

    def _settle(self) -> None:
        """Keep what is read in a list of its own."""
        if self._home is None:
            return
        sources, values = self._sources, tuple(self._value(i) for i in range(len(self.layer.outputs)))
        if self.layer.type == "Result":
            self._set_names(0, self._names_of(0))
        if self.layer.type == "Parameter" and values and self.layer.op is not None:
            self._declare(values[0].type)
        self._own_sources, self._own_values, self._home = list(sources), values, None
        for source in sources:
            if source is not None:
                source._node._consumers.add(self)

    def _declare(self, type: TensorType) -> None:
        """Give a Parameter the type that the model was reshaped to."""
        for name, value in (("element_type", type.element), ("shape", type.shape)):
            if str(vars(self.layer.op)[name]) != str(value):
                self.layer = changed(self.layer, name, value)

    def _edit(self) -> Layer:
        """Prepare for a change, and return the layer as it is."""
        if self._home is not None:
            self._home.settle()
        EDITS.count += 1
        return self.layer

    @property
    def _sources(self) -> Sequence[Output | None]:
        if self._home is None:
            return self._own_sources
        found = self._home.graph.sources(self.layer)
        return [None if port is None else self._home.output(port) for port in found]

    def _value(self, index: int) -> Value:
        if self.layer.type == "Result":
            source = self._sources[0] if self._sources else None
            return _UNKNOWN if source is None else source._node._value(source._index)
        if self._home is None:
            return self._own_values[index]
        found = self._home.values.get(Port(self.layer.id, index))
        return found if isinstance(found, Value) else _UNKNOWN

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
        own = tuple(name for spec in self.layer.inputs[:1] for name in spec.names)
        if self._home is None:
            return own
        return tuple(dict.fromkeys((*own, *(n for s in self._sources if s is not None for n in s._names))))

    def _rename(self, index: int, names: tuple[str, ...]) -> None:
        """Name a tensor; that of a Result is also that of the layer that it reads."""
        self._edit()
        source = self._sources[0] if self.layer.type == "Result" and self._sources else None
        if source is not None:
            kept = [name for name in source._names if name not in self._names_of(index)]
            source._node._rename(source._index, tuple(dict.fromkeys((*kept, *names))))
        self._set_names(index, names)

    def _set_names(self, index: int, names: tuple[str, ...]) -> None:
        if self.layer.type == "Result":
            self.layer = replace(self.layer, inputs=named(self.layer.inputs, index, names))
        else:
            self.layer = replace(self.layer, outputs=named(self.layer.outputs, index, names))

    def _operation(self, name: str) -> Operation | None:
        """Return the operation of the layer as it is now, which has that name in its graph."""
        return self.layer.op

    @staticmethod
    def _unknown() -> Value:
        return _UNKNOWN

    def _update(self) -> None:
        """Infer the outputs from what is read."""
        self.layer = replace(self.layer, op=self._operation(self.layer.name))
        values = infer_layer(self.layer, [source._node._value(source._index) for source in self._connected()])
        self._set_values(values)

    def _set_values(self, values: Sequence[Value]) -> None:
        """Keep what was inferred about the outputs; their number may have changed."""
        self._own_values = tuple(values)
        if self.layer.type != "Result":
            first = len(self.layer.inputs)
            former = self.layer.outputs[: len(values)]
            more = [PortSpec(first + i) for i in range(len(former), len(values))]
            self.layer = replace(self.layer, outputs=(*former, *more))

    def _connected(self) -> list[Output]:
        return [port.get_source_output() for port in self.inputs()]

    def _binary(self, type: str, left: Any, right: Any) -> Node:
        return Node.create(type, 1, [left, right])

    @property
    def friendly_name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @friendly_name.setter
    def friendly_name(self, name: str) -> None:
        self.set_friendly_name(name)

    def set_friendly_name(self, name: str) -> None:
        """Give the layer another name."""
        self._edit()
        self.layer = replace(self.layer, name=name, where=replace(self.layer.where, layer=name))

    @property
    def name(self) -> str:
        """The name that the layer was given when it was created."""
        return self._given_name

    def get_name(self) -> str:
        """The name that the layer was given when it was created."""
        return self._given_name

    def outputs(self) -> list[Output]:
        """Every output. That of a Result is the output of the model."""
        if self.layer.type == "Result":
            return [Output(self, 0)] if any(source is not None for source in self._sources) else []
        return [Output(self, i) for i in range(len(self.layer.outputs))]

    def output(self, index: int = 0) -> Output:
        """One output.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.outputs(), index, "output", self)

    def inputs(self) -> list[Input]:
        """Every input."""
        return [Input(self, i) for i in range(len(self.layer.inputs))]

    def input(self, index: int) -> Input:
        """One input.

        Raises:
            InputError: if there is none of that index.
        """
        return _at(self.inputs(), index, "input", self)

    def input_values(self) -> list[Output]:
        """The outputs of other layers that this one reads."""
        return self._connected()

    def input_value(self, index: int) -> Output:
        """The output of another layer that an input reads."""
        return self.input(index).get_source_output()

    def set_argument(self, index: int, source: Output) -> None:
        """Let an input read another tensor; there may be one more than before."""
        self._edit()
        if index == len(self._own_sources):
            self._take([*self._own_sources, None])
        self.input(index).replace_source_output(source)

    def set_arguments(self, arguments: Sequence[Node | Output]) -> None:
        """Read these tensors only."""
        self._edit()
        sources = [source for argument in arguments for source in as_outputs(argument)]
        self._take([None] * len(sources))
        for port, source in zip(self.inputs(), sources, strict=True):
            port.replace_source_output(source)

    def _take(self, sources: Sequence[Output | None]) -> None:
        """Have as many inputs."""
        self._own_sources = list(sources)
        specs = [*self.layer.inputs, *map(PortSpec, range(len(self.layer.inputs), len(sources)))]
        self.layer = replace(self.layer, inputs=tuple(specs[: len(sources)]))

    def set_attribute(self, name: str, value: Any) -> None:
        """Change an attribute of the operation.

        Raises:
            ValidationError: if it is not allowed.
        """
        self._edit()
        layer = self.layer
        if layer.op is None:
            raise InputError(f"layer {layer.name!r} has no known attributes", code=Code.BAD_REQUEST)
        self.layer = changed(layer, name, value)

    def _replace_rt_info(self, entries: Entries) -> None:
        self.layer = replace(self._edit(), rt_info=entries)

    def validate_and_infer_types(self) -> None:
        """Infer the outputs from what is read.

        Raises:
            ValidationError: if the operation refuses its inputs.
        """
        self._edit()
        self._update()

    def constructor_validate_and_infer_types(self) -> None:
        """Infer the outputs from what is read; as `validate_and_infer_types`."""
        self.validate_and_infer_types()

    def set_output_type(
        self, index: int, element_type: ElementType, shape: PartialShape | Sequence[Any] | str
    ) -> None:
        """Set the type of an output; it holds until types are inferred anew."""
        self._edit()
        values = list(self._own_values)
        values[index] = Value(TensorType(element_type, shapes.PartialShape(shape)))
        self._own_values = tuple(values)

    def get_output_tensor(self, index: int) -> DescriptorTensor:
        """The tensor of an output, whose names can be changed."""
        return self.output(index).tensor

    def get_input_tensor(self, index: int) -> DescriptorTensor:
        """The tensor that an input reads."""
        return self.input(index).get_tensor()

    def get_instance_id(self) -> int:
        """A number that no other node has while this one is there."""
        return id(self)

    def get_output_size(self) -> int:
        """How many outputs there are."""
        return len(self.outputs())

    def get_input_size(self) -> int:
        """How many inputs there are."""
        return len(self.layer.inputs)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        shapes = [str(o.partial_shape) for o in self.outputs()]
        element = [o.element_type.c_name for o in self.outputs()] if self.layer.type == "Parameter" else []
        return f"<{self.get_type_name()}: {self.layer.name!r} ({', '.join(shapes + element)})>"


_Item = TypeVar("_Item")


def _at(items: Sequence[_Item], index: int, what: str, node: Node) -> _Item:
    if not 0 <= index < len(items):
        message = f"layer {node.friendly_name!r} has no {what} {index}"
        raise InputError(message, code=Code.NO_SUCH_NAME, hint=f"it has {len(items)}")
    return items[index]


def as_outputs(value: Any) -> list[Output]:
    """Return the tensors that an operation reads for an argument: all of a node, or a Constant for numbers."""
    if isinstance(value, Output):
        return [value]
    if isinstance(value, Node):
        return value.outputs()
    made = Node.__new__(Node._classes.get("Constant", Node))
    made._build(constant(array_of(value)), ())
    return made.outputs()


def as_output(value: Any) -> Output:
    """Return the only tensor of an argument."""
    found = as_outputs(value)
    if len(found) != 1:
        raise InputError(f"expected one output, got the {len(found)} of {value!r}", code=Code.BAD_REQUEST)
    return found[0]
