"""Variables: check the types that are assigned, and change their shapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ..codes import Code
from ..diagnostics import Diagnostics
from ..errors import InputError
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from ..ops.infrastructure.state import ReadValue

__all__ = ["check_assigned", "variables_of", "with_variables"]


def variables_of(graph: Graph, values: Mapping[Port, Value]) -> dict[str, TensorType]:
    """Return the type of each variable, that of its first ReadValue, in the order of the file."""
    found: dict[str, TensorType] = {}
    for layer in _known_layers(graph, "ReadValue"):
        value = values.get(Port(layer.id, 0))
        if value is not None:
            found.setdefault(_id(layer), value.type)
    return found


def check_assigned(graph: Graph, values: Mapping[Port, Value], report: Diagnostics) -> None:
    """Report assignments of a type that the variable cannot hold."""
    held = variables_of(graph, values)
    for layer, given in _assigned(graph, values):
        variable = held.get(_id(layer))
        if variable is None or _fits(given, variable):
            continue
        report.error(
            Code.CONTRADICTION,
            f"assigns {given} to variable {_id(layer)!r}, which is read as {variable}",
            layer.where,
            "a variable of other shapes needs a variable_shape that allows them",
        )


def _assigned(graph: Graph, values: Mapping[Port, Value]) -> Iterator[tuple[Layer, TensorType]]:
    for layer in _known_layers(graph, "Assign"):
        for source in graph.sources(layer)[:1]:
            if source is not None and source in values:
                yield layer, values[source].type


def _fits(given: TensorType, variable: TensorType) -> bool:
    same = ElementType.dynamic in (given.element, variable.element) or given.element is variable.element
    return same and given.shape.compatible(variable.shape)


def with_variables(graph: Graph, shapes: Mapping[str, PartialShape]) -> Graph:
    """Return the graph with other shapes of variables, by their ids.

    Raises:
        InputError: if a variable has the shape of its initial value, as before version 6.
    """
    layers = [_reshaped(la, shapes) if la.type == "ReadValue" else la for la in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _reshaped(layer: Layer, shapes: Mapping[str, PartialShape]) -> Layer:
    if layer.op is None or (shape := shapes.get(_id(layer))) is None:
        return layer
    if not isinstance(layer.op, ReadValue):
        raise InputError(
            f"variable {_id(layer)!r} is read by {layer}, and so has the shape of its initial value",
            code=Code.BAD_REQUEST,
            where=layer.where,
            hint="reshape the inputs from which the initial value follows",
        )
    op = ReadValue(**{**layer.op.attributes(), "variable_shape": shape})
    said = {**layer.attributes, "variable_shape": str(shape).removeprefix("[").removesuffix("]")}
    return replace(layer, op=op, attributes=said)


def _known_layers(graph: Graph, type: str) -> list[Layer]:
    return [layer for layer in graph.of_type(type) if layer.op is not None]


def _id(layer: Layer) -> str:
    return layer.attributes["variable_id"]
