"""The cost of a model: the arithmetic and the bytes of its layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any

from .._util.deadline import check
from .._util.escaping import one_line
from .._util.markup import Shown
from .._util.text import format_prefixed
from ..ir.dimension import Symbol
from ..ir.element import ElementType
from ..ir.formula import Count, Formula, total
from ..ir.graph import IO_TYPES, Graph, Layer, Port
from ..ir.operation import Operands, size
from ..ir.tensor import TensorType, Value
from .constraints.constraint import Constraints
from .infer import Inferred
from .named_dims import NamedDims
from .shapes import OpenLength, open_lengths

# The costs of the layers of a model.


# Maximum number of characters shown of a formula.
_LONGEST = 60


def number_or_text(count: Count | None) -> int | str | None:
    """Return a count for JSON: a number, the text of a formula, or ``None`` if it is not known."""
    return count.text() if isinstance(count, Formula) else count


def _exact(count: Count | None) -> str:
    """Format a count: all of its digits, or the beginning of its formula."""
    return (
        "?" if count is None else f"{count:,}" if isinstance(count, int) else one_line(count.text(), _LONGEST)
    )


@dataclass(frozen=True, slots=True, repr=False)
class LayerCount:
    """The arithmetic, parameters and memory traffic of one layer, for one run of the graph that it is in.

    Counts are numbers, or formulas of dynamic lengths; ``None`` if the rank of a tensor is unknown.
    """

    layer: Layer
    within: str
    """The body that contains it, as ``loop/body``; empty for layers of the model itself."""
    flops: Count | None
    """Arithmetic operations, including those of its bodies; a multiply-accumulate counts as two."""
    macs: Count | None
    """Multiply-accumulates."""
    parameters: int
    """Number of weights, without those that an earlier layer has read."""
    weight_bytes: int
    """Size of these weights in the file."""
    read: Count | None
    """Bytes of its inputs, weights included."""
    written: Count | None
    """Bytes of its outputs."""
    runs: Count | None = 1
    """Maximum number of times that its body runs in one run of the model; ``None`` if unknown.

    The counts in other fields are for one pass of the body.
    """
    is_declared: bool = False
    """Whether it uses declared shapes, because inferring them needs the missing weights."""

    def __repr__(self) -> str:
        return (
            f"<LayerCount: {self.name!r} ({self.operation}), {_exact(self.flops)} FLOPs, "
            f"{self.parameters:,} parameters>"
        )

    @property
    def name(self) -> str:
        """The name of the layer."""
        return self.layer.name

    @property
    def operation(self) -> str:
        """The operation and its version, such as ``MatMul-1``."""
        return self.layer.where.operation or self.layer.type

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "layer": self.name,
            "operation": self.operation,
            "line": self.layer.where.line,
            "within": self.within or None,
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
            "weight_bytes": self.weight_bytes,
            "bytes_read": number_or_text(self.read),
            "bytes_written": number_or_text(self.written),
            "is_declared": self.is_declared,
        }


@dataclass(frozen=True, slots=True)
class OperationCount:
    """The total cost of all layers of one operation."""

    operation: str
    layers: int
    flops: Count
    macs: Count
    parameters: int

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "operation": self.operation,
            "layers": self.layers,
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
        }


@dataclass(frozen=True, slots=True)
class WeightCount:
    """The number and size of the weights of one element type."""

    type: str
    tensors: int
    numbers: int
    bytes: int

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {"type": self.type, "tensors": self.tensors, "numbers": self.numbers, "bytes": self.bytes}


@dataclass(frozen=True, slots=True)
class RunLength:
    """A number known only at run time, such as a loop's trip count, and its symbol in formulas."""

    name: str
    """``n1``, ``trips1`` and so on."""
    layer: str
    axis: int | None
    """The axis of a length; ``None`` for ``trips`` and ``parts`` (the iterations of a loop), and ``frame`` (the length of a
    frame).
    """

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return asdict(self)


