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

__all__ = ["BodyNode", "If", "Loop", "TensorIterator"]

InputDescription = InvariantInputDescription | MergedInputDescription | SliceInputDescription
OutputDescription = BodyOutputDescription | ConcatOutputDescription


@dataclass(slots=True)
class _Branch:
    """A body, and how it is tied to the ports of the node, by the positions of its Parameters and Results."""

    model: Editing
    inputs: list[InputDescription]
    outputs: list[OutputDescription]


class BodyNode(Node):
    """A node with bodies."""

    names: ClassVar[tuple[str, ...]] = ("body",)
    opset: ClassVar[int] = 1
    model_class: ClassVar[type[Any]]
    """`Model`, which makes models of bodies that were read."""

    _loaded: dict[str, _Branch] | None = None
    _special: Sequence[int] = (-1, -1)

    def _start(self, type: str, sources: Iterable[Any]) -> None:
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

    def _read(self, value: Any) -> int:
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
        """The body."""
        return self._get(self.names[index])

    def set_function(self, *arguments: Any) -> None:
        """Give the node its body: ``set_function(model)``, or of several ``set_function(index, model)``."""
        index, model = arguments if len(arguments) > 1 else (0, *arguments)
        self._set(self.names[index], model)

    def get_input_descriptions(self, index: int = 0) -> list[InputDescription]:
        """How inputs of the node feed Parameters of a body."""
        return list(self._branches[self.names[index]].inputs)

    def get_output_descriptions(self, index: int = 0) -> list[OutputDescription]:
        """How Results of a body feed outputs of the node."""
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


class If(BodyNode, type="If"):
    """Runs one of two bodies. As OpenVINO's ``if_op``."""

    _shown_class = "if_op"

    names = ("then_body", "else_body")
    opset = 8

    def __init__(self, execution_condition: Node | Output | None = None) -> None:
        self._start("If", [] if execution_condition is None else [execution_condition])

    def set_then_body(self, body: Any) -> None:
        """Give the node the body that runs where the condition holds."""
        self._set("then_body", body)

    def set_else_body(self, body: Any) -> None:
        """Give the node the body that runs where the condition does not hold."""
        self._set("else_body", body)

    def get_then_body(self) -> Any:
        """The body that runs where the condition holds."""
        return self._get("then_body")

    def get_else_body(self) -> Any:
        """The body that runs where the condition does not hold."""
        return self._get("else_body")

    def set_input(self, value: Output, then_parameter: Node | None, else_parameter: Node | None) -> None:
        """Feed a tensor to a Parameter of each body, or of one of them."""
        index = self._read(value)
        for name, parameter in zip(self.names, (then_parameter, else_parameter), strict=True):
            if parameter is not None:
                place = _place(self._get(name).parameters, parameter, "Parameter")
                self._branches[name].inputs.append(InvariantInputDescription(index, place))
        self._infer_if_complete()

    def set_output(self, then_result: Node, else_result: Node) -> Output:
        """Have an output that is a Result of the body that runs."""
        index = len(self.layer.outputs)
        both = zip(self.names, (then_result, else_result), strict=True)
        places = {name: _result(self._get(name), result) for name, result in both}
        return self._give({name: BodyOutputDescription(at, index) for name, at in places.items()}, index)


