"""Add and remove the inputs, outputs, variables and sinks of models."""

from __future__ import annotations

from collections.abc import Iterable

from .._util.wrong_arguments import ArgumentTypeError, OutOfRangeError, checked
from ..analysis.state import variables_of
from ..codes import Code
from .building.arguments import as_results
from .building.ends import Parameter, Result
from .building.variables import Variable, VariableInfo
from .editing import Editing
from .nodes import Node, Output

__all__ = ["MemberChanges"]


class MemberChanges(Editing):
    """A model whose inputs, outputs, variables and sinks can be changed.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset6
    >>> x, y = opset6.parameter([2], np.float32, name="x"), opset6.parameter([2], np.float32, name="y")
    >>> model = ov.Model([opset6.relu(x)], [x])
    >>> more = opset6.result(opset6.exp(y))
    >>> model.add_parameters([y])
    >>> model.add_results([more])
    >>> len(model.inputs), len(model.outputs)
    (2, 2)
    >>> model.remove_result(more)
    >>> model.remove_parameter(y)
    >>> model.replace_parameter(0, opset6.parameter([5], np.float32, name="z"))
    >>> model.validate_nodes_and_infer_types()
    >>> model.get_output_shape(0)
    <Shape: [5]>

    Variables are read by one layer, and assigned by another, which is a sink:

    >>> before = opset6.read_value(np.zeros(5, np.float32), "total", "f32", [5])
    >>> after = opset6.assign(opset6.add(before, model.input()), "total")
    >>> model.add_sinks([after])
    >>> model.get_sinks() == model.sinks, model.get_sink_index(after)
    (True, 0)
    >>> [each.info.variable_id for each in model.get_variables()], model.get_variable_by_id("count")
    (['total'], None)
    >>> variable = ov.op.util.Variable(ov.op.util.VariableInfo.of("count", ov.Type.i32, ov.PartialShape([1])))
    >>> model.add_variables([variable])
    >>> len(model.variables)
    2
    >>> model.remove_variable(variable)
    >>> model.remove_sink(after)
    """

    def get_sinks(self) -> list[Node]:
        """Return the layers that assign variables."""
        return self.sinks

    def get_sink_index(self, sink: Node | Output) -> int:
        """Return the position of a sink, or -1."""
        node, sinks = _node(sink), self.sinks
        return sinks.index(node) if node in sinks else -1

    @property
    def variables(self) -> list[Variable]:
        """The variables of the model."""
        found = {each.info.variable_id: each for each in self._declared_variables}
        for id, type in variables_of(self._graph, self._values).items():
            if id not in found:
                found[id] = Variable(VariableInfo.of(id, type.element, type.shape))
                self._declared_variables.append(found[id])
        return list(found.values())

    def get_variables(self) -> list[Variable]:
        """Return the variables of the model."""
        return self.variables

    def get_variable_by_id(self, variable_id: str) -> Variable | None:
        """Return the variable of that id; ``None`` if there is none."""
        checked(variable_id, str)
        return next((each for each in self.variables if each.info.variable_id == variable_id), None)

    def add_variables(self, variables: Iterable[Variable]) -> None:
        """Add variables."""
        self._declared_variables += [checked(each, Variable) for each in variables]

    def remove_variable(self, variable: Variable) -> None:
        """Remove a variable; the layers that read and assign it stay."""
        checked(variable, Variable)
        self._declared_variables = [each for each in self._declared_variables if each is not variable]

    def add_results(self, results: Iterable[Node | Output]) -> None:
        """Add outputs: Results, or nodes and outputs that they are to take."""
        self._edit().results += as_results(results)

    def remove_result(self, result: Node) -> None:
        """Remove an output; one that the model does not have is ignored, as in OpenVINO."""
        _remove(self._edit().results, checked(result, Result))

    def add_parameters(self, parameters: Iterable[Node]) -> None:
        """Add inputs."""
        self._edit().parameters += [checked(each, Parameter) for each in parameters]

    def remove_parameter(self, parameter: Node) -> None:
        """Remove an input, which nothing may read any more when the model is used; others are ignored."""
        _remove(self._edit().parameters, checked(parameter, Parameter))

    def replace_parameter(self, parameter_index: int, parameter: Node) -> None:
        """Let all layers that read an input read another one, which takes its place and its names.

        Args:
            parameter_index: the index of the input.
            parameter: the Parameter that replaces it.

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

    def add_sinks(self, sinks: Iterable[Node | Output]) -> None:
        """Add layers that must run though nothing reads them."""
        self._edit().sinks += [_sink(each) for each in sinks]

    def remove_sink(self, sink: Node | Output) -> None:
        """Remove a layer that assigns a variable; one that the model does not have is ignored."""
        _remove(self._edit().sinks, _node(sink))


def _remove(nodes: list[Node], node: Node) -> None:
    """Remove a node wherever it is in the list."""
    nodes[:] = [each for each in nodes if each is not node]


def _node(sink: object) -> Node:
    return sink.node if isinstance(sink, Output) else checked(sink, Node)


def _sink(sink: object) -> Node:
    node = _node(sink)
    if node.layer.op is None or not node.layer.op.has_side_effects:
        raise ArgumentTypeError(
            f"expected a layer that assigns a variable, got {node!r}", code=Code.BAD_REQUEST
        )
    return node
