"""The shape of every port of a model, with names for dynamic lengths."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from .._util.deadline import check
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .constraints.constraint import Constraints, Dim
from .constraints.symbols import label
from .infer import Inferred
from .named_dims import NamedDims

__all__ = ["OpenLength", "PortShape", "Shapes", "open_lengths", "shapes_in"]


@dataclass(frozen=True, slots=True)
class OpenLength:
    """A dynamic length of an input: its name, and the declared range."""

    input: str
    axis: int
    name: str
    bounds: str

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PortShape:
    """The shape of a port."""

    line: int | None
    layer: str
    operation: str
    port: int
    is_input: bool
    type: str
    shape: tuple[int | str, ...] | None
    """Numbers, and text such as ``batch``, ``height/2``, ``1..8`` or ``?``; ``None`` if not even the rank is known."""
    declared: str | None = None
    """The declared shape, if it differs."""
    is_declared: bool = False
    """Whether the shape is the declared one, because inferring it needs the missing weights."""

    @property
    def text(self) -> str:
        """The shape in brackets."""
        return "[...]" if self.shape is None else f"[{','.join(map(str, self.shape))}]"

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Shapes:
    """The dynamic lengths of a model's inputs, and the shapes of all ports, inputs first."""

    inputs: tuple[OpenLength, ...]
    ports: tuple[PortShape, ...]


def shapes_in(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    constraints: Constraints | None = None,
) -> Shapes:
    """Return the shape of every port of a graph and its bodies.

    Args:
        graph: the layers to list, with their bodies.
        values: the inferred values.
        parameters: the type of each Parameter, by layer.
        constraints: the constraints on the inputs, for names and formulas.
    """
    dims = NamedDims(graph, values, parameters, constraints or Constraints())
    return Shapes(open_lengths(dims), tuple(_rows(dims, graph, dims.values, True)))


def open_lengths(dims: NamedDims) -> tuple[OpenLength, ...]:
    """Return the dynamic lengths of the inputs, in order."""
    return tuple(
        OpenLength(label(dims.graph[layer]), axis, dims.names[Dim(layer, axis)], str(dim))
        for layer, type in dims.parameters.items()
        for axis, dim in enumerate(type.shape if type.shape.rank is not None else ())
        if dim.is_dynamic
    )


def _rows(
    named: NamedDims, graph: Graph, values: Mapping[Port, Value], outermost: bool
) -> Iterator[PortShape]:
    for layer in sorted(graph, key=lambda la: la.type != "Parameter"):
        check(layer.where)
        for spec, source in zip(layer.inputs, graph.sources(layer), strict=True):
            if source is not None and source in values:
                yield _row(layer, spec, values, source, True, _dims(named, source, values[source], outermost))
        for port, spec in zip(layer.output_ports, layer.outputs, strict=True):
            if port in values:
                yield _row(layer, spec, values, port, False, _dims(named, port, values[port], outermost))
        for body in layer.bodies():
            inner = values.bodies.get((layer.id, body.name)) if isinstance(values, Inferred) else None
            yield from _rows(named, body.graph, inner or {}, False)


def _dims(named: NamedDims, port: Port, value: Value, outermost: bool) -> tuple[int | str, ...] | None:
    if value.shape.rank is None:
        return None
    counts = (named.length(port, axis, d, outermost) for axis, d in enumerate(value.shape))
    return tuple(
        str(dim) if count is None else count if isinstance(count, int) else str(count)
        for dim, count in zip(value.shape, counts, strict=True)
    )


def _row(
    layer: Layer,
    spec: PortSpec,
    values: Mapping[Port, Value],
    port: Port,
    is_input: bool,
    dims: tuple[int | str, ...] | None,
) -> PortShape:
    declared, value = spec.type, values[port]
    differs = declared is not None and not _is_same(declared.shape, value.shape)
    return PortShape(
        line=spec.line or layer.where.line,
        layer=layer.name,
        operation=layer.operation,
        port=spec.id,
        is_input=is_input,
        type=value.element.label,
        shape=dims,
        declared=str(declared.shape) if differs and declared is not None else None,
        is_declared=isinstance(values, Inferred) and port in values.declared,
    )


def _is_same(declared: PartialShape, inferred: PartialShape) -> bool:
    """Return whether a declared shape equals the inferred one, or is missing."""
    return declared.rank is None or str(declared) == str(inferred)
