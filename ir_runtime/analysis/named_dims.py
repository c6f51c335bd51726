"""Names for the dynamic lengths of a model, and formulas of them for inner lengths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .._util.forks import cached_property
from ..diagnostics import Diagnostics
from ..ir.dimension import Dimension, Symbol
from ..ir.formula import Count, Formula
from ..ir.graph import Graph, Port
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .constraints.constraint import Constraints
from .constraints.dynamic_layers import DynamicLayers, open_dims
from .constraints.oracle import Dim
from .constraints.probing import Probe
from .constraints.symbolic_dims import symbolic_dims
from .constraints.symbols import names, role
from .infer import Inferred, infer

__all__ = ["NamedDims"]


@dataclass
class NamedDims:
    """The dims of a graph, each a number, a name, a formula, or unknown.

    Args:
        graph: the layers.
        inferred: the inferred values of their outputs.
        parameters: the type of each Parameter, by layer.
        found: the constraints on the inputs, for names and formulas.
    """

    graph: Graph
    inferred: Mapping[Port, Value]
    parameters: Mapping[int, TensorType]
    found: Constraints

    @cached_property
    def names(self) -> Mapping[Dim, str]:
        """The names of dynamic lengths, with or without constraints."""
        if self.found.symbols:
            return self.found.symbols
        dims = open_dims(self.graph, self.parameters)
        roles = {d: role(self.graph[d.layer], self.parameters[d.layer].shape, d.axis) for d in dims}
        return names(self.graph, roles, [(dim,) for dim in dims])

    @cached_property
    def values(self) -> Mapping[Port, Value]:
        """The inferred values, with the names of dynamic lengths as symbols."""
        if not self.names:
            return self.inferred
        fed = {layer: Value(self._type_with_symbols(layer)) for layer in self.parameters}
        complete = isinstance(self.inferred, Inferred) and bool(self.inferred.declared)
        return infer(self.graph, Diagnostics(), fed, False, complete=complete)

    @cached_property
    def formulas(self) -> Mapping[tuple[Port, int], Count]:
        """Formulas of inner lengths, by port and axis."""
        if not self.names:
            return {}
        return symbolic_dims(Probe(DynamicLayers(self.graph, self.inferred, self.parameters)), self.found)

    def length(self, port: Port, axis: int, dim: Dimension, outermost: bool = True) -> Count | None:
        """Return the length of a dim as a number, a name or a formula; ``None`` if unknown.

        Args:
            port: the output that has the dim.
            axis: the axis of the dim.
            dim: its inferred length.
            outermost: whether the port is in the outermost graph, not in a body.
        """
        if dim.is_static:
            return dim.min
        if dim.symbol is not None and dim.symbol.name in self._known:
            return Formula.symbol(dim.symbol.name)
        return self.formulas.get((port, axis)) if outermost else None

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names.values())

    def _type_with_symbols(self, layer: int) -> TensorType:
        """Return a Parameter's type with the names of its dynamic lengths as symbols."""
        type, symbols = self.parameters[layer], self._symbols
        if type.shape.rank is None:
            return type
        dims = [
            Dimension.between(d.min, d.max, symbols[Dim(layer, axis)]) if Dim(layer, axis) in symbols else d
            for axis, d in enumerate(type.shape)
        ]
        return TensorType(type.element, PartialShape(dims))

    @cached_property
    def _symbols(self) -> Mapping[Dim, Symbol]:
        shared = {name: Symbol(name) for name in self.names.values()}
        return {dim: shared[name] for dim, name in self.names.items()}
