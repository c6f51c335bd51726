"""Count the arithmetic of a graph from the costs that operations declare."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial

from ..._util.deadline import check
from ...ir.dimension import Symbol
from ...ir.element import ElementType
from ...ir.formula import Count, Formula, total
from ...ir.graph import IO_TYPES, Graph, Layer, Port
from ...ir.operands import Operands, size
from ...ir.tensor import TensorType, Value
from ..constraints.constraint import Constraints
from ..infer import Inferred
from ..named_dims import NamedDims
from ..shapes import open_lengths
from .counted import Cost, LayerCount, RunLength, WeightCount

__all__ = ["count"]

# Layers that neither compute nor move anything.
_NO_WORK = (*IO_TYPES, "Constant")


def count(
    graph: Graph,
    values: Mapping[Port, Value],
    parameters: Mapping[int, TensorType],
    constraints: Constraints | None = None,
) -> Cost:
    """Count the cost of running a graph.

    Args:
        graph: the layers to count, with their bodies.
        values: the inferred values.
        parameters: the type of each Parameter, by layer.
        constraints: the constraints on the inputs, for names and formulas.
    """
    dims = NamedDims(graph, values, parameters, constraints or Constraints())
    walk = _Walk(dims, graph, dims.values)
    layers, peak = tuple(walk.layers()), walk.peak()
    return Cost(layers, _by_type(walk.weights), open_lengths(dims), tuple(walk.unknown.values()), peak)


@dataclass
class _Walk:
    """Counts the layers of one graph: of the model, or of a body.

    All fields below ``runs`` but the last are shared with the walks of bodies.
    """

    named: NamedDims
    graph: Graph
    values: Mapping[Port, Value]
    within: str = ""
    runs: Count | None = 1
    weights: dict[tuple[str, int], tuple[ElementType, int]] = field(default_factory=dict)
    """The element type and the number of elements of each constant that is a weight, by body and layer."""
    followed: set[tuple[str, int]] = field(default_factory=set)
    """The layers in front of weights that were looked at."""
    unknown: dict[Symbol | tuple[str, Port | int, int | str], RunLength] = field(default_factory=dict)
    """Numbers known only at run time: lengths by symbol or, if they have none, by body, port and axis; others by body, layer
    and what they count."""
    numbers: Counter[str] = field(default_factory=Counter)
    """How many of each kind have a symbol."""
    peaks: dict[int, int | None] = field(default_factory=dict)
    """The peak memory of a layer's bodies, by id."""

    def __post_init__(self) -> None:
        self.fixed = frozenset(_constant_layers(self.graph, self.values))

    def layers(self) -> Iterator[LayerCount]:
        """Yield the counts of each layer that runs."""
        for layer in self._running():
            yield from self._count_layer(layer)

    def _is_declared(self, layer: Layer) -> bool:
        """Return whether the layer's shapes are only declared, because weights are missing."""
        declared = self.values.declared if isinstance(self.values, Inferred) else ()
        return bool(declared) and any(p in declared for p in (*self.graph.reads(layer), *layer.output_ports))

    def _running(self) -> Iterator[Layer]:
        return (la for la in self.graph if la.id not in self.fixed and la.type not in _NO_WORK and la.op)

    def _count_layer(self, layer: Layer) -> Iterator[LayerCount]:
        check(layer.where)
        passes = self._passes(layer)
        inner = [self._inside(layer, body.name, body.graph, passes) for body in layer.bodies()]
        rows = [tuple(walk.layers()) for walk in inner]
        peaks = [walk.peak() for walk in inner]
        self.peaks[layer.id] = None if None in peaks else max((p for p in peaks if p is not None), default=0)
        own, parameters, weight_bytes = _outermost(rows), 0, 0
        for source in self.graph.reads(layer):
            for element, number in self._new_weights(source):
                parameters, weight_bytes = parameters + number, weight_bytes + element.nbytes(number)
        reads = [self._bytes(port) for port in self.graph.reads(layer)]
        writes = [self._bytes(port) for port in layer.output_ports]
        flops, macs = self._arithmetic(layer, own)
        yield LayerCount(
            layer, self.within, flops, macs, parameters, weight_bytes, _sum(reads), _sum(writes), self.runs,
            self._is_declared(layer),
        )  # fmt: skip
        for counts in rows:
            yield from counts

    def _passes(self, layer: Layer) -> Count | None:
        """Return how often a layer's bodies run in one run of the model."""
        once: list[tuple[Count, Count]] = [(1, 1) for _ in layer.bodies()]
        passes = self._arithmetic(layer, once)[0] if once else None
        return None if passes is None or self.runs is None else passes * self.runs

    def _inside(self, layer: Layer, name: str, graph: Graph, runs: Count | None) -> _Walk:
        bodies = self.values.bodies if isinstance(self.values, Inferred) else {}
        path = "/".join(filter(None, (self.within, layer.name, name)))
        values: Mapping[Port, Value] = bodies.get((layer.id, name), {})
        return replace(self, graph=graph, values=values, within=path, runs=runs, peaks={})

    def _arithmetic(
        self, layer: Layer, bodies: list[tuple[Count, Count]]
    ) -> tuple[Count | None, Count | None]:
        sources = self.graph.reads(layer)
        inputs = [self._lengths(port) for port in sources]
        outputs = [self._lengths(port) for port in layer.output_ports]
        shapes = [lengths for lengths in (*inputs, *outputs) if lengths is not None]
        if layer.op is None or len(shapes) < len(inputs) + len(outputs):
            return None, None
        contents = tuple(self.values[port].known() for port in sources)
        operands = Operands(
            tuple(shapes[: len(inputs)]),
            tuple(shapes[len(inputs) :]),
            contents,
            symbol=partial(self._symbol_of, layer),
        )
        if not layer.bodies():
            return layer.op.flops(operands), layer.op.macs(operands)
        both = (replace(operands, bodies=counts) for counts in zip(*bodies, strict=True))
        flops, macs = (layer.op.flops(each) for each in both)
        return flops, macs

    def _lengths(self, port: Port) -> tuple[Count, ...] | None:
        value = self.values.get(port)
        if value is None or value.shape.rank is None:
            return None
        lengths = []
        for axis, dim in enumerate(value.shape):
            length = self.named.length(port, axis, dim, not self.within)
            if length is None:
                key = dim.symbol or (self.within, port, axis)
                length = Formula.symbol(self._name_symbol(key, "n", self.graph[port.layer], axis))
            lengths.append(length)
        return tuple(lengths)

    def _symbol_of(self, layer: Layer, what: str) -> str:
        """Return the symbol of a number of a layer that is known only at run time."""
        return self._name_symbol((self.within, layer.id, what), what, layer, None)

    def _name_symbol(
        self, key: Symbol | tuple[str, Port | int, int | str], what: str, layer: Layer, axis: int | None
    ) -> str:
        """Return the symbol of a run-time number, numbered among those of its kind."""
        if key not in self.unknown:
            self.numbers[what] += 1
            self.unknown[key] = RunLength(f"{what}{self.numbers[what]}", layer.name, axis)
        return self.unknown[key].name

    def _bytes(self, port: Port) -> Count | None:
        lengths = self._lengths(port)
        if lengths is None:
            return None
        element, elements = self.values[port].element, size(lengths)
        return (
            element.nbytes(elements)
            if isinstance(elements, int)
            else elements.scaled(Fraction(element.bits, 8))
        )

    def _new_weights(self, port: Port) -> Iterator[tuple[ElementType, int]]:
        """Yield the weights of a constant input, unless an earlier layer has read them."""
        if port.layer not in self.fixed or not self.values[port].element.real:
            return
        waiting = [port.layer]
        while waiting:
            layer = self.graph[waiting.pop()]
            if (place := (self.within, layer.id)) in self.followed:
                continue
            self.followed.add(place)
            waiting += [source.layer for source in self.graph.reads(layer)]
            value = self.values.get(Port(layer.id, 0))
            if layer.type == "Constant" and value is not None and _is_weight(value.element):
                self.weights[place] = value.element, value.count.min
                yield self.weights[place]

    def peak(self) -> int | None:
        """Return the peak memory of inputs and results in bytes, if every length is known."""
        running = list(self._running())
        parameters = [Port(layer.id, 0) for layer in self.graph.of_type("Parameter")]
        sizes: dict[Port, int] = {}
        for port in (*parameters, *(port for layer in running for port in layer.output_ports)):
            size = self._bytes(port)
            if not isinstance(size, int):
                return None
            sizes[port] = size
        used = most = sum(sizes[port] for port in parameters)
        ends = self._ends(running, sizes.keys() - parameters)
        for layer in running:
            inside = self.peaks.get(layer.id, 0)
            if inside is None:
                return None
            used += sum(sizes[port] for port in layer.output_ports)
            most = max(most, used + inside)
            used -= sum(sizes[port] for port in ends[layer.id])
        return most

    def _ends(self, running: Sequence[Layer], results: Collection[Port]) -> Mapping[int, list[Port]]:
        """Return, for each layer, the results that are not needed after it."""
        outputs = {port for layer in self.graph.of_type("Result") for port in self.graph.reads(layer)}
        last = {port: port.layer for port in results}
        for layer in running:
            last |= {port: layer.id for port in self.graph.reads(layer) if port in last}
        dead: dict[int, list[Port]] = {layer.id: [] for layer in running}
        for port in last.keys() - outputs:
            dead[last[port]].append(port)
        return dead


