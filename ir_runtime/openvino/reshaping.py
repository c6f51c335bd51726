"""Change the shapes of the inputs and variables of models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

from .._util.wrong_arguments import ArgumentTypeError
from ..analysis.infer import Inferred, infer
from ..analysis.state import check_assigned, variables_of, with_variables
from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import InputError, ValidationError
from ..ir.graph import Graph, Port
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from ..limits import Limits, within
from .member_changes import MemberChanges
from .names import find_port, unknown_name
from .nodes import Output
from .shapes import ShapeLike

__all__ = ["PortShapes", "Reshaping"]

PortShapes: TypeAlias = "Mapping[Any, ShapeLike]"
"""Shapes by index, name or port; ``Any``, since a mapping to them by one kind of keys is not one by any kind."""


class Reshaping(MemberChanges):
    """A model whose inputs may be given other shapes than its Parameters declare.

    >>> import numpy as np
    >>> import ir_runtime as ov
    >>> from ir_runtime import opset1
    >>> x = opset1.parameter([-1, 3], np.float32, name="x")
    >>> model = ov.Model([opset1.relu(x)], [x])
    >>> model.reshape({"x": [2, 3]})
    >>> model.input().shape, model.limits.rank
    (<Shape: [2,3]>, 64)
    >>> copy = model.clone()
    >>> copy.add_outputs("x")
    [<Output: names[x] shape[2,3] type: f32>]
    >>> result = ov.Tensor(ov.Type.f32, [])
    >>> model.evaluate([result], [ov.Tensor(np.float32([[-1, 0, 1], [2, -2, 0]]))]), result.data
    (True, array([[0., 0., 1.],
           [2., 0., 0.]], dtype=float32))
    """

    _parameters: dict[int, TensorType] | None
    """Types that take the place of what Parameters declare; None until the model is reshaped."""

    @property
    def limits(self) -> Limits:
        """Those it was read with; compiling and running it are held to them, too."""
        return self._document.limits

    def _port(self, output: Output) -> Port:
        found = self._nodes().port(output)
        if found is None:
            raise InputError(f"{output!r} is not an output of a layer of the model", code=Code.NO_SUCH_NAME)
        return found

    def reshape(
        self,
        shapes: ShapeLike | PortShapes,
        variables_shapes: Mapping[str, ShapeLike] | None = None,
    ) -> None:
        """Give inputs and variables other shapes, and infer everything again.

        Args:
            shapes: the shape of the only input, or shapes by index, name or port. A shape is a
                `PartialShape`, its text (``"?,3,1..8"``), or a sequence of lengths (-1 for any).
            variables_shapes: shapes of variables by their ids.

        Raises:
            ValidationError: if a layer refuses; the model is then as before.
        """
        given = shapes if isinstance(shapes, Mapping) else {None: _shape(shapes)}
        nodes = self._nodes()
        parameters = dict(self._parameters or {})
        parameters |= {self._port(port).layer: type for port, type in self._reshaped(given)}
        graph = self._with_variables(variables_shapes or {})
        report = Diagnostics(self.limits.findings)
        with within(self.limits):
            values = infer(graph, report, self._all_parameters(parameters), explain=True)
        check_assigned(graph, values, report)
        if report.errors:
            raise ValidationError.of(report.errors, report.more)
        if nodes.is_settled:
            self._reshape_nodes(graph, values)
        else:
            self._parameters, nodes.graph, nodes.values = parameters, graph, values
            nodes.is_sound = nodes.is_sound and not len(report)
            nodes.follow()

    def _reshape_nodes(self, graph: Graph, values: Inferred) -> None:
        """Give the Parameters and variables of a model that was changed other shapes."""
        for id, node in self._table.made.items():
            if node.layer.type in ("Parameter", "ReadValue"):
                node._edit()
                node.layer = replace(node.layer, op=graph[id].op, attributes=graph[id].attributes)
            if node.layer.type == "Parameter":
                node._declare(values[Port(id, 0)].type)
        self._update_nodes()

    @property
    def _parameter_types(self) -> dict[int, TensorType]:
        nodes = self._nodes()
        ports = [Port(layer.id, 0) for layer in nodes.graph.of_type("Parameter")]
        # A file may declare a Parameter whose output port is refused.
        return {port.layer: nodes.values[port].type for port in ports if port in nodes.values}

    def _with_variables(self, given: Mapping[str, ShapeLike]) -> Graph:
        known = variables_of(self._graph, self._values)
        for name in given:
            if not isinstance(name, str):
                message = f"the id of a variable must be a string, got {name!r}"
                raise ArgumentTypeError(message, code=Code.BAD_REQUEST)
            if name not in known:
                raise unknown_name("variable", name, known)
        shapes = {name: _shape(shape) for name, shape in given.items()}
        return with_variables(self._graph, shapes) if shapes else self._graph

    def _reshaped(self, given: PortShapes) -> Iterator[tuple[Output, TensorType]]:
        inputs = self.inputs
        for key, shape in given.items():
            port = find_port(inputs, key, "input")
            yield port, TensorType(port.element_type, _shape(shape))

    def _all_parameters(self, parameters: Mapping[int, TensorType]) -> dict[int, Value]:
        types = {**self._parameter_types, **parameters}
        return {layer: Value(type) for layer, type in types.items()}


def _shape(given: ShapeLike) -> PartialShape:
    try:
        if given is None or isinstance(given, Mapping):
            raise TypeError("it has no lengths")
        return PartialShape(given)
    except (TypeError, ValueError) as reason:
        kind = ArgumentTypeError if isinstance(reason, TypeError) else InputError
        raise kind(
            f"{given!r} is not a shape: {reason}", hint='expected a shape such as "?,3,1..8" or [-1, 3]'
        ) from None
