"""The bodies of If, Loop and TensorIterator as models, and their port maps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from ...codes import Code
from ...diagnostics import Location
from ...errors import InputError, ValidationError
from ...ir.graph import Body, Graph, Layer, PortSpec
from ...ir.operation import Operation
from ...ir.port_map import BackEdge, BodyInput, BodyOutput, Cut
from ..model import Model
from ..node import UNKNOWN, Node, Output, as_output
from .descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)
from .layer import incomplete, operation

__all__ = ["Bodies", "HasBodies", "InputDescription", "cut_of"]

InputDescription = InvariantInputDescription | MergedInputDescription | SliceInputDescription
OutputDescription = BodyOutputDescription | ConcatOutputDescription


@dataclass(slots=True)
class _Branch:
    """A body and its port map, which refers to Parameters and Results by index."""

    model: Model
    inputs: list[InputDescription]
    outputs: list[OutputDescription]


class Bodies:
    """The bodies of a node, with methods that edit their port maps.

    Args:
        node: the node, whose bodies are loaded on first use.
        names: the names of the bodies in files, in the order of OpenVINO's indices.
        opset: the opset of the operation.
    """

    def __init__(self, node: Node, names: Sequence[str], opset: int) -> None:
        self.node: Node = node
        self.names: Sequence[str] = names
        self.special: Sequence[int] = (-1, -1)
        """The indices of the iteration-number Parameter and of the condition Result of a Loop, -1 for none."""
        self._opset = opset
        self._loaded: dict[str, _Branch] | None = None

    def build(self, type: str, sources: Iterable[object]) -> None:
        """Initialize a new node, whose bodies are set later."""
        self.node._build_incomplete(incomplete(type, self._opset), [as_output(source) for source in sources])
        self._loaded = {}

    @property
    def branches(self) -> dict[str, _Branch]:
        """The bodies by name."""
        return self._load_all() if self._loaded is None else self._loaded

    def _load_all(self) -> dict[str, _Branch]:
        bodies = {body.name: body for body in self.node.layer.bodies()}
        self._loaded = {name: self._load(body) for name, body in bodies.items()}
        self.special = _special_of(bodies["body"]) if "body" in bodies else (-1, -1)
        return self._loaded

    def _load(self, body: Body) -> _Branch:
        name = self.node.layer.name
        graph = _rename(body.graph, f"{name}/{body.name}/", "")
        parameters, results = list(body.parameters), list(body.results)
        merged = {edge.parameter: results.index(edge.result) for edge in body.back_edges}
        return _Branch(
            Model._of_graph(graph, f"{name}/{body.name}"),
            [_describe_input(entry, parameters.index(entry.parameter), merged) for entry in body.inputs],
            [_describe_output(entry, results.index(entry.result)) for entry in body.outputs],
        )

    def operation(self, name: str) -> Operation | None:
        """Return the operation with its current bodies, for a layer named ``name``; None if a body has not been set."""
        op = self.node.layer.op
        if self._loaded is None or self._loaded.keys() != set(self.names):
            return op
        bodies = {key: _body(key, branch, name, self.special) for key, branch in self.branches.items()}
        return operation(self.node.layer.type, self._opset, bodies) if op is None else op.replace(**bodies)

    def changed_since(self, edit: int) -> bool:
        """Return whether a body has changed since an edit."""
        return any(branch.model._changed_since(edit) for branch in (self._loaded or {}).values())

    def get(self, name: str) -> Model:
        """Return a body.

        Raises:
            InputError: if the body has not been set.
        """
        if name not in self.branches:
            raise InputError(f"{self.node.friendly_name!r} has no {name} yet", code=Code.BAD_REQUEST)
        return self.branches[name].model

    def set(self, name: str, body: Model) -> None:
        """Replace a body and keep its port map."""
        self.node._edit()
        former = self.branches.get(name)
        self.branches[name] = _Branch(body, former.inputs if former else [], former.outputs if former else [])
        self.infer_if_complete()

    def add_input(self, value: object) -> int:
        """Connect one more input of the node to an output, and return its index."""
        node = self.node
        node._edit()
        node.set_argument(len(node._sources), as_output(value))
        return len(node._sources) - 1

    def feed(self, name: str, entry: InputDescription) -> None:
        """Add a connection from an input of the node to a Parameter of the body ``name``."""
        self.branches[name].inputs.append(entry)
        self.infer_if_complete()

    @property
    def next_output(self) -> int:
        """The index of the output that `add_output` adds."""
        return len(self.node.layer.outputs)

    def add_output(self, entries: Mapping[str, OutputDescription]) -> Output:
        """Add an output at index `next_output`, fed by a Result of each body in ``entries``."""
        node, index = self.node, self.next_output
        for name, entry in entries.items():
            self.branches[name].outputs.append(entry)
        node._edit()
        node._own_values = (*node._values, UNKNOWN)
        specs = (*node.layer.outputs, PortSpec(len(node.layer.inputs) + index))
        node.layer = replace(node.layer, outputs=specs)
        self.infer_if_complete()
        return Output(node, index)

    def parameter_index(self, name: str, parameter: Node) -> int:
        """Return the position of a Parameter among the Parameters of a body.

        Raises:
            InputError: if it is not a Parameter of the body.
        """
        parameters: Sequence[Node] = self.get(name).parameters
        if parameter not in parameters:
            raise InputError(f"{parameter!r} is not a Parameter of the body", code=Code.BAD_REQUEST)
        return parameters.index(parameter)

    def result_index(self, name: str, value: Node | Output) -> int:
        """Return the position of a Result of a body, given as the Result or as its operand.

        Raises:
            InputError: if it is not a Result of the body.
        """
        output = as_output(value)
        for index, result in enumerate(self.get(name).results):
            if output in (result.output(0), result.input_value(0)):
                return index
        raise InputError(f"{value!r} is not given by a Result of the body", code=Code.BAD_REQUEST)

    def replace_inputs(self, index: int, entries: Sequence[InputDescription]) -> None:
        """Replace the connections of the node's inputs to a body."""
        self.node._edit()
        self.branches[self.names[index]].inputs[:] = entries
        self.infer_if_complete()

    def replace_outputs(self, index: int, entries: Sequence[OutputDescription]) -> None:
        """Replace the connections of a body to the node's outputs."""
        self.node._edit()
        self.branches[self.names[index]].outputs[:] = entries
        self.infer_if_complete()

    def replace_special(self, special: Sequence[int]) -> None:
        """Replace the special ports: the indices of the iteration Parameter and the condition Result."""
        self.node._edit()
        if self._loaded is None:
            self._load_all()
        self.special = tuple(special)
        self.infer_if_complete()

    def infer_if_complete(self) -> None:
        """Infer the outputs of the node if its bodies are complete. Validation of the model reports what is missing."""
        try:
            self.node._update()
        except ValidationError:
            return