class _Repeated(BodyNode):
    """A loop."""

    def set_sliced_input(
        self, parameter: Node, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> None:
        """Feed a Parameter of the body one part of a tensor in each iteration."""
        cut = {"start": start, "stride": stride, "part_size": part_size, "end": end, "axis": axis}
        self._feed(SliceInputDescription(self._read(value), self._parameter(parameter), **cut))

    def set_merged_input(self, body_parameter: Node, initial_value: Output, successive_value: Output) -> None:
        """Feed a Parameter of the body a tensor at first, and then what a Result gave in the iteration before."""
        result = _result(self._get("body"), successive_value)
        self._feed(MergedInputDescription(self._read(initial_value), self._parameter(body_parameter), result))

    def set_invariant_input(self, body_parameter: Node, value: Output) -> None:
        """Feed a Parameter of the body the same tensor in each iteration."""
        self._feed(InvariantInputDescription(self._read(value), self._parameter(body_parameter)))

    def _parameter(self, parameter: Node) -> int:
        return _place(self._get("body").parameters, parameter, "Parameter")

    def _feed(self, entry: InputDescription) -> None:
        self._branches["body"].inputs.append(entry)
        self._infer_if_complete()

    def get_num_iterations(self) -> int:
        """The number of iterations, -1 where it is not known before the model runs."""
        counts = [
            self._count(e) for e in self.get_input_descriptions() if isinstance(e, SliceInputDescription)
        ]
        return max(counts, default=-1)

    def _count(self, entry: SliceInputDescription) -> int:
        cut, shape = _cut(entry), self.input_value(entry.input_index)._type.shape
        known = cut is not None and shape.rank is not None and shape[entry.axis].is_static
        return cut.count(shape[entry.axis].get_length()) if known and cut is not None else -1

    def get_iter_value(self, body_value: Output, iteration: int = -1) -> Output:
        """Have an output that is what a Result of the body gives in the last iteration."""
        index = len(self.layer.outputs)
        if iteration != -1:
            raise InputError("only the last iteration, -1, can be an output", code=Code.BAD_REQUEST)
        place = _result(self._get("body"), body_value)
        return self._give({"body": BodyOutputDescription(place, index)}, index)

    def get_concatenated_slices(
        self, value: Output, start: int, stride: int, part_size: int, end: int, axis: int
    ) -> Output:
        """Have an output that joins what a Result of the body gives in each iteration."""
        index, cut = len(self.layer.outputs), Cut(axis, start, end, stride, part_size)
        place = _result(self._get("body"), value)
        return self._give({"body": ConcatOutputDescription(place, index, **_named(cut))}, index)


class Loop(_Repeated, type="Loop"):
    """Runs its body while a condition holds. As OpenVINO's ``loop``."""

    _shown_class = "loop"

    opset = 5

    def __init__(
        self, trip_count: Node | Output | None = None, execution_condition: Node | Output | None = None
    ) -> None:
        self._start("Loop", [end for end in (trip_count, execution_condition) if end is not None])

    def get_num_iterations(self) -> int:
        """The number of iterations, -1 where it is not known before the model runs."""
        trips = self._sources[0]
        most = None if trips is None else trips._node._value(trips._index).ints()
        goes_on = self._condition()
        return most[0] if most and goes_on else super().get_num_iterations()

    def _condition(self) -> bool:
        """Whether the body always says to go on."""
        result = self.get_function().results[self._special[1]] if self._special[1] >= 0 else None
        known = None if result is None else result._value(0).known()
        return known is not None and bool(known.all())

    def set_special_body_ports(self, special_body_ports: Sequence[int]) -> None:
        """Say which Parameter gets the number of the iteration, -1 for none, and which Result is the condition."""
        self._edit()
        self._special = tuple(special_body_ports)
        self._infer_if_complete()

    def get_special_body_ports(self) -> list[int]:
        """Which Parameter gets the number of the iteration, and which Result is the condition."""
        return list(self._special) if self._branches else [-1, -1]


class TensorIterator(_Repeated, type="TensorIterator"):
    """Runs its body for each part of its inputs. As OpenVINO's ``tensor_iterator``."""

    _shown_class = "tensor_iterator"

    def __init__(self) -> None:
        self._start("TensorIterator", [])

    def set_body(self, body: Any) -> None:
        """Give the node its body."""
        self._set("body", body)

    def get_body(self) -> Any:
        """The body."""
        return self._get("body")


def _special_of(body: Body) -> tuple[int, int]:
    parameters, results = list(body.parameters), list(body.results)
    first = -1 if body.iteration is None else parameters.index(body.iteration)
    return first, -1 if body.condition is None else results.index(body.condition)


def _place(nodes: Sequence[Node], node: Node, what: str) -> int:
    if node not in nodes:
        raise InputError(f"{node!r} is not a {what} of the body", code=Code.BAD_REQUEST)
    return nodes.index(node)


def _result(body: Editing, value: Node | Output) -> int:
    """Return which Result gives a value: it is the Result, or what the Result takes."""
    output = as_output(value)
    for index, result in enumerate(body.results):
        if output in (result.output(0), result.input_value(0)):
            return index
    raise InputError(f"{value!r} is not given by a Result of the body", code=Code.BAD_REQUEST)


def _named(cut: Cut) -> dict[str, int]:
    return cut._asdict()


def _input_of(entry: BodyInput, parameter: int, merged: Mapping[int, int]) -> InputDescription:
    if entry.cut is not None:
        return SliceInputDescription(entry.port, parameter, **_named(entry.cut))
    if entry.parameter in merged:
        return MergedInputDescription(entry.port, parameter, merged[entry.parameter])
    return InvariantInputDescription(entry.port, parameter)


def _output_of(entry: BodyOutput, result: int) -> OutputDescription:
    if entry.cut is None:
        return BodyOutputDescription(result, entry.port)
    return ConcatOutputDescription(result, entry.port, **_named(entry.cut))


def _body(name: str, branch: _Branch, path: str, special: Sequence[int]) -> Body:
    graph = _renamed(branch.model._declared_graph(), "", f"{path}/{name}/")
    parameters = [layer.id for layer in graph.of_type("Parameter")]
    results = [layer.id for layer in graph.of_type("Result")]
    merged = [entry for entry in branch.inputs if isinstance(entry, MergedInputDescription)]
    return Body(
        name,
        graph,
        tuple(BodyInput(e.input_index, parameters[e.body_parameter_index], _cut(e)) for e in branch.inputs),
        tuple(BodyOutput(e.output_index, results[e.body_value_index], _cut(e)) for e in branch.outputs),
        tuple(BackEdge(results[e.body_value_index], parameters[e.body_parameter_index]) for e in merged),
        None if special[0] < 0 else parameters[special[0]],
        None if special[1] < 0 else results[special[1]],
    )


def _cut(entry: InputDescription | OutputDescription) -> Cut | None:
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