def _constant_layers(graph: Graph, values: Mapping[Port, Value]) -> Iterator[int]:
    """Yield the layers computed before a run: constants, and those that depend on them and on shapes."""
    constant: set[int] = set()
    for layer in graph:
        ports, sources = layer.output_ports, graph.sources(layer)
        computed = bool(ports) and all(port in values and values[port].known() is not None for port in ports)
        pure = layer.op is not None and layer.op.pure and layer.type not in IO_TYPES
        if (
            computed
            or layer.type == "Constant"
            or (pure and all(source is not None and source.layer in constant for source in sources))
        ):
            constant.add(layer.id)
            yield layer.id


def _is_weight(element: ElementType) -> bool:
    """Return whether constants of a type are weights; wide integers are axes and lengths."""
    return element.real or (element.bits <= 8 and element is not ElementType.boolean)


def _outermost(rows: list[tuple[LayerCount, ...]]) -> list[tuple[Count, Count]]:
    """Return the FLOPs and MACs of one pass of each body."""
    counts = []
    for layers in rows:
        depth = min((layer.within.count("/") for layer in layers), default=0)
        own = [layer for layer in layers if layer.within.count("/") == depth]
        counts.append((total(la.flops or 0 for la in own), total(la.macs or 0 for la in own)))
    return counts


def _sum(counts: list[Count | None]) -> Count | None:
    numbers = [count for count in counts if count is not None]
    return total(numbers) if len(numbers) == len(counts) else None


def _by_type(weights: Mapping[tuple[str, int], tuple[ElementType, int]]) -> tuple[WeightCount, ...]:
    groups: dict[ElementType, list[int]] = {}
    for element, number in weights.values():
        groups.setdefault(element, []).append(number)
    rows = [
        WeightCount(element.label, len(numbers), sum(numbers), sum(map(element.nbytes, numbers)))
        for element, numbers in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.bytes))
