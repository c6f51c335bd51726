"""`Model`: a graph of layers that can be inspected, edited, reshaped and validated."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from itertools import chain
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

from .._util.absent import ExplainsAbsent
from .._util.wrong_arguments import ArgumentTypeError, OutOfRangeError, checked
from ..analysis.infer import Former, Inferred, correct_types, infer
from ..analysis.validate import (
    COMPILED_WITH,
    SAVED_WITH,
    check_graph,
    check_shapes,
    variables_of,
    with_variables,
)
from ..codes import DECLARED, Code
from ..diagnostics import Diagnostic, Diagnostics
from ..errors import InputError, UnsupportedError, ValidationError
from ..io.reader.document import Document
from ..io.reader.layers import FORMER_IR
from ..io.reader.source import Weights
from ..io.reader.version_10 import convert_again
from ..ir import shape
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.tensor import Array, TensorType, Value
from ..limits import Limits, within
from .any_value import Entries
from .build.derive import (
    Members,
    Order,
    Refreshed,
    declare_types,
    depth_first,
    derive_graph,
    find_undeclared,
    join_weights,
    members_of,
    refresh,
    topological,
    values_of,
)
from .build.ends import Parameter, Result
from .build.variables import Variable, VariableInfo
from .const_ports import ConstOutput, show_ports
from .names import find_port, find_ports, one_key, unknown_name
from .node import EDITS, GraphNodes, Node, Output
from .rt_info import HasRTInfo
from .shapes import PartialShape, Shape, ShapeLike
from .tensor import Tensor

if TYPE_CHECKING:
    import networkx as nx

    from ..analysis.constraints.confirming import Run
    from ..analysis.constraints.constraint import Constraints
    from ..io.writer import Content
    from ..report import Measures, OldModel, Page, Source

__all__ = ["Model", "ModelReport", "PortShapes", "model_html", "source_of"]


PortShapes: TypeAlias = "Mapping[Any, ShapeLike]"
"""Shapes by index, name or port. The key type is ``Any``, as mappings are invariant in it."""

# Bounds on the runs that confirm constraints: least and most CPU seconds, file bytes per additional second, and
# the resource limits of each run.
_MIN_SECONDS, _MAX_SECONDS, _BYTES_PER_SECOND = 1.0, 20.0, 4 << 20
_CONFIRMING: dict[str, Any] = {"memory": 1 << 29, "trips": 10_000}


class Model(HasRTInfo, ExplainsAbsent):
    """A graph of layers, with the inferred types and values of their outputs. As OpenVINO's ``Model``.

    `ir_runtime.read_model` reads a model; ``Model(results, parameters)`` builds one from nodes. ``graph`` is the
    networkx graph, ``report`` the findings of validation.

    The graph is that of the file until a node is changed. From then on it is derived from the nodes, and inferred again only
    if the model or a node has changed since.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset6
    >>> x = opset6.parameter([-1, 2], np.float32, name="x")
    >>> y = opset6.add(x, opset6.constant(np.float32([1, 2]), name="bias"), name="y")
    >>> model = ov.Model([y], [x], "net")
    >>> model.inputs, [port.partial_shape for port in model.outputs]
    ([<Output: names[x] shape[?,2] type: f32>], [<PartialShape: [?,2]>])
    >>> model.input("x") == model.inputs[0], model.parameters, model.results == [model.result]
    (True, [<Parameter: 'x' ([?,2], float)>], True)
    >>> [node.get_type_name() for node in model.get_ordered_ops()], model.constant("bias")
    (['Parameter', 'Constant', 'Add', 'Result'], array([1., 2.], dtype=float32))
    >>> model.graph.number_of_edges(), model.is_dynamic(), model.raise_if_invalid().report.summary
    (3, True, '0 errors, 0 warnings')
    >>> model.reshape({"x": [3, 2]})
    >>> model.get_output_shape(0)
    <Shape: [3,2]>
    >>> total = ov.Tensor(ov.Type.f32, [])
    >>> model.evaluate([total], [ov.Tensor(np.zeros((3, 2), np.float32))]), total.data[0]
    (True, array([1., 2.], dtype=float32))

    Inputs and outputs can be added, removed and replaced:

    >>> z = opset6.parameter([2], np.float32, name="z")
    >>> result = opset6.result(opset6.exp(z))
    >>> model.add_parameters([z])
    >>> model.add_results([result])
    >>> len(model.inputs), len(model.outputs)
    (2, 2)
    >>> model.remove_result(result)
    >>> model.remove_parameter(z)
    >>> model.replace_parameter(0, opset6.parameter([5, 2], np.float32, name="w"))
    >>> model.validate_nodes_and_infer_types()
    >>> model.get_output_shape(0)
    <Shape: [5,2]>

    A variable is read by a ReadValue and assigned by an Assign, which is a sink:

    >>> before = opset6.read_value(np.zeros((5, 2), np.float32), "total", "f32", [5, 2])
    >>> after = opset6.assign(opset6.add(before, model.input()), "total")
    >>> model.add_sinks([after])
    >>> model.get_sinks() == model.sinks, model.get_sink_index(after)
    (True, 0)
    >>> [variable.info.variable_id for variable in model.get_variables()], model.get_variable_by_id("count")
    (['total'], None)

    Args:
        results: the outputs, as Results, or as nodes and outputs for which Results are created.
        sinks: the layers that assign variables. They may be omitted.
        parameters: the inputs.
        variables: the variables. They may be omitted.
        name: the name of the model.

    Raises:
        ValidationError: if a layer has invalid operands, or a Parameter is not among ``parameters``.
    """

    friendly_name: str
    """The name under which the model is saved."""
    _document: Document
    _table: GraphNodes
    _report: Diagnostics
    _rt_info: Mapping[str, object]
    _parameters: dict[int, TensorType] | None
    """The types of Parameters after a reshape, None before the first one."""
    _members: Members | None
    """The Parameters, Results and sinks as editable nodes, None before the first edit."""
    _refreshed: Refreshed | None
    """The nodes inferred incrementally after the last edit."""
    _added: list[Port]
    """Additional tensors to return from runs, which have no Results."""
    _contradicted: Diagnostics | None
    """The findings without regard to declared types of ports, None unless inference contradicts a declared type."""
    _declared_variables: list[Variable]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if len(args) == 1 and isinstance(args[0], Model) and not kwargs:
            vars(self).update(vars(args[0].clone()))
            return
        members, variables, name = _parse_arguments(args, kwargs)
        document = _empty_document(name)
        self._start(document, GraphNodes(document.graph, Inferred(), nodes={}), Diagnostics())
        self._members, self._declared_variables = members, variables
        _name_ends(members)
        self.validate_nodes_and_infer_types()

    def _start(self, document: Document, nodes: GraphNodes, report: Diagnostics) -> None:
        self._document, self._table, self._report = document, nodes, report
        self.friendly_name, self._rt_info = document.name, document.rt_info
        self._parameters = self._members = self._refreshed = self._contradicted = None
        self._added, self._declared_variables = [], []
        self._seen, self._edited = -1, 0

    @classmethod
    def _read(cls, document: Document, report: Diagnostics) -> Model:
        """Create the model of a document, and add findings to the report."""
        graph, model = document.graph, cls.__new__(cls)
        # Declared types matter on pages, whose examples show them, and in old files, whose layers depend on them.
        strict = document.is_page or document.version < FORMER_IR
        checked = check_graph(graph, report, strict=strict, is_page=document.is_page)
        report.arrange()
        nodes = GraphNodes(graph, checked.values)
        nodes.weights = document.weights
        model._start(document, nodes, report)
        model._contradicted = checked.contradicted
        model._retype_outputs()
        model._table.is_sound = not len(report)
        return model

    @classmethod
    def _of_graph(cls, graph: Graph, name: str) -> Model:
        """Create the model for the body of a layer."""
        return cls._read(replace(_empty_document(name), graph=graph), Diagnostics())

    def _retype_outputs(self) -> None:
        """Convert outputs of old IR versions to their current element types, if they were declared differently."""
        unconverted, weights = self._document.unconverted, self._document.weights
        if unconverted is None or (graph := convert_again(unconverted, self._table.values)) is None:
            return
        self._document = replace(self._document, graph=graph)
        self._table = GraphNodes(graph, infer(graph, Diagnostics(), compare=False))
        self._table.weights = weights

    # Validity.

    @property
    def report(self) -> ModelReport:
        """The findings of validation. Calling it returns an HTML page about the model."""
        self._nodes()
        return ModelReport(self, self._report)

    def _repr_html_(self) -> str:
        return model_html(self)

    @property
    def _is_contradicted(self) -> bool:
        """Whether the declared type of some port differs from the inferred one."""
        self._nodes()
        return self._contradicted is not None

    def raise_if_invalid(self, allowed: Collection[str] = ()) -> Self:
        """Return the model if it has no errors, apart from those whose code is ``allowed``.

        Raises:
            UnsupportedError: if all errors are unknown operations.
            ValidationError: if there are other errors, with all of them in ``diagnostics``.
        """
        errors = self._errors(allowed)
        if not errors:
            return self
        first = errors[0]
        if all(e.code == Code.UNKNOWN_OPERATION for e in errors):
            message = first.message + _list_others(errors[1:], self.report.count(code=first.code) - 1)
            raise UnsupportedError(message, code=first.code, where=first.where, hint=first.hint)
        raise ValidationError.of(errors, self.report.more)

    def _errors(self, allowed: Collection[str]) -> list[Diagnostic]:
        """Return the errors whose code is not ``allowed``, in file order."""
        report = self.report
        if self._contradicted is None or not frozenset(allowed) >= DECLARED:
            return [error for error in report.errors if error.code not in allowed]
        errors = [error for error in self._contradicted.errors if error.code not in allowed]
        if not errors:
            return []
        declared = [error for error in report.errors if error.code in DECLARED]
        return sorted([*declared, *errors], key=lambda error: error.line or 0)

    def validate_nodes_and_infer_types(self) -> None:
        """Infer the types again after changes, and raise the errors.

        Raises:
            ValidationError: if the model is not valid.
        """
        if not self._refresh():
            self.raise_if_invalid()
            self._update_nodes()

    # The graph and its nodes.

    def _nodes(self) -> GraphNodes:
        """Return the current graph and its nodes, derived again if the model was changed."""
        if self._table.is_edited:
            if self._changed_since(self._seen):
                self._derive()
            else:
                self._seen = EDITS.count  # only other models were changed
        return self._table

    @property
    def _graph(self) -> Graph:
        return self._nodes().graph

    @property
    def _values(self) -> Inferred:
        return self._nodes().values

    @property
    def graph(self) -> nx.MultiDiGraph[int]:
        """The graph as a frozen networkx graph, which every writer of networkx can save.

        Nodes are layer ids with ``name``, ``type``, ``operation``, ``attributes``, ``outputs`` and ``line`` as text and
        numbers. The key of an edge is the index of the input it leads to, its ``output`` that of the output it comes from.
        """
        return self._nodes().annotate().network

    def _changed_since(self, edit: int) -> bool:
        """Return whether the model or one of its nodes was changed after edit number ``edit``."""
        if edit == EDITS.count:
            return False
        refreshed = () if self._refreshed is None else self._refreshed.nodes
        nodes = chain(self._table.created.values(), refreshed)
        return self._edited > edit or any(node._changed_since(edit) for node in nodes)

    def _editable_members(self) -> Members:
        """Return the Parameters, Results and sinks of the model as editable nodes."""
        if self._members is None:
            self._table.edit()
            self._members = members_of(self._table)
            self._members.results += [Result.with_names(self._table.output(port)) for port in self._added]
            self._added = []
        return self._members

    def _edit(self) -> Members:
        """Record an edit of the Parameters, Results and sinks, and return them for it."""
        members = self._editable_members()
        self._edited = EDITS.next()
        return members

    def _derive(self) -> None:
        """Derive the graph from the nodes, and infer its types."""
        members, is_refreshed = self._editable_members(), self._is_refreshed()
        self._seen = EDITS.count
        graph, nodes = derive_graph(members)
        report = Diagnostics(self._document.limits.findings)
        if is_refreshed:
            values = values_of(nodes)
        else:
            with within(self._document.limits):
                values = check_graph(graph, report, is_built=True, former=self._former(nodes)).values
        if missing := find_undeclared(nodes.values(), members):
            message = f"{missing.friendly_name!r} is not among the parameters of the model"
            report.error(Code.BAD_REQUEST, message, missing.layer.where)
        weights = join_weights(self._document.weights, nodes.values())
        self._document = replace(self._document, graph=graph, weights=weights)
        self._release_others(nodes.values())
        self._table = GraphNodes(graph, values, nodes=nodes, read=self._table.read)
        self._report, self._contradicted = report, None
        self._table.is_sound = not len(report)
        if not is_refreshed:
            self._refreshed = None

    def _former(self, nodes: Mapping[int, Node]) -> Former | None:
        """Return graph and inferred values before the change, to be reused for unchanged nodes; None if the graph had findings."""
        if len(self._report) or self._contradicted is not None:
            return None
        table = self._table
        ids = {id(node): layer for layer, node in table.created.items()}
        layers = {number: ids[id(node)] for number, node in nodes.items() if id(node) in ids}
        return Former(table.graph, table.values, layers)

    def _is_refreshed(self) -> bool:
        """Return whether the values of the nodes are up to date."""
        return self._refreshed is not None and not self._changed_since(self._refreshed.edit)

    def _refresh(self) -> bool:
        """Infer only the changed nodes, and return whether that proves the model valid."""
        if not self._table.is_edited or len(self._report) or self._contradicted is not None:
            return False
        if not self._is_refreshed():
            with within(self._document.limits):
                self._refreshed = refresh(self._editable_members(), EDITS.count, self._table)
        return self._refreshed is not None

    def _update_nodes(self) -> None:
        """Store the inferred values of the graph in the nodes."""
        table = self._nodes()
        for id, node in table.created.items() if table.is_edited else ():
            ports = [Port(id, index) for index in range(len(node.layer.outputs))]
            values = [value for port in ports if (value := table.values.get(port))]
            sources = [table.values.get(port) for port in table.graph.reads(table.graph[id])]
            operands = [value for value in sources if value is not None]
            is_complete = table.is_sound and len(operands) == len(node._sources)
            if node._is_attached and all(a is b for a, b in zip(values, node._values, strict=False)):
                continue
            node._detach()
            node._set_values(values, node._basis_of(operands) if is_complete else None)

    def _replace_graph(self, graph: Graph, values: Inferred) -> None:
        """Replace the graph with a variant that has the same layers."""
        self._table = GraphNodes(graph, values, origin=self._table.origin or self._table)
        self._members = self._refreshed = None

    def _declared_graph(self) -> Graph:
        """Return the graph with ports that declare the inferred types."""
        nodes = self._nodes()
        return declare_types(nodes.graph, nodes.values)

    def get_ops(self) -> list[Node]:
        """Return the reachable nodes in OpenVINO's order, depth-first from the last output."""
        return self._list_nodes(depth_first)

    def get_ordered_ops(self) -> list[Node]:
        """Return the reachable nodes in OpenVINO's topological order."""
        return self._list_nodes(topological)

    def _list_nodes(self, order: Order, types: Collection[type | None] | None = None) -> list[Node]:
        """Return the reachable nodes in an order.

        Args:
            order: the function that orders them.
            types: the operations of interest, by default all. Nodes of other operations without bodies may be omitted.
        """
        table = self._table
        if table.is_edited:
            members = self._editable_members()
            nodes = order([*members.results, *members.sinks, *members.parameters], Node._reads)
            if self._changed_since(self._seen):
                self._release_others(nodes)
            return nodes
        graph = table.graph
        sinks = [layer.id for layer in _sinks(graph)]
        ends = [*_ids(graph, "Result"), *sinks, *_ids(graph, "Parameter")]
        layers = order(ends, graph.producers)
        if types is not None:
            ops = [graph[layer].op for layer in layers]
            layers = [
                layer
                for layer, op in zip(layers, ops, strict=True)
                if type(op) in types or (op is not None and op.needs("visit"))
            ]
        return list(map(table.node, layers))

    def _release_others(self, nodes: Iterable[Node]) -> None:
        """Drop all nodes except those that belong to the model now."""
        present = set(map(id, nodes))
        self._table.release(present)
        if (last := self._refreshed) is not None:
            self._refreshed = last._replace(nodes=[node for node in last.nodes if id(node) in present])

    def _every_node(self) -> list[Node]:
        """Return the nodes of all layers, in file order."""
        nodes = self._nodes()
        return list(map(nodes.node, nodes.graph.layers))

    def constant(self, name: str) -> Array:
        """Return the elements of the Constant ``name``.

        Raises:
            InputError: if there is no Constant of that name.
        """
        layers = [layer for layer in self._graph.of_type("Constant") if layer.name == name]
        if not layers:
            raise unknown_name("Constant", name, [layer.name for layer in self._graph.of_type("Constant")])
        return self._nodes().node(layers[0].id).elements

    # Names and runtime information.

    def _entries(self) -> Mapping[str, object]:
        return self._rt_info

    def _replace_rt_info(self, entries: Entries) -> None:
        self._rt_info = entries

    @property
    def name(self) -> str:
        """The name in the file. The model is saved under its `friendly_name`."""
        return self._document.name

    @name.setter
    def name(self, name: str) -> None:
        self._document = replace(self._document, name=name)

    def get_name(self) -> str:
        """Return the name in the file."""
        return self.name

    def get_friendly_name(self) -> str:
        """Return the friendly name."""
        return self.friendly_name

    def set_friendly_name(self, name: str) -> None:
        """Set the friendly name."""
        self.friendly_name = checked(name, str)

    # Inputs and outputs.

    @property
    def parameters(self) -> list[Parameter]:
        """The Parameter layers."""
        nodes = self._editable_members().parameters if self._table.is_edited else self._of_type("Parameter")
        return [node for node in nodes if isinstance(node, Parameter)]

    @property
    def results(self) -> list[Result]:
        """The Result layers."""
        nodes = self._editable_members().results if self._table.is_edited else self._of_type("Result")
        return [node for node in nodes if isinstance(node, Result)]

    def _of_type(self, type: str) -> list[Node]:
        return [self._table.node(layer.id) for layer in self._table.graph.of_type(type)]

    @property
    def result(self) -> Node:
        """The only Result layer."""
        return self.output().node

    def get_parameters(self) -> list[Parameter]:
        """Return the Parameter layers."""
        return self.parameters

    def get_results(self) -> list[Result]:
        """Return the Result layers."""
        return self.results

    def get_result(self) -> Node:
        """Return the only Result layer."""
        return self.result

    @property
    def inputs(self) -> list[Output]:
        """The inputs, in file order."""
        return [output for node in self.parameters for output in node.outputs()[:1]]

    @property
    def outputs(self) -> list[Output]:
        """The outputs, in file order, followed by added ones."""
        outputs = [output for node in self.results for output in node.outputs()]
        return [*outputs, *(self._nodes().output(port) for port in self._added)]

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """Return an input by index or name, or the only input.

        Args:
            key: the index, or the name of the tensor or layer.
            index: the index, as OpenVINO calls it.
            tensor_name: the name, as OpenVINO calls it.

        Raises:
            InputError: if the index or name is unknown, or no key is given and there is not exactly one
                input.
        """
        return find_port(self.inputs, one_key(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> Output:
        """Return an output by index or name, or the only output.

        Args:
            key: the index, or the name of the tensor or layer.
            index: the index, as OpenVINO calls it.
            tensor_name: the name, as OpenVINO calls it.

        Raises:
            InputError: if the index or name is unknown, or no key is given and there is not exactly one
                output.
        """
        return find_port(self.outputs, one_key(key, index, tensor_name), "output")

    def get_output_op(self, index: int) -> Node:
        """Return the Result layer of an output."""
        return self.output(index).node

    def get_output_size(self) -> int:
        """Return the number of outputs."""
        return len(self.outputs)

    def get_output_shape(self, index: int) -> Shape:
        """Return the static shape of an output."""
        return self.output(index).shape

    def get_output_partial_shape(self, index: int) -> PartialShape:
        """Return the shape of an output, which may be dynamic."""
        return self.output(index).partial_shape

    def get_output_element_type(self, index: int) -> ElementType:
        """Return the element type of an output."""
        return self.output(index).element_type

    def get_parameter_index(self, parameter: Node) -> int:
        """Return the position of a Parameter among the inputs, or -1 if the model does not have it.

        Raises:
            ArgumentTypeError: if it is not a Parameter.
        """
        checked(parameter, Parameter)
        return next((i for i, node in enumerate(self.parameters) if node == parameter), -1)

    def get_result_index(self, output: Output | Node) -> int:
        """Return the position of an output, given as its Result or the operand of that, or -1 if there is none.

        Raises:
            ArgumentTypeError: if it is neither a Result nor an output.
        """
        checked(output, Result, Output)
        for index, port in enumerate(self.outputs):
            same = [port, port.node, *(port.node.input_values() if port.node.type == "Result" else ())]
            if output in same:
                return index
        return -1

    def add_outputs(self, outputs: object) -> list[Output]:
        """Add outputs: tensor names, layer names, globs, (layer name, output) or ports.

        Returns:
            The model output of each selected tensor, in order.
        """
        selected = list(
            dict.fromkeys(output for item in _as_list(outputs) for output in self._find_outputs(item))
        )
        results = {result.input_value(0): result for result in self.results}
        added = {output: Result.with_names(output) for output in selected if output not in results}
        self.add_results(added.values())
        _name_ends(Members(results=list(added.values())))
        return [(results | added)[output].output(0) for output in selected]

    def _find_outputs(self, item: object) -> list[Output]:
        if isinstance(item, Output):
            return [item.node.input_value(0) if item.node.type == "Result" else item]
        return list(map(self._nodes().output, self._ports([item])))

    def _ports(self, items: Iterable[Any]) -> list[Port]:
        nodes = self._nodes()
        return find_ports(
            nodes.graph, [self._port(item) if isinstance(item, Output) else item for item in items]
        )

    def _port(self, output: Output) -> Port:
        port = self._nodes().port(output)
        if port is None:
            raise InputError(f"{output!r} is not an output of a layer of the model", code=Code.NO_SUCH_NAME)
        return port

    def add_results(self, results: Iterable[Node | Output]) -> None:
        """Add outputs: Results, or nodes and outputs to which Results are added."""
        self._edit().results += _as_results(results)

    def remove_result(self, result: Node) -> None:
        """Remove an output. As in OpenVINO, other Results are ignored."""
        _remove(self._edit().results, checked(result, Result))

    def add_parameters(self, parameters: Iterable[Node]) -> None:
        """Add inputs."""
        self._edit().parameters += [checked(parameter, Parameter) for parameter in parameters]

    def remove_parameter(self, parameter: Node) -> None:
        """Remove an input, which must have no consumers when the model is next used. Other Parameters are ignored."""
        _remove(self._edit().parameters, checked(parameter, Parameter))

    def replace_parameter(self, parameter_index: int, parameter: Node) -> None:
        """Replace an input: the new Parameter takes over its consumers, position and names.

        Args:
            parameter_index: the index of the input.
            parameter: the new Parameter.

        Raises:
            InputError: if the index is out of range.
        """
        parameters = self._edit().parameters
        if not 0 <= parameter_index < len(parameters):
            message = f"input index {parameter_index} is out of range: the model has {len(parameters)}"
            raise OutOfRangeError(message, code=Code.NO_SUCH_NAME)
        checked(parameter, Parameter)
        parameters[parameter_index].output(0).replace(parameter.output(0))
        parameters[parameter_index] = parameter

    # Variables and sinks.

    @property
    def sinks(self) -> list[Node]:
        """The layers that assign variables."""
        if self._table.is_edited:
            return list(self._editable_members().sinks)
        return [self._table.node(layer.id) for layer in _sinks(self._table.graph)]

    def get_sinks(self) -> list[Node]:
        """Return the layers that assign variables."""
        return self.sinks

    def get_sink_index(self, sink: Node | Output) -> int:
        """Return the position of a sink, or -1 if the model does not have it."""
        node, sinks = _node(sink), self.sinks
        return sinks.index(node) if node in sinks else -1

    def add_sinks(self, sinks: Iterable[Node | Output]) -> None:
        """Add layers that run for their side effects, such as Assign."""
        self._edit().sinks += [_sink(sink) for sink in sinks]

    def remove_sink(self, sink: Node | Output) -> None:
        """Remove a layer that assigns a variable. Other layers are ignored."""
        _remove(self._edit().sinks, _node(sink))

    @property
    def variables(self) -> list[Variable]:
        """The variables of the model."""
        variables = {variable.info.variable_id: variable for variable in self._declared_variables}
        for id, type in variables_of(self._graph, self._values).items():
            if id not in variables:
                variables[id] = Variable(VariableInfo.of(id, type.element, type.shape))
                self._declared_variables.append(variables[id])
        return list(variables.values())

    def get_variables(self) -> list[Variable]:
        """Return the variables of the model."""
        return self.variables

    def get_variable_by_id(self, variable_id: str) -> Variable | None:
        """Return the variable with an id, or None if there is none."""
        checked(variable_id, str)
        return next(
            (variable for variable in self.variables if variable.info.variable_id == variable_id), None
        )

    def add_variables(self, variables: Iterable[Variable]) -> None:
        """Add variables."""
        self._declared_variables += [checked(variable, Variable) for variable in variables]

    def remove_variable(self, variable: Variable) -> None:
        """Remove a variable, but not the layers that read and assign it."""
        checked(variable, Variable)
        self._declared_variables = [
            declared for declared in self._declared_variables if declared is not variable
        ]

    # Shapes.

    @property
    def dynamic(self) -> bool:
        """Whether any shape is dynamic."""
        return self.is_dynamic()

    def is_dynamic(self) -> bool:
        """Return whether any shape is dynamic."""
        return any(output._type.shape.is_dynamic for node in self.get_ops() for output in node.outputs())

    def reshape(
        self,
        shapes: ShapeLike | PortShapes,
        variables_shapes: Mapping[str, ShapeLike] | None = None,
    ) -> None:
        """Change the shapes of inputs and variables, and infer all types again.

        Args:
            shapes: the shape of the only input, or shapes by index, name or port. A shape is a
                `PartialShape`, its text (``"?,3,1..8"``), or a sequence of lengths (-1 for any).
            variables_shapes: shapes of variables by their ids.

        Raises:
            ValidationError: if a shape is invalid for a layer; the model is then unchanged.
        """
        by_port = shapes if isinstance(shapes, Mapping) else {None: _as_shape(shapes)}
        nodes = self._nodes()
        parameters = dict(self._parameters or {})
        parameters |= {self._port(port).layer: type for port, type in self._parse_shapes(by_port)}
        graph = self._reshape_variables(variables_shapes or {})
        report = Diagnostics(self.limits.findings)
        with within(self.limits):
            values = check_shapes(graph, report, self._all_parameters(parameters))
        if report.errors:
            raise ValidationError.of(report.errors, report.more)
        if nodes.is_edited:
            self._reshape_nodes(graph, values)
        else:
            self._parameters, nodes.graph, nodes.values = parameters, graph, values
            nodes.is_sound = nodes.is_sound and not len(report)
            nodes.follow()

    def _reshape_nodes(self, graph: Graph, values: Inferred) -> None:
        """Apply the new shapes to the Parameters and ReadValues that exist as nodes."""
        for id, node in self._table.created.items():
            if node.layer.type in ("Parameter", "ReadValue"):
                node._edit()
                node.layer = replace(node.layer, op=graph[id].op, attributes=graph[id].attributes)
            if node.layer.type == "Parameter":
                node._declare(values[Port(id, 0)].type)
        self._update_nodes()

    def _parse_shapes(self, shapes: PortShapes) -> Iterator[tuple[Output, TensorType]]:
        inputs = self.inputs
        for key, lengths in shapes.items():
            port = find_port(inputs, key, "input")
            yield port, TensorType(port.element_type, _as_shape(lengths))

    def _reshape_variables(self, shapes: Mapping[str, ShapeLike]) -> Graph:
        variables = variables_of(self._graph, self._values)
        for name in shapes:
            if not isinstance(name, str):
                message = f"the id of a variable must be a string, got {name!r}"
                raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
            if name not in variables:
                raise unknown_name("variable", name, variables)
        checked_shapes = {name: _as_shape(lengths) for name, lengths in shapes.items()}
        return with_variables(self._graph, checked_shapes) if shapes else self._graph

    @property
    def _parameter_types(self) -> dict[int, TensorType]:
        """The types of the Parameters, by layer id."""
        nodes = self._nodes()
        ports = [Port(layer.id, 0) for layer in nodes.graph.of_type("Parameter")]
        # The output port of a Parameter may have been rejected in reading.
        return {port.layer: nodes.values[port].type for port in ports if port in nodes.values}

    def _all_parameters(self, parameters: Mapping[int, TensorType]) -> dict[int, Value]:
        types = {**self._parameter_types, **parameters}
        return {layer: Value(type) for layer, type in types.items()}

    def constraints(
        self, confirm: bool = True, seconds: float | None = None, evaluations: int | None = None
    ) -> Constraints:
        """Find the constraints on the dynamic dims of the inputs, such as ``height is a multiple of 32``.

        They are found by shape inference with different lengths, which works for any operation.

        >>> import numpy as np
        >>> import ir_runtime as ov
        >>> from ir_runtime import opset1
        >>> x = opset1.parameter([1, -1, 4], np.float32, name="x")
        >>> model = ov.Model([opset1.reshape(x, np.int64([1, -1, 8]), False)], [x])
        >>> print(model.constraints(confirm=False))
        seq is a multiple of 2

        Args:
            confirm: also run the model with random inputs, to confirm the constraints.
            seconds: the CPU time for these runs; by default 1 to 20, depending on the size of the files.
            evaluations: the number of layers to infer at most; by default, it depends on the size of the files. Dims
                not settled by then are in ``undecided``.
        """
        from ..analysis.constraints.confirming import confirm_by_running
        from ..analysis.constraints.probing import Budget
        from ..analysis.constraints.solver import find_constraints

        graph, parameters, size = self._graph, self._parameter_types, self._document.size
        with within(self.limits):
            budget = Budget.of(size) if evaluations is None else Budget(evaluations=evaluations)
            constraints = find_constraints(graph, self._values, parameters, budget)
            if not confirm:
                return constraints
            if seconds is None:
                seconds = min(_MIN_SECONDS + size / _BYTES_PER_SECOND, _MAX_SECONDS)
            return confirm_by_running(constraints, graph, parameters, self._compile_run, seconds)

    # Running.

    @property
    def limits(self) -> Limits:
        """The resource limits with which the model was read, which also apply to compiling and running."""
        return self._document.limits

    def evaluate(
        self,
        output_tensors: Sequence[Tensor],
        input_tensors: Sequence[Tensor],
        evaluation_context: object = None,
    ) -> bool:
        """Compute the outputs in the reference interpreter, and store them in tensors, whose shapes are set.

        Args:
            output_tensors: a tensor for each output.
            input_tensors: a tensor for each input.
            evaluation_context: accepted for compatibility and ignored.

        Returns:
            True, as every operation can be computed.
        """
        arrays = self._compile("reference", self.limits)(list(input_tensors))
        for tensor, array in zip(output_tensors, arrays, strict=True):
            tensor.copy_from(array)
        return True

    def _compile_run(self) -> Run:
        """Compile the model with default settings, and return a function that runs it under tight limits."""
        limits = self.limits
        lower = {name: min(getattr(limits, name), limit) for name, limit in _CONFIRMING.items()}
        return self._compile(None, replace(limits, **lower))

    def _compile(self, backend: str | None, limits: Limits) -> Callable[[Sequence[object]], list[Array]]:
        """Compile the model for a backend, and return a function from inputs to outputs."""
        from ..backends import load
        from ..compiler.compile import compile_plan
        from .feeding import bind

        model = self._runnable()
        name, chain = load(backend)
        inputs, outputs = model._const_inputs(), [output._port for output in model._const_outputs()]
        model._document.weights.check()
        plan = compile_plan(model._graph, model._values, outputs, chain, name != "reference", limits)
        return lambda values: plan.run(bind(inputs, values), limits=limits)

    def _runnable(self, f16: bool = False) -> Model:
        """Return a copy for compilation, with ports that declare the inferred types.

        Raises:
            ValidationError: if the model has errors.
        """
        model = self.raise_if_invalid(COMPILED_WITH)._variant()
        model._correct()
        if f16:
            model._narrow()
        return model

    def _compute_also(self, outputs: object) -> None:
        """Make the given tensors additional outputs of runs, without adding Result layers for them."""
        present = {output._port for output in self._const_outputs()}
        self._added += [port for port in self._ports(_as_list(outputs)) if port not in present]

    def _const_inputs(self) -> list[ConstOutput]:
        """Return the inputs as ports of a compiled model, with their current types."""
        nodes = self._nodes()
        ports = (Port(layer.id, 0) for layer in nodes.graph.of_type("Parameter"))
        return [_const(nodes, port, nodes.original(port.layer)) for port in ports]

    def _const_outputs(self) -> list[ConstOutput]:
        """Return the outputs as ports of a compiled model, with their current types."""
        nodes = self._nodes()
        results = nodes.graph.of_type("Result")
        ports = [(port, nodes.original(layer.id)) for layer in results for port in nodes.graph.reads(layer)]
        added = [(port, nodes.original(port.layer)) for port in self._added]
        return [_const(nodes, port, node) for port, node in (*ports, *added) if port in nodes.values]

    def _narrow(self) -> None:
        """Convert f32 computation to f16, except for inputs and outputs."""
        from ..compiler.narrow import narrow

        parameters = self._all_parameters(self._parameters or {})
        graph = narrow(self._graph, self._values)
        self._replace_graph(graph, infer(graph, Diagnostics(), parameters))

    def _correct(self) -> None:
        """Replace declared types that differ from the inferred ones."""
        if self._is_contradicted:
            self._replace_graph(correct_types(self._graph, self._values), self._values)

    # Copies and files.

    def clone(self) -> Model:
        """Return a new model over the same graph and constants."""
        nodes, other = self._nodes(), self._variant()
        other._table = GraphNodes(nodes.graph, nodes.values)
        other._table.weights, other._table.is_sound = self._document.weights, nodes.is_sound
        return other

    def _variant(self) -> Model:
        """Return a copy with the same nodes, which later changes of nodes do not affect."""
        nodes, other = self._nodes(), type(self).__new__(type(self))
        vars(other).update(vars(self))
        other._table = GraphNodes(nodes.graph, nodes.values, origin=nodes.origin or nodes)
        other._members, other._refreshed, other._added = None, None, list(self._added)
        other._declared_variables = list(self._declared_variables)
        return other

    def __copy__(self) -> Model:
        raise TypeError("a model cannot be copied in part: use copy.deepcopy, or clone")

    def __deepcopy__(self, memo: object) -> Model:
        return self.clone()

    def __reduce__(self) -> tuple[Callable[..., Model], tuple[bytes, bytes, Limits]]:
        from ..io.writer import write

        xml, weights = BytesIO(), BytesIO()
        write(self._content(), xml, weights)
        return _restore, (xml.getvalue(), weights.getvalue(), self.limits)

    def _content(self, allowed: Collection[str] = SAVED_WITH) -> Content:
        """Return the content to be written to files.

        Args:
            allowed: the codes of errors that do not prevent writing.

        Raises:
            ValidationError: if the model is not valid.
        """
        from ..io.writer import Content, add_results

        model = self.raise_if_invalid(allowed).clone()
        model._correct()
        graph = add_results(model._graph, self._added)
        is_declared = self._parameters is None  # the ports still declare the shapes of the file
        return Content(self.friendly_name, graph, self._values, self._rt_info, is_declared)

    def _get_raw_address(self) -> int:
        """Return a number that identifies the model during its lifetime. Private in OpenVINO too, but programs call it."""
        return id(self)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *reason: object) -> None:
        """Do nothing: there are no resources to release."""

    def __repr__(self) -> str:
        return f"<Model: {self.friendly_name!r}\n{show_ports(self.inputs, self.outputs)}>"


class ModelReport(Diagnostics):
    """The findings about a model. Calling it returns an HTML page with the graph and all layers.

    >>> import ir_runtime
    >>> model = ir_runtime.read_fragment('<layer id="0" name="e" type="Exp" version="opset1">'
    ...     '<input><port id="0"><dim>1</dim></port></input><output><port id="1"/></output></layer>')
    >>> len(model.report), model.report().html.startswith("<!doctype html>")
    (0, True)
    """

    __slots__ = ("_model",)

    def __init__(self, model: Model, findings: Diagnostics) -> None:
        # Shared rather than copied, so that findings added later are included.
        self.__dict__ = findings.__dict__
        self._model = model

    def _repr_html_(self) -> str:
        from ..report import page

        shown = page(source_of(self._model, constraints=False), quick=True)
        return shown._repr_html_() + _collapse("as a table", super()._repr_html_())

    def __call__(
        self,
        path: str | os.PathLike[str] | None = None,
        measures: Measures | None = None,
        *,
        constraints: bool = True,
        old: OldModel | None = None,
        values: int | None = None,
    ) -> Page:
        """Return a self-contained HTML page about the model.

        Args:
            path: the file to write, if given.
            measures: measurements from `ir_runtime.debug.measure`.
            constraints: whether to find the constraints on the inputs, which may take a few seconds.
            old: a model to compare with this one, from `ir_runtime.debug.old_model`.
            values: the size in bytes up to which the page includes the values of a constant. By default, it
                includes those of a few small ones.
        """
        from ..report import page

        result = page(source_of(self._model, constraints), measures, old, values)
        if path is not None:
            result.save(path)
        return result


def source_of(model: Model, constraints: bool = True) -> Source:
    """Return the data for a report of a model."""
    from ..report import Source

    with_constraints = (
        constraints and model.report.ok and any(t.shape.is_dynamic for t in model._parameter_types.values())
    )
    document = model._document
    return Source(
        graph=model._graph,
        values=model._values,
        types=model._parameter_types,
        report=model.report,
        constraints=model.constraints(confirm=False) if with_constraints else None,
        file=str(document.file),
        name=model.friendly_name,
        version=document.version,
    )


def model_html(model: Model) -> str:
    """Return the HTML that notebooks show for a model: its report, and tables for viewers without frames."""
    from ..report import page, summary

    source = source_of(model, constraints=False)
    return page(source, quick=True)._repr_html_() + _collapse("as tables", summary(source))


def _collapse(title: str, inside: str) -> str:
    from .._util.markup import element

    return element("details", element("summary", text=title), inside)


def _restore(xml: bytes, weights: bytes, limits: Limits) -> Model:
    """Unpickle a model."""
    from ..io.reader.model import load

    report = Diagnostics(limits.findings)
    with within(limits):
        (document,) = load(xml, weights, report, limits)
        return Model._read(document, report).raise_if_invalid(SAVED_WITH)


def _const(nodes: GraphNodes, port: Port, node: Node) -> ConstOutput:
    is_result = node.layer.type == "Result"
    output = Output(node, 0 if is_result else port.number)
    return ConstOutput(node, output.index, port, nodes.values[port].type, output._names)


def _ids(graph: Graph, type: str) -> list[int]:
    return [layer.id for layer in graph.of_type(type)]


def _sinks(graph: Graph) -> list[Layer]:
    """Return the layers that assign variables."""
    return [layer for layer in graph.layers.values() if layer.op is not None and layer.op.has_side_effects]


def _remove(nodes: list[Node], node: Node) -> None:
    """Remove all occurrences of a node from a list in place."""
    nodes[:] = [other for other in nodes if other is not node]


def _node(sink: object) -> Node:
    return sink.node if isinstance(sink, Output) else checked(sink, Node)


def _sink(sink: object) -> Node:
    node = _node(sink)
    if node.layer.op is None or not node.layer.op.has_side_effects:
        raise ArgumentTypeError(
            f"expected a layer that assigns a variable, got {node!r}", code=Code.BAD_REQUEST
        )
    return node


def _as_shape(lengths: ShapeLike) -> shape.PartialShape:
    try:
        if lengths is None or isinstance(lengths, Mapping):
            raise TypeError("it has no lengths")
        return shape.PartialShape(lengths)
    except (TypeError, ValueError) as reason:
        kind = ArgumentTypeError if isinstance(reason, TypeError) else InputError
        raise kind(
            f"{lengths!r} is not a shape: {reason}", hint='expected a shape such as "?,3,1..8" or [-1, 3]'
        ) from None


def _as_list(outputs: Any) -> list[Any]:
    """Return output selectors as a list, also for a single one.

    Raises:
        ArgumentTypeError: if an item is not a selector.
    """
    items = [outputs] if _selects_output(outputs) or not isinstance(outputs, Iterable) else list(outputs)
    for item in items:
        if not _selects_output(item):
            message = f"{item!r} is not an output: expected a name, (layer name, output) or a port"
            raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
    return items


def _selects_output(item: object) -> bool:
    is_numbered = isinstance(item, tuple) and [*map(type, item)] == [str, int]
    return isinstance(item, str | Output | Port) or is_numbered


def _list_others(errors: Sequence[Diagnostic], count: int) -> str:
    """Return a clause that lists the operations of ``count`` other layers, which are unknown; empty if there are none."""
    operations = sorted({e.where.operation for e in errors if e.where})
    return f"; {count} more layers have unknown operations: {', '.join(operations)}" if operations else ""


# The arguments of ``Model``, in every order that OpenVINO accepts.

_NAME_NUMBERS = itertools.count()
_LISTS = ("results", "sinks", "parameters", "variables")


def _empty_document(name: str) -> Document:
    """Return the document of a model that was not read from a file."""
    return Document(Graph((), ()), name or f"Model{next(_NAME_NUMBERS)}", "", 11, {}, Weights())


def _parse_arguments(args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Members, list[Variable], str]:
    """Return the members of the model, its variables and its name.

    Raises:
        TypeError: if the arguments do not form a model.
    """
    named = dict(kwargs)
    lists = list(args)
    if lists and isinstance(lists[-1], str):
        named["name"] = lists.pop()
    if "result" in named:
        named["results"] = named.pop("result")
    named |= _name_positional(lists, named)
    unknown = named.keys() - {*_LISTS, "name"}
    missing = [name for name in ("results", "parameters") if name not in named]
    if unknown or missing:
        raise TypeError(
            _usage(" and ".join([*(f"unknown {n!r}" for n in unknown), *(f"no {n}" for n in missing)]))
        )
    members = Members(
        [_require_type(node, Parameter, "parameters") for node in named.get("parameters", ())],
        _as_results(named["results"]),
        [_sink_node(sink) for sink in named.get("sinks", ())],
    )
    variables = [_require_type(variable, Variable, "variables") for variable in named.get("variables", ())]
    return members, variables, named.get("name", "")


def _name_positional(lists: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Name the positional arguments: sinks and variables are optional."""
    free = [name for name in _LISTS if name not in named]
    if len(lists) == len(free) or not lists:
        return dict(zip(free, lists, strict=False))
    if len(lists) > len(free):
        raise TypeError(_usage(f"{len(lists)} lists"))
    order = ["results", "parameters"]
    if len(lists) == 3:
        order = ["results", "parameters", "variables"] if _has_variables(*lists[1:]) else list(_LISTS[:3])
    return dict(zip((name for name in order if name in free), lists, strict=False))


def _has_variables(second: Sequence[object], third: Sequence[object]) -> bool:
    if third:
        return isinstance(third[0], Variable)
    return bool(second) and all(isinstance(parameter, Parameter) for parameter in second)


def _as_results(ends_or_node: Node | Output | Iterable[Node | Output]) -> list[Node]:
    """Return Results: given ones, also by their outputs, and new ones for other outputs."""
    if isinstance(ends_or_node, Node) and not isinstance(ends_or_node, Result):
        ends_or_node = ends_or_node.outputs()
    ends = [ends_or_node] if isinstance(ends_or_node, Node | Output) else ends_or_node
    return list(map(_as_result, ends))


def _as_result(end: Node | Output) -> Node:
    node = end.node if isinstance(end, Output) else end
    return node if isinstance(node, Result) else Result.with_names(_first_output(end))


def _first_output(end: object) -> Output:
    if isinstance(end, Output):
        return end
    return _require_type(end, Node, "results").output(0)


def _sink_node(sink: object) -> Node:
    return sink.node if isinstance(sink, Output) else _require_type(sink, Node, "sinks")


_T = TypeVar("_T")


def _require_type(value: object, kind: type[_T], what: str) -> _T:
    if not isinstance(value, kind):
        raise TypeError(_usage(f"{type(value).__name__} among the {what}"))
    return value


def _usage(actual: str) -> str:
    return f"expected Model(results, parameters, name='') or Model(results, sinks, parameters, variables, name=''), got {actual}"


def _name_ends(members: Members) -> None:
    """Name unnamed tensors of Parameters and Results after their layers, as OpenVINO does."""
    for parameter in members.parameters:
        if not parameter._names_of(0):
            parameter.output(0).set_names([parameter.friendly_name])
    for result in members.results:
        if not result._names_of(0):
            source = result.input_value(0)
            result.output(0).set_names(source._names or [result.friendly_name])
