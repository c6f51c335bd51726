"""The shape of every port of a model, with names for what is open."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..cached import cached_property
from ..diagnostics import Diagnostics
from ..ir.dimension import Dimension, Symbol
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .constraints.constraint import Constraints
from .constraints.dynamic_layers import DynamicLayers, open_dims
from .constraints.oracle import Dim
from .constraints.probing import Probe
from .constraints.symbolic_dims import symbolic_dims
from .constraints.symbols import label, names, role
from .infer import Inferred, infer

__all__ = ["OpenLength", "PortShape", "Shapes", "shapes_in"]


@dataclass(frozen=True, slots=True)
class OpenLength:
    """An open length of an input: its name, and what the model declares."""

    input: str
    axis: int
    name: str
    bounds: str

    def record(self) -> dict[str, Any]:
        """Return the same as plain data, for JSON."""
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
    """What the file says, where that is something else."""

    @property
    def text(self) -> str:
        """The shape in brackets."""
        return "[...]" if self.shape is None else f"[{','.join(map(str, self.shape))}]"

    def record(self) -> dict[str, Any]:
        """Return the same as plain data, for JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Shapes:
    """The open lengths of a model's inputs, and the shapes of all ports, those of inputs first."""

    inputs: tuple[OpenLength, ...]
    ports: tuple[PortShape, ...]


def shapes_in(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    constraints: Constraints | None = None,
) -> Shapes:
    """Return the shape of every port, as far as it is known.

    Args:
        graph: its layers are listed, with those in the bodies of branches and loops.
        values: what was inferred.
        parameters: the type of each Parameter, by layer.
        constraints: those of the inputs, which give names to open lengths, and formulas of them.
    """
    return _Lister(graph, values, parameters, constraints or Constraints()).shapes()


class _Lister:
    def __init__(
        self,
        graph: Graph,
        values: Mapping[Port, Value],
        parameters: Mapping[int, TensorType],
        found: Constraints,
    ) -> None:
        self._graph, self._values, self._types, self._found = graph, values, parameters, found

    def shapes(self) -> Shapes:
        graph, values = self._graph, self._values
        made = symbolic_dims(Probe(DynamicLayers(graph, values, self._types)), self._found)
        if self._names:
            values = infer(graph, Diagnostics(), {la: Value(self._named(la)) for la in self._types}, False)
        return Shapes(tuple(self._open()), tuple(self._rows(graph, values, made)))

    @cached_property
    def _names(self) -> Mapping[Dim, str]:
        """What open lengths are called, be it that nothing was found out about them."""
        if self._found.symbols:
            return self._found.symbols
        dims = tuple(open_dims(self._graph, self._types))
        roles = {d: role(self._graph[d.layer], self._types[d.layer].shape, d.axis) for d in dims}
        return names(self._graph, roles, [(dim,) for dim in dims])

    def _named(self, layer: int) -> TensorType:
        """Return the type of a Parameter, whose open lengths have their names as symbols."""
        type, symbols = self._types[layer], self._symbols
        if type.shape.rank is None:
            return type
        dims = [
            Dimension.between(d.min, d.max, symbols[Dim(layer, axis)]) if Dim(layer, axis) in symbols else d
            for axis, d in enumerate(type.shape)
        ]
        return TensorType(type.element, PartialShape(dims))

    @cached_property
    def _symbols(self) -> Mapping[Dim, Symbol]:
        shared = {name: Symbol(name) for name in self._names.values()}
        return {dim: shared[name] for dim, name in self._names.items()}

    def _open(self) -> Iterator[OpenLength]:
        for layer, type in self._types.items():
            for axis, dim in enumerate(type.shape if type.shape.rank is not None else ()):
                if dim.is_dynamic:
                    name = self._names[Dim(layer, axis)]
                    yield OpenLength(label(self._graph[layer]), axis, name, str(dim))

    def _rows(
        self, graph: Graph, values: Mapping[Port, Value], symbolic_dims: Mapping[tuple[Port, int], str]
    ) -> Iterator[PortShape]:
        for layer in sorted(graph, key=lambda la: la.type != "Parameter"):
            for spec, source in zip(layer.inputs, graph.sources(layer), strict=True):
                if source is not None and source in values:
                    yield _row(
                        layer, spec, values[source], True, self._dims(source, values[source], symbolic_dims)
                    )
            for index, spec in enumerate(layer.outputs):
                port = Port(layer.id, index)
                if port in values:
                    yield _row(
                        layer, spec, values[port], False, self._dims(port, values[port], symbolic_dims)
                    )
            for body in layer.bodies():
                inner = values.bodies.get((layer.id, body.name)) if isinstance(values, Inferred) else None
                yield from self._rows(body.graph, inner or {}, {})

    def _dims(
        self, port: Port, value: Value, symbolic_dims: Mapping[tuple[Port, int], str]
    ) -> tuple[int | str, ...] | None:
        if value.shape.rank is None:
            return None
        names = set(self._names.values())
        return tuple(_dim(d, symbolic_dims.get((port, axis)), names) for axis, d in enumerate(value.shape))


def _row(
    layer: Layer, spec: PortSpec, value: Value, is_input: bool, dims: tuple[int | str, ...] | None
) -> PortShape:
    declared = spec.type
    differs = declared is not None and not _is_same(declared.shape, value.shape)
    return PortShape(
        line=spec.line or layer.where.line,
        layer=layer.name,
        operation=layer.operation,
        port=spec.id,
        is_input=is_input,
        type=str(value.element),
        shape=dims,
        declared=str(declared.shape) if differs and declared is not None else None,
    )


def _dim(dim: Dimension, formula: str | None, names: Collection[str]) -> int | str:
    """Return a number, a name that is known to hold, a formula, or bounds."""
    if dim.is_static:
        return dim.min
    if dim.symbol is not None and dim.symbol.name in names:
        return dim.symbol.name
    if formula is not None:
        return int(formula) if formula.isdecimal() else formula
    return str(dim)


def _is_same(declared: PartialShape, found: PartialShape) -> bool:
    """Return whether a file says what was found, or nothing."""
    return declared.rank is None or str(declared) == str(found)
