"""Nodes with bodies: branches and loops, whose bodies are models. As OpenVINO's ``if_op``, ``loop``, ``tensor_iterator``."""

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
from ..editing import Editing
from ..node_changes import UNKNOWN
from ..nodes import Node, Output, as_output
from .descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    SliceInputDescription,
)
from .layer import incomplete, operation

__all__ = ["BodyNode", "InputDescription", "cut_of", "named_cut", "place_of", "result_of"]

InputDescription = InvariantInputDescription | MergedInputDescription | SliceInputDescription
OutputDescription = BodyOutputDescription | ConcatOutputDescription


@dataclass(slots=True)
class _Branch:
    """A body, and how it is tied to the ports of the node, by the positions of its Parameters and Results."""

    model: Editing
    inputs: list[InputDescription]
    outputs: list[OutputDescription]


class BodyNode(Node):
    """A node with bodies.

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

    layer: Layer
    names: ClassVar[tuple[str, ...]] = ("body",)
    opset: ClassVar[int] = 1
    model_class: ClassVar[type[Any]]
    """`Model`, which makes models of bodies that were read."""

    _loaded: dict[str, _Branch] | None = None
    _special: Sequence[int] = (-1, -1)

    def _start(self, type: str, sources: Iterable[object]) -> None:
        self._build_incomplete(incomplete(type, self.opset), [as_output(source) for source in sources])
        self._loaded = {}

    @property
    def _branches(self) -> dict[str, _Branch]:
        if self._loaded is None:
            bodies = {body.name: body for body in self.layer.bodies()}
            self._loaded = {name: self._branch(body) for name, body in bodies.items()}
            self._special = _special_of(bodies["body"]) if "body" in bodies else (-1, -1)
        return self._loaded

    def _branch(self, body: Body) -> _Branch:
        graph = _renamed(body.graph, f"{self.layer.name}/{body.name}/", "")
        parameters, results = list(body.parameters), list(body.results)
        merged = {edge.parameter: results.index(edge.result) for edge in body.back_edges}
        return _Branch(
            self.model_class._of_graph(graph, f"{self.layer.name}/{body.name}"),
            [_input_of(entry, parameters.index(entry.parameter), merged) for entry in body.inputs],
            [_output_of(entry, results.index(entry.result)) for entry in body.outputs],
        )

    def _operation(self, name: str) -> Operation | None:
        """Return the operation with the bodies as they are now."""
        if self._loaded is None or self._loaded.keys() != set(self.names):
            return self.layer.op
        bodies = {key: _body(key, branch, name, self._special) for key, branch in self._branches.items()}
        if self.layer.op is None:
            return operation(self.layer.type, self.opset, bodies)
        return self.layer.op.replace(**bodies)

    def _changed_since(self, edit: int) -> bool:
        bodies = self._loaded or {}
        return super()._changed_since(edit) or any(b.model._changed_since(edit) for b in bodies.values())

    def _get(self, name: str) -> Editing:
        if name not in self._branches:
            raise InputError(f"{self.friendly_name!r} has no {name} yet", code=Code.BAD_REQUEST)
        return self._branches[name].model

    def _set(self, name: str, body: Editing) -> None:
        self._edit()
        known = self._branches.get(name)
        self._branches[name] = _Branch(body, known.inputs if known else [], known.outputs if known else [])
        self._infer_if_complete()

    def _read(self, value: object) -> int:
        """Read one more tensor, and return the index of the input."""
        self._edit()
        self.set_argument(len(self._own_sources), as_output(value))
        return len(self._own_sources) - 1

    def _give(self, entries: Mapping[str, OutputDescription], index: int) -> Output:
        """Have one more output."""
        for name, entry in entries.items():
            self._branches[name].outputs.append(entry)
        specs = (*self.layer.outputs, PortSpec(len(self.layer.inputs) + index))
        self.layer = replace(self._edit(), outputs=specs)
        self._own_values = (*self._own_values, UNKNOWN)
        self._infer_if_complete()
        return Output(self, index)

    def _infer_if_complete(self) -> None:
        """Infer the outputs, unless something is not said yet; the model that it becomes part of is validated."""
        try:
            self._update()
        except ValidationError:
            return

    def get_function(self, index: int = 0) -> Any:
        """Return the body."""
        return self._get(self.names[index])

    def set_function(self, *arguments: Any) -> None:
        """Give the node its body: ``set_function(model)``, or of several ``set_function(index, model)``."""
        index, model = arguments if len(arguments) > 1 else (0, *arguments)
        self._set(self.names[index], model)

    def get_input_descriptions(self, index: int = 0) -> list[InputDescription]:
        """Return the descriptions of the inputs of the node that feed Parameters of a body."""
        return list(self._branches[self.names[index]].inputs)

    def get_output_descriptions(self, index: int = 0) -> list[OutputDescription]:
        """Return the descriptions of the outputs of the node that Results of a body feed."""
        return list(self._branches[self.names[index]].outputs)

    def set_input_descriptions(self, *arguments: Any) -> None:
        """Tie inputs of the node to Parameters of a body: ``(descriptions)`` or ``(index, descriptions)``."""
        index, entries = arguments if len(arguments) > 1 else (0, *arguments)
        self._edit()
        self._branches[self.names[index]].inputs[:] = entries
        self._infer_if_complete()

    def set_output_descriptions(self, *arguments: Any) -> None:
        """Tie Results of a body to outputs of the node: ``(descriptions)`` or ``(index, descriptions)``."""
        index, entries = arguments if len(arguments) > 1 else (0, *arguments)
        self._edit()
        self._branches[self.names[index]].outputs[:] = entries
        self._infer_if_complete()


def _special_of(body: Body) -> tuple[int, int]:
    parameters, results = list(body.parameters), list(body.results)
    first = -1 if body.iteration is None else parameters.index(body.iteration)
    return first, -1 if body.condition is None else results.index(body.condition)


def place_of(nodes: Sequence[Node], node: Node, what: str) -> int:
    """Return the position of a node among those of a body."""
    if node not in nodes:
        raise InputError(f"{node!r} is not a {what} of the body", code=Code.BAD_REQUEST)
    return nodes.index(node)


def result_of(body: Editing, value: Node | Output) -> int:
    """Return which Result gives a value: it is the Result, or what the Result takes."""
    output = as_output(value)
    for index, result in enumerate(body.results):
        if output in (result.output(0), result.input_value(0)):
            return index
    raise InputError(f"{value!r} is not given by a Result of the body", code=Code.BAD_REQUEST)


def named_cut(cut: Cut) -> dict[str, int]:
    """Return a cut by the names of its parts."""
    return cut._asdict()


def _input_of(entry: BodyInput, parameter: int, merged: Mapping[int, int]) -> InputDescription:
    if entry.cut is not None:
        return SliceInputDescription(entry.port, parameter, **named_cut(entry.cut))
    if entry.parameter in merged:
        return MergedInputDescription(entry.port, parameter, merged[entry.parameter])
    return InvariantInputDescription(entry.port, parameter)


def _output_of(entry: BodyOutput, result: int) -> OutputDescription:
    if entry.cut is None:
        return BodyOutputDescription(result, entry.port)
    return ConcatOutputDescription(result, entry.port, **named_cut(entry.cut))


def _body(name: str, branch: _Branch, path: str, special: Sequence[int]) -> Body:
    graph = _renamed(branch.model._declared_graph(), "", f"{path}/{name}/")
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
    """Return how a description cuts a tensor into parts, if it does."""
    if not isinstance(entry, SliceInputDescription | ConcatOutputDescription):
        return None
    return Cut(entry.axis, entry.start, entry.end, entry.stride, entry.part_size)


def _renamed(graph: Graph, former: str, prefix: str) -> Graph:
    """Return a graph whose layers, also those in bodies, have names with another beginning."""
    layers = [_with_prefix(layer, former, prefix) for layer in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _with_prefix(layer: Layer, former: str, prefix: str) -> Layer:
    name = prefix + layer.name.removeprefix(former)
    where: Location = replace(layer.where, layer=name)
    bodies = {b.name: replace(b, graph=_renamed(b.graph, former, prefix)) for b in layer.bodies()}
    op = layer.op.replace(**bodies) if layer.op is not None and bodies else layer.op
    return replace(layer, name=name, where=where, op=op)