class HasBodies:
    """Mixin with the methods common to If, Loop and TensorIterator.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import op, opset1
    >>> row = opset1.parameter([1, 3], np.float32, name="row")
    >>> node = op.tensor_iterator()
    >>> node.set_function(ov.Model([opset1.result(opset1.relu(row))], [row]))
    >>> x = opset1.parameter([2, 3], np.float32, name="x")
    >>> node.set_argument(0, x.output(0))
    >>> node.set_input_descriptions([SliceInputDescription(0, 0)])
    >>> node.set_output_descriptions([ConcatOutputDescription(0, 0)])
    >>> len(node.get_function().outputs), len(node.get_input_descriptions()), len(node.get_output_descriptions())
    (1, 1, 1)
    """

    _body_names: ClassVar[tuple[str, ...]] = ("body",)
    _opset: ClassVar[int] = 1

    @property
    def _bodies(self) -> Bodies:
        bodies = vars(self).get("_own_bodies")
        if bodies is None:
            assert isinstance(self, Node)
            bodies = vars(self)["_own_bodies"] = Bodies(self, self._body_names, self._opset)
        assert isinstance(bodies, Bodies)
        return bodies

    def get_function(self, index: int = 0) -> Any:
        """Return a body."""
        return self._bodies.get(self._body_names[index])

    def set_function(self, *arguments: Any) -> None:
        """Set a body: ``set_function(model)``, or ``set_function(index, model)`` if there are several."""
        index, model = arguments if len(arguments) > 1 else (0, *arguments)
        self._bodies.set(self._body_names[index], model)

    def get_input_descriptions(self, index: int = 0) -> list[InputDescription]:
        """Return the connections from inputs of the node to Parameters of a body."""
        return list(self._bodies.branches[self._body_names[index]].inputs)

    def get_output_descriptions(self, index: int = 0) -> list[OutputDescription]:
        """Return the connections from Results of a body to outputs of the node."""
        return list(self._bodies.branches[self._body_names[index]].outputs)

    def set_input_descriptions(self, *arguments: Any) -> None:
        """Connect inputs of the node to Parameters of a body: ``(descriptions)`` or ``(index, descriptions)``."""
        self._bodies.replace_inputs(*(arguments if len(arguments) > 1 else (0, *arguments)))

    def set_output_descriptions(self, *arguments: Any) -> None:
        """Connect Results of a body to outputs of the node: ``(descriptions)`` or ``(index, descriptions)``."""
        self._bodies.replace_outputs(*(arguments if len(arguments) > 1 else (0, *arguments)))


