"""Names for the dynamic lengths of a model's inputs, and symbolic dimensions: inner lengths as formulas of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from .._util.forks import cached_property
from ..diagnostics import Diagnostics
from ..ir.dimension import Dimension, Symbol
from ..ir.formula import Count, Formula, ceil, floor, product, total
from ..ir.graph import Graph, Port
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .constraints.constraint import Constraints, Dim
from .constraints.probing import DynamicLayers, Probe, open_dims
from .constraints.symbols import names, role
from .infer import Inferred, infer

__all__ = [
    "NamedDims",
    "symbolic_dims",
]


# Symbolic dimensions: inner lengths as formulas of input dims, such as ``height/32`` or ``past + seq``.


# A formula of one symbol has two coefficients, so it must hold at more than two points.
MIN_POINTS = 5

Columns = Mapping[str, Sequence[int]]


def symbolic_dims(probe: Probe, constraints: Constraints) -> dict[tuple[Port, int], Count]:
    """Return dims of tensors as formulas in the named dims of the model inputs, by port and axis.

    Formulas are fitted to inferred lengths at sample points. They hold at all of these points, but are not proved for
    others. With too few or too similar points, there are none.

    Args:
        probe: infers the lengths at a point.
        constraints: the constraints on the inputs, with names and sample points.
    """
    points = [trial.lengths for trial in constraints.accepted]
    if len(points) < MIN_POINTS:
        return {}
    names = {name: dim for dim, name in constraints.symbols.items() if " " not in name}
    samples = {name: [point[dim] for point in points] for name, dim in names.items()}
    fixed = {name for constraint in constraints if constraint.kind == "fixed" for name in constraint.symbols}
    if any(len(set(column)) <= 2 for name, column in samples.items() if name not in fixed):
        return {}  # dims that depend on such a length look constant
    walks = [probe.values(point) for point in points]
    formulas: dict[tuple[int, ...], Count | None] = {}
    dims = {}
    for place, lengths in _lengths(walks):
        if lengths not in formulas:
            formulas[lengths] = _symbolic_dim(lengths, samples)
        if (formula := formulas[lengths]) is not None:
            dims[place] = formula
    return dims


def _lengths(walks: Sequence[Mapping[Port, object]]) -> Iterator[tuple[tuple[Port, int], tuple[int, ...]]]:
    """Yield each dim whose length is known at every point, with these lengths."""
    for port, first in walks[0].items():
        shapes = [getattr(walk.get(port, first), "shape", None) for walk in walks]
        ranks = {shape.rank for shape in shapes if shape is not None}
        if len(ranks) != 1 or ranks == {None}:
            continue
        for axis, dims in enumerate(zip(*(shape for shape in shapes if shape is not None), strict=True)):
            if len(dims) == len(walks) and all(dim.is_static for dim in dims):
                yield (port, axis), tuple(dim.min for dim in dims)


def _symbolic_dim(lengths: tuple[int, ...], samples: Columns) -> Count | None:
    """Return the simplest formula that holds at all points."""
    if len(set(lengths)) == 1:
        return lengths[0]
    varying = {name: column for name, column in samples.items() if len(set(column)) > 2}
    forms = (_linear, _roundings, _sum, _product)
    return next((formula for form in forms for formula in form(lengths, varying)), None)


def _linear(lengths: tuple[int, ...], samples: Columns) -> Iterator[Formula]:
    """Yield formulas ``a/b * symbol + c`` that give the lengths at all points."""
    for name, column in samples.items():
        low, high = column.index(min(column)), column.index(max(column))
        slope = Fraction(lengths[high] - lengths[low], column[high] - column[low])
        offset = lengths[low] - slope * column[low]
        fits = all(n == slope * x + offset for n, x in zip(lengths, column, strict=True))
        if slope > 0 and fits and offset.denominator == 1:
            yield Formula.symbol(name).scaled(slope) + offset


def _roundings(lengths: tuple[int, ...], samples: Columns) -> Iterator[Count]:
    """Yield ``floor(symbol / b)`` and ``ceil(symbol / b)``, else ``floor((symbol + c) / b)``, if only one divisor fits."""
    for name, column in samples.items():
        ranges, length = dict(_offsets(lengths, column)), Formula.symbol(name)
        floors = [floor(length, b) for b, (least, most) in ranges.items() if least <= 0 <= most]
        ceils = [ceil(length, b) for b, (least, most) in ranges.items() if least <= b - 1 <= most]
        others = [floor(length + _closest(*bounds), b) for b, bounds in ranges.items()]
        for same in (floors, ceils, others):
            if len(same) == 1:
                yield same[0]
            if same:
                break


def _offsets(lengths: tuple[int, ...], column: Sequence[int]) -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield possible divisors, each with the least and the greatest offset for which floor division gives the lengths."""
    high = column.index(max(column))
    if not 0 < lengths[high] < column[high]:
        return
    about = column[high] / lengths[high]
    for divisor in range(max(2, math.floor(about * 0.7)), math.ceil(about * 1.3) + 2):
        # n <= (x + c) / b < n + 1 at every point
        least = max(n * divisor - x for n, x in zip(lengths, column, strict=True))
        most = min((n + 1) * divisor - x for n, x in zip(lengths, column, strict=True)) - 1
        if least <= most:
            yield divisor, (least, most)


def _closest(least: int, most: int) -> int:
    return least if least > 0 else most


def _sum(lengths: tuple[int, ...], samples: Columns) -> Iterator[Count]:
    """Yield formulas ``symbol + symbol + c``, of two or three symbols, that give the lengths at all points."""
    for subset in _subsets(samples):
        columns = (samples[name] for name in subset)
        rest = {n - sum(xs) for n, xs in zip(lengths, zip(*columns, strict=True), strict=True)}
        if len(rest) == 1:
            yield total([*map(Formula.symbol, subset), rest.pop()])


def _product(lengths: tuple[int, ...], samples: Columns) -> Iterator[Count]:
    """Yield formulas ``a/b * symbol * symbol``, of two or three symbols, that give the lengths at all points."""
    for subset in _subsets(samples):
        columns = (samples[name] for name in subset)
        ratios = {
            Fraction(n, math.prod(xs)) for n, xs in zip(lengths, zip(*columns, strict=True), strict=True)
        }
        if len(ratios) == 1:
            first, *rest = map(Formula.symbol, subset)
            yield first.scaled(ratios.pop()) * product(rest)


def _subsets(samples: Columns) -> Iterator[tuple[str, ...]]:
    for count in (2, 3):
        yield from itertools.combinations(samples, count)


@dataclass
class NamedDims:
    """The dims of a graph, each a number, a name, a formula, or unknown.

    Args:
        graph: the layers.
        inferred: the inferred values of their outputs.
        parameters: the type of each Parameter, by layer id.
        constraints: the constraints on the inputs, for names and formulas.
    """

    graph: Graph
    inferred: Mapping[Port, Value]
    parameters: Mapping[int, TensorType]
    constraints: Constraints

    @cached_property
    def names(self) -> Mapping[Dim, str]:
        """The names of the dynamic lengths of inputs; equal lengths share one if constraints are known."""
        if self.constraints.symbols:
            return self.constraints.symbols
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
        probe = Probe(DynamicLayers(self.graph, self.inferred, self.parameters))
        return symbolic_dims(probe, self.constraints)

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