@dataclass(frozen=True, repr=False)
class Cost(Shown):
    """The cost of one run of a model.

    Layers that are computed once, when the model is compiled, are not counted: constants, and layers that
    depend on constants and static shapes alone.

    >>> import ir_runtime as ov
    >>> cost = ov.cost("examples/digits/digits.xml", [1, 1, 8, 8])
    >>> cost
    <Cost: 2,478,490 FLOPs, 1,231,136 MACs, 46,106 parameters, activations of 24,832 bytes>
    >>> print(cost)
    2,478,490 FLOPs, 1,231,136 MACs, 46,106 parameters, activations of 24,832 bytes
      2.46 MFLOPs  99.3 %  Convolution-1, 3 layers
       5.9 kFLOPs   0.2 %  Add-1, 4 layers
      5.89 kFLOPs   0.2 %  ReLU-1, 3 layers
      3.07 kFLOPs   0.1 %  MaxPool-14, 1 layer
       1.6 kFLOPs   0.1 %  MatMul-1, 1 layer
      1.36 kFLOPs   0.1 %  ReduceMean-1, 1 layer
    >>> cost.costliest[0]
    <LayerCount: 'Multiply_3001' (Convolution-1), 1,327,104 FLOPs, 10,368 parameters>
    """

    layers: tuple[LayerCount, ...]
    """In topological order; those in bodies follow the layer that has the bodies."""
    weights: tuple[WeightCount, ...]
    """By element type, the largest first."""
    lengths: tuple[OpenLength, ...]
    """The dynamic lengths of inputs, which formulas refer to."""
    run_lengths: tuple[RunLength, ...]
    """The other symbols in formulas, such as ``n1`` and ``trips1``, each with the first layer that has it."""
    peak: int | None
    """The peak memory of inputs and results in bytes, layer by layer; ``None`` with dynamic lengths."""

    def __repr__(self) -> str:
        return f"<Cost: {self._totals()}>"

    def __str__(self) -> str:
        rows = [
            [_short(row.flops), _share(row.flops, self.flops), f"{row.operation}, {_layers(row.layers)}"]
            for row in self.operations
            if row.flops
        ]
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)][:2] if rows else []
        lines = (
            "  ".join(
                ["", *(cell.rjust(width) for cell, width in zip(row, widths, strict=False) if width), row[-1]]
            )
            for row in rows
        )
        return "\n".join([self._totals(), *lines])

    def _totals(self) -> str:
        peak = "" if self.peak is None else f", activations of {self.peak:,} bytes"
        return f"{_exact(self.flops)} FLOPs, {_exact(self.macs)} MACs, {self.parameters:,} parameters{peak}"

    @property
    def outermost(self) -> tuple[LayerCount, ...]:
        """The layers of the model itself, including the cost of their bodies."""
        return tuple(layer for layer in self.layers if not layer.within)

    @property
    def flops(self) -> Count:
        """Number of arithmetic operations in a run; a multiply-accumulate counts as two."""
        return total(layer.flops or 0 for layer in self.outermost)

    @property
    def macs(self) -> Count:
        """Number of multiply-accumulates in a run."""
        return total(layer.macs or 0 for layer in self.outermost)

    @property
    def parameters(self) -> int:
        """The number of weights."""
        return sum(weights.numbers for weights in self.weights)

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of layers that cannot be counted because the rank of a tensor is unknown."""
        return tuple(layer.name for layer in self.outermost if layer.flops is None)

    @property
    def operations(self) -> tuple[OperationCount, ...]:
        """The sums for each operation, the most FLOPs first."""
        sums = [_sum_layers(name, layers) for name, layers in _group_by_operation(self.outermost).items()]
        return tuple(sorted(sums, key=lambda row: (-_magnitude(row.flops), row.operation)))

    @property
    def costliest(self) -> tuple[LayerCount, ...]:
        """The layers of the model itself that have FLOPs, the costliest first."""
        computing = (layer for layer in self.outermost if layer.flops)
        return tuple(sorted(computing, key=lambda layer: -_magnitude(layer.flops or 0)))

    def layer(self, name: str) -> LayerCount | None:
        """Return the counts of the layer with this name, or ``None``."""
        return next((layer for layer in self.layers if layer.name == name), None)

    def at(self, **lengths: int) -> int:
        """Return the FLOPs for given lengths: ``cost.at(batch=1, seq=128)``."""
        return self.flops if isinstance(self.flops, int) else self.flops.at(lengths)

    @property
    def symbols(self) -> frozenset[str]:
        """The names of the lengths that the counts of layers depend on."""
        counts = (
            count
            for layer in self.layers
            for count in (layer.flops, layer.macs, layer.read, layer.written, layer.runs)
        )
        return frozenset[str]().union(*(count.symbols for count in counts if isinstance(count, Formula)))

    def given(self, lengths: Mapping[str, int]) -> Cost:
        """Return the cost with values substituted for some lengths, by their names in formulas."""

        def number(count: Count | None) -> Count | None:
            return count.given(lengths) if isinstance(count, Formula) else count

        layers = (
            replace(
                layer,
                flops=number(layer.flops),
                macs=number(layer.macs),
                read=number(layer.read),
                written=number(layer.written),
                runs=number(layer.runs),
            )
            for layer in self.layers
        )
        return replace(
            self,
            layers=tuple(layers),
            lengths=tuple(length for length in self.lengths if length.name not in lengths),
            run_lengths=tuple(length for length in self.run_lengths if length.name not in lengths),
        )

    def record(self) -> dict[str, Any]:
        """Return a dict for JSON."""
        return {
            "flops": number_or_text(self.flops),
            "macs": number_or_text(self.macs),
            "parameters": self.parameters,
            "activation_peak_bytes": self.peak,
            "open_lengths": [length.record() for length in self.lengths],
            "run_lengths": [length.record() for length in self.run_lengths],
            "weights": [weights.record() for weights in self.weights],
            "operations": [operation.record() for operation in self.operations],
            "layers": [layer.record() for layer in self.layers],
            "not_counted": list(self.unknown),
        }


def _short(count: Count) -> str:
    return (
        format_prefixed(count, "FLOPs")
        if isinstance(count, int)
        else f"{one_line(count.text(), _LONGEST)} FLOPs"
    )


def _share(part: Count, whole: Count) -> str:
    """Return a percentage; empty if one of the counts is a formula, or the whole is 0."""
    return f"{100 * part / whole:.1f} %" if isinstance(part, int) and isinstance(whole, int) and whole else ""


def _layers(count: int) -> str:
    return f"{count} layer{'' if count == 1 else 's'}"


def _group_by_operation(layers: Iterable[LayerCount]) -> Mapping[str, list[LayerCount]]:
    groups: dict[str, list[LayerCount]] = {}
    for layer in layers:
        groups.setdefault(layer.operation, []).append(layer)
    return groups


def _sum_layers(operation: str, layers: list[LayerCount]) -> OperationCount:
    return OperationCount(
        operation,
        len(layers),
        total(layer.flops or 0 for layer in layers),
        total(layer.macs or 0 for layer in layers),
        sum(layer.parameters for layer in layers),
    )


def _magnitude(count: Count) -> int:
    """Return a sort key: the count, or the value of its formula with every length 1000."""
    return count if isinstance(count, int) else count.at(dict.fromkeys(count.symbols, 1000))


# Count the arithmetic of a graph from the costs that operations declare.


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
    return Cost(layers, _count_by_type(walk.weights), open_lengths(dims), tuple(walk.unknown.values()), peak)


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
    """The layers visited on the way from constant inputs to weights, by body and layer."""
    unknown: dict[Symbol | tuple[str, Port | int, int | str], RunLength] = field(default_factory=dict)
    """Numbers known only at run time: lengths by symbol or, without a symbol, by body, port and axis; others by body, layer
    and kind."""
    counters: Counter[str] = field(default_factory=Counter)
    """The number of symbols of each kind."""
    peaks: dict[int, int | None] = field(default_factory=dict)
    """The peak memory of a layer's bodies, by id."""

    def __post_init__(self) -> None:
        self.fixed = frozenset(_constant_layers(self.graph, self.values))

    def layers(self) -> Iterator[LayerCount]:
        """Yield the counts of each layer that runs."""
        for layer in self._running_layers():
            yield from self._count_layer(layer)

    def _is_declared(self, layer: Layer) -> bool:
        """Return whether the layer's shapes are only declared, because weights are missing."""
        declared = self.values.declared if isinstance(self.values, Inferred) else ()
        return bool(declared) and any(p in declared for p in (*self.graph.reads(layer), *layer.output_ports))

    def _running_layers(self) -> Iterator[Layer]:
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
        """Return the number of times that a layer's bodies run in one run of the model."""
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
        by_count = (replace(operands, bodies=counts) for counts in zip(*bodies, strict=True))
        flops, macs = map(layer.op.flops, by_count)
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

    def _symbol_of(self, layer: Layer, kind: str) -> str:
        """Return the symbol of a count of a layer that is known only at run time; its kind is ``trips`` or the like."""
        return self._name_symbol((self.within, layer.id, kind), kind, layer, None)

    def _name_symbol(
        self, key: Symbol | tuple[str, Port | int, int | str], kind: str, layer: Layer, axis: int | None
    ) -> str:
        """Return the symbol of a number known only at run time, such as ``trips2``: its kind, and a counter.

        Equal keys get the same symbol; ``axis`` is that of a length, else ``None``.
        """
        if key not in self.unknown:
            self.counters[kind] += 1
            self.unknown[key] = RunLength(f"{kind}{self.counters[kind]}", layer.name, axis)
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
        """Yield the element type and size of each weight behind a constant input that no earlier layer has read."""
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
        """Return the peak memory of inputs and results in bytes; ``None`` if a length is unknown."""
        running = list(self._running_layers())
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
        """Return the results that are not needed after each of the ``running`` layers, by the layer's id.

        The layer is the last to read them, or computes them, and nothing reads them. Results that leave the graph are not included.
        """
        outputs = {port for layer in self.graph.of_type("Result") for port in self.graph.reads(layer)}
        last = {port: port.layer for port in results}
        for layer in running:
            last |= {port: layer.id for port in self.graph.reads(layer) if port in last}
        dead: dict[int, list[Port]] = {layer.id: [] for layer in running}
        for port in last.keys() - outputs:
            dead[last[port]].append(port)
        return dead


def _constant_layers(graph: Graph, values: Mapping[Port, Value]) -> Iterator[int]:
    """Yield the ids of layers that are computed once: constants, and layers that depend on them and on static shapes."""
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
    """Return the FLOPs and MACs of one pass of each body, given the counts of all layers in it, nested ones included."""
    counts = []
    for layers in rows:
        depth = min((layer.within.count("/") for layer in layers), default=0)
        own = [layer for layer in layers if layer.within.count("/") == depth]
        counts.append((total(la.flops or 0 for la in own), total(la.macs or 0 for la in own)))
    return counts


def _sum(counts: list[Count | None]) -> Count | None:
    numbers = [count for count in counts if count is not None]
    return total(numbers) if len(numbers) == len(counts) else None


def _count_by_type(weights: Mapping[tuple[str, int], tuple[ElementType, int]]) -> tuple[WeightCount, ...]:
    groups: dict[ElementType, list[int]] = {}
    for element, number in weights.values():
        groups.setdefault(element, []).append(number)
    rows = [
        WeightCount(element.label, len(numbers), sum(numbers), sum(map(element.nbytes, numbers)))
        for element, numbers in groups.items()
    ]
    return tuple(sorted(rows, key=lambda row: -row.bytes))