def _special_of(body: Body) -> tuple[int, int]:
    parameters, results = list(body.parameters), list(body.results)
    iteration = -1 if body.iteration is None else parameters.index(body.iteration)
    return iteration, -1 if body.condition is None else results.index(body.condition)


def _describe_input(entry: BodyInput, parameter: int, merged: Mapping[int, int]) -> InputDescription:
    if entry.cut is not None:
        return SliceInputDescription(entry.port, parameter, **entry.cut._asdict())
    if entry.parameter in merged:
        return MergedInputDescription(entry.port, parameter, merged[entry.parameter])
    return InvariantInputDescription(entry.port, parameter)


def _describe_output(entry: BodyOutput, result: int) -> OutputDescription:
    if entry.cut is None:
        return BodyOutputDescription(result, entry.port)
    return ConcatOutputDescription(result, entry.port, **entry.cut._asdict())


def _body(name: str, branch: _Branch, path: str, special: Sequence[int]) -> Body:
    graph = _rename(branch.model._declared_graph(), "", f"{path}/{name}/")
    parameters = [layer.id for layer in graph.of_type("Parameter")]
    results = [layer.id for layer in graph.of_type("Result")]
    merged = [entry for entry in branch.inputs if isinstance(entry, MergedInputDescription)]
    return Body(
        name,
        graph,
        tuple(BodyInput(e.input_index, parameters[e.body_parameter_index], cut_of(e)) for e in branch.inputs),
        tuple(BodyOutput(e.output_index, results[e.body_value_index], cut_of(e)) for e in branch.outputs),
        tuple(BackEdge(results[e.body_value_index], parameters[e.body_parameter_index]) for e in merged),
        None if special[0] < 0 else parameters[special[0]],
        None if special[1] < 0 else results[special[1]],
    )


def cut_of(entry: InputDescription | OutputDescription) -> Cut | None:
    """Return the slicing or concatenation of a description, or None."""
    if not isinstance(entry, SliceInputDescription | ConcatOutputDescription):
        return None
    return Cut(entry.axis, entry.start, entry.end, entry.stride, entry.part_size)


def _rename(graph: Graph, former: str, prefix: str) -> Graph:
    """Replace a prefix in the names of all layers, including those in bodies."""
    layers = [_rename_layer(layer, former, prefix) for layer in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _rename_layer(layer: Layer, former: str, prefix: str) -> Layer:
    name = prefix + layer.name.removeprefix(former)
    where: Location = replace(layer.where, layer=name)
    bodies = {b.name: replace(b, graph=_rename(b.graph, former, prefix)) for b in layer.bodies()}
    op = layer.op.replace(**bodies) if layer.op is not None and bodies else layer.op
    return replace(layer, name=name, where=where, op=op)
