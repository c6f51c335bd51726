"""List the variables of a graph, and change their shapes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ..codes import Code
from ..errors import InputError
from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from ..ops.infrastructure.state import ReadValue

__all__ = ["variable_id", "variables_of", "with_variables"]


def variables_of(graph: Graph, values: Mapping[Port, Value]) -> dict[str, TensorType]:
    """Return the type of each variable, that of its first ReadValue, in file order."""
    types: dict[str, TensorType] = {}
    for layer in graph.of_type("ReadValue"):
        value = values.get(Port(layer.id, 0))
        if layer.op is not None and value is not None:
            types.setdefault(variable_id(layer), value.type)
    return types


def with_variables(graph: Graph, shapes: Mapping[str, PartialShape]) -> Graph:
    """Return the graph with other shapes of variables, by their ids.

    Raises:
        InputError: if a variable has the shape of its initial value, as before version 6.
    """
    layers = [_reshape(la, shapes) if la.type == "ReadValue" else la for la in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _reshape(layer: Layer, shapes: Mapping[str, PartialShape]) -> Layer:
    if layer.op is None or (shape := shapes.get(variable_id(layer))) is None:
        return layer
    if not isinstance(layer.op, ReadValue):
        raise InputError(
            f"variable {variable_id(layer)!r} is read by {layer}, and so has the shape of its initial value",
            code=Code.BAD_REQUEST,
            where=layer.where,
            hint="reshape the inputs from which the initial value follows",
        )
    op = ReadValue(**{**layer.op.attributes(), "variable_shape": shape})
    attributes = {**layer.attributes, "variable_shape": str(shape).removeprefix("[").removesuffix("]")}
    return replace(layer, op=op, attributes=attributes)


def variable_id(layer: Layer) -> str:
    """Return the id of the variable that a ReadValue or an Assign names."""
    return layer.attributes["variable_id"]
