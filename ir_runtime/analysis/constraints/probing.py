"""Fast repeated queries to inference: whether a graph accepts given input lengths."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..._util.deadline import check
from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics, Severity
from ...errors import IRError
from ...ir.dimension import Dimension, Symbol
from ...ir.element import ElementType
from ...ir.graph import Body, Graph, Layer, Port
from ...ir.shape import PartialShape
from ...ir.tensor import TensorType, Value
from ...limits import current
from ..infer import infer
from .constraint import Answer, BudgetExceededError, Dim, Lengths

__all__ = [
    "Budget",
    "DynamicLayers",
    "LayerCache",
    "Probe",
    "Step",
    "SuspiciousValuesError",
    "open_dims",
]


# The part of a graph that depends on the dynamic dims of its inputs.


# Floating-point constants with more elements are weights: no shape depends on their values.
MAX_FOLLOWED = 64


class Step(NamedTuple):
    """A layer to infer."""

    layer: Layer
    op: int
    """A number shared by layers with equal operations and attributes."""
    sources: tuple[Port | None, ...]
    ports: tuple[Port, ...]


class DynamicLayers:
    """The layers downstream of dynamic dims, in topological order.

    Args:
        graph: the layers.
        known: the values inferred with dynamic lengths.
        parameters: the types of the Parameters, by id.
    """

    def __init__(
        self, graph: Graph, known: Mapping[Port, Value], parameters: Mapping[int, TensorType]
    ) -> None:
        self.graph, self.parameters = graph, parameters
        self.dims = open_dims(graph, parameters)
        self.symbols = {dim: Symbol(f"{graph[dim.layer].name}.{dim.axis}") for dim in self.dims}
        """A symbol for each dynamic dim."""
        inside = set(self._downstream())
        self.steps = tuple(_steps(graph, inside))
        used = {source for step in self.steps for source in step.sources if source is not None}
        self.constants = {
            port: _drop_weights(value)
            for port, value in known.items()
            if port in used and port.layer not in inside
        }
        """The values that these layers read from layers upstream."""
        self.warned = frozenset(step.layer.id for step in self.steps if _always_warns(step, known))
        """The ids of layers whose values are suspicious at any lengths."""

    def bounds(self, dim: Dim) -> Dimension:
        """Return the range of lengths that the Parameter declares for a dim."""
        return self.parameters[dim.layer].shape[dim.axis]

    def _downstream(self) -> Iterator[int]:
        """Yield the ids of layers that depend on a dynamic dim, except those on a cycle."""
        inside = {dim.layer for dim in self.dims}
        for layer in self.graph:
            sources = self.graph.sources(layer)
            if layer.id in inside or any(s is not None and s.layer in inside for s in sources):
                inside.add(layer.id)
                yield layer.id


def open_dims(graph: Graph, parameters: Mapping[int, TensorType]) -> tuple[Dim, ...]:
    """Return the dynamic dims of all Parameters.

    Raises:
        LimitError: if there are more than the limits allow.
    """
    dims = tuple(
        Dim(layer.id, axis)
        for layer in graph.of_type("Parameter")
        if (shape := parameters[layer.id].shape).rank is not None
        for axis, dim in enumerate(shape)
        if dim.is_dynamic
    )
    limits = current()
    if len(dims) > limits.open_lengths:
        limits.check("open_lengths", len(dims), graph[dims[limits.open_lengths].layer].where)
    return dims


def _steps(graph: Graph, inside: set[int]) -> Iterator[Step]:
    kinds: dict[Hashable, int] = {}
    for layer in graph:
        if layer.id in inside and layer.type != "Parameter":
            kind = kinds.setdefault(_signature(layer), len(kinds))
            ports = layer.output_ports
            yield Step(layer, kind, graph.sources(layer), ports)


def _signature(layer: Layer) -> Hashable:
    """Return a key such that layers with equal keys give equal outputs for equal inputs."""
    if layer.op is None or layer.bodies():
        return layer.id
    key = (type(layer.op), repr(layer.op.attributes()), len(layer.outputs))
    has_blob = len(vars(layer.op)) > len(layer.op.attributes())
    return (*key, layer.id) if has_blob else key


def _always_warns(step: Step, known: Mapping[Port, Value]) -> bool:
    inputs = [known[s] for s in step.sources if s is not None and s in known]
    if step.layer.op is None or len(inputs) < len(step.sources):
        return False
    try:
        return any(True for _ in step.layer.op.audit(*inputs))
    except MemoryError:
        raise
    except Exception:  # inference reports what is wrong with the layer
        return False


def _drop_weights(value: Value) -> Value:
    """Drop the data of a constant that is a weight, so that layers differing only in weights are equal."""
    many = value.data is not None and value.data.size > MAX_FOLLOWED and value.element.real
    return Value(value.type) if many else value


# Queries and their cache.

PORTS = 8
"""Inferring a layer with more ports counts once more for each further port."""

UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class SuspiciousValuesError(IRError):
    """A layer has suspicious constant inputs, such as an index out of range, but may run."""

    values: tuple[Value, ...] = ()
    """The inferred outputs."""


class LayerCache:
    """Caches inferred outputs by operation and the identity of interned inputs (hash consing).

    Networks repeat layers, and queries repeat each other.

    Args:
        warned: the ids of layers whose suspicious values are ignored.
    """

    def __init__(self, warned: Collection[int]) -> None:
        self._warned = warned
        self._interned: dict[Hashable, Value] = {}
        self._inferred: dict[tuple[int, ...], tuple[Value, ...] | IRError] = {}
        self.evaluations = 0
        """The number of inferred layers, including layers in bodies."""

    def __len__(self) -> int:
        return len(self._inferred)

    def clear(self) -> None:
        """Drop all entries."""
        self._inferred.clear()
        self._interned.clear()

    def intern(self, value: Value) -> Value:
        """Return one object for all equal values, so that they can be looked up by identity."""
        data = value.data
        if data is None:
            key: Hashable = (value.element, value.shape)
        elif data.dtype == object:
            return self._interned.setdefault(id(value), value)  # intervals and strings are not compared
        else:
            key = (value.element, data.shape, data.tobytes())
        return self._interned.setdefault(key, value)

    def infer(self, step: Step, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        """Return the outputs of a layer for interned inputs, or the error with which it refuses them."""
        key = (step.op, *map(id, inputs))
        if (outputs := self._inferred.get(key)) is None:
            outputs = self._inferred[key] = self._infer(step.layer, inputs)
        return outputs

    def _infer(self, layer: Layer, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        outputs = self._infer_uncached(layer, inputs)
        if isinstance(outputs, SuspiciousValuesError):
            outputs.values = tuple(map(self.intern, outputs.values))
        return outputs if isinstance(outputs, IRError) else tuple(map(self.intern, outputs))

    def _infer_uncached(self, layer: Layer, inputs: Sequence[Value | None]) -> tuple[Value, ...] | IRError:
        declared = tuple(Value(port.type or UNKNOWN) for port in layer.outputs)
        if layer.op is None or None in inputs:
            return declared
        check(layer.where)
        operands = [v for v in inputs if v is not None]
        run_body = _BodyInference()
        self.evaluations += 1 + max(len(inputs) + len(layer.outputs) - PORTS, 0)
        try:
            context = {"visit": run_body} if layer.bodies() else {}
            outputs = layer.op.infer_values(*operands, **context)
            for message in layer.op.audit(*operands):
                if layer.id not in self._warned:
                    suspicious = SuspiciousValuesError(message, code=Code.SUSPICIOUS_VALUES)
                    suspicious.values = outputs
                    return suspicious
        except IRError as reason:
            check(layer.where)  # an expired deadline says nothing about the layer
            return reason
        except MemoryError:  # says nothing about the model
            raise
        except Exception as reason:  # raised by evaluation on constants, as in `infer`
            message = f"inference fails on its inputs: {type(reason).__name__}: {reason}"
            return IRError(message, code=Code.CONTRADICTION)
        finally:
            self.evaluations += run_body.evaluations
        for first in run_body.errors():
            return IRError(first.message, code=first.code, where=first.where, hint=first.hint)
        return outputs + declared[len(outputs) :]  # the number of outputs may be unknown


class _BodyInference:
    """Infers the bodies of a layer, and keeps the last report of each: loops are visited repeatedly."""

    def __init__(self) -> None:
        self._reports: dict[str, Diagnostics] = {}
        self.evaluations = 0

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        report = self._reports[body.name] = Diagnostics()
        inner = infer(body.graph, report, feeds, False)
        self.evaluations += inner.evaluations
        return {result: inner[port] for result, port in body.results.items()}

    def errors(self) -> Iterator[Diagnostic]:
        return itertools.chain.from_iterable(report.errors for report in self._reports.values())


# Maximum number of entries in the cache of inferred layers; it is cleared when full, so that memory stays bounded.
MAX_CACHED = 200_000


# Inferring a layer costs about as much as this number of lookups of cached results.
LOOKUPS = 64

# Overhead of a query for each dynamic dim, in lookups.
_PER_DIM = 8

# Default budget of inferred layers for each MiB of a model's files, at least one MiB, and its maximum: 20 times what any
# tested network needs.
EVALUATIONS, MOST_EVALUATIONS = 52_000, 400_000


@dataclass(slots=True)
class Budget:
    """A budget of inference, counted rather than timed, so that answers are the same on every machine."""

    questions: int = 5000
    """Maximum number of queries."""
    evaluations: int = 100_000
    """Maximum number of inferred layers; those with many ports count more than once, and `LOOKUPS` cached results as one."""
    queries: int = 0
    evaluated: int = 0
    walked: int = 0

    @classmethod
    def of(cls, size: int) -> Budget:
        """Return a budget in proportion to the ``size`` of the model's files in bytes."""
        return cls(evaluations=min(EVALUATIONS * max(size, 1 << 20) >> 20, MOST_EVALUATIONS))

    @property
    def spent(self) -> int:
        """The number of inferred layers, plus cache lookups at a fraction of their cost."""
        return self.evaluated + self.walked // LOOKUPS

    def spend(self) -> None:
        """Count a query.

        Raises:
            BudgetExceededError: if the budget is used up.
        """
        if self.queries >= self.questions or self.spent >= self.evaluations:
            raise BudgetExceededError
        self.queries += 1


@dataclass(slots=True)
class Probe:
    """Infers the layers downstream of dynamic dims at given lengths, up to the first that refuses its inputs."""

    layers: DynamicLayers
    budget: Budget = field(default_factory=Budget)
    lenient: bool = False
    """Whether to accept suspicious values, as long as shapes do not contradict each other."""
    _cache: LayerCache = field(init=False)
    _constants: dict[Port, Value] = field(init=False)
    _answers: dict[tuple[Any, ...], Answer] = field(default_factory=dict)
    _accepted: list[Mapping[Dim, int]] = field(default_factory=list)
    _followed: frozenset[Port] = frozenset()
    """Ports whose values are known at the reference point."""
    _fed: dict[tuple[Any, ...], Value] = field(default_factory=dict)
    """Values of Parameters by their ids and lengths, as successive queries differ in few of them."""
    _dims: dict[int, list[Dim]] = field(default_factory=dict)
    """The dynamic dims of each Parameter."""
    _lookups: list[int] = field(default_factory=lambda: [0])
    """The number of lookups before each step."""

    def __post_init__(self) -> None:
        for dim in self.layers.dims:
            self._dims.setdefault(dim.layer, []).append(dim)
        for step in self.layers.steps:
            self._lookups.append(self._lookups[-1] + max(len(step.sources), 1))
        self._cache = LayerCache(self.layers.warned)
        self._constants = self._intern_constants(self.layers.constants)

    @property
    def graph(self) -> Graph:
        """The whole graph."""
        return self.layers.graph

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dynamic dims."""
        return self.layers.dims

    def bounds(self, dim: Dim) -> Dimension:
        """Return the range of lengths that the Parameter declares for a dim."""
        return self.layers.bounds(dim)

    def __call__(self, lengths: Lengths) -> Answer:
        """Infer with these lengths; a range is refused only if all its lengths are.

        Other dims have the ranges that their Parameters declare.

        Raises:
            BudgetExceededError: if the budget is used up.
        """
        check()
        self.budget.walked += _PER_DIM * len(lengths)
        key = (self.lenient, *sorted((dim, _key(length)) for dim, length in lengths.items()))
        if (answer := self._answers.get(key)) is None:
            self.budget.spend()
            before = self._cache.evaluations
            answer = self._answers[key] = self._ask(lengths)
            self.budget.evaluated += self._cache.evaluations - before
            self.budget.walked += (
                self._lookups[answer.steps] + _PER_DIM * len(self.dims) + len(self._constants)
            )
            if answer.accepted and not self.lenient and len(point := _numbers(lengths)) == len(self.dims):
                self._accepted.append(point)
        return answer

    @property
    def accepted_points(self) -> Sequence[Mapping[Dim, int]]:
        """All lengths that were accepted so far."""
        return self._accepted

    def accepts(self, lengths: Lengths) -> bool | None:
        """Return whether the graph accepts the lengths; ``None`` if undecided."""
        return self(lengths).accepted

    def set_reference(self, lengths: Lengths) -> None:
        """Make later answers inconclusive if inference knows fewer contents than at these lengths."""
        values = self.values(lengths)
        self._followed = frozenset(port for port, value in values.items() if value.data is not None)
        self._answers.clear()

    def values(self, lengths: Lengths) -> dict[Port, Value]:
        """Return the values that depend on the lengths, up to the layer that refuses its inputs."""
        return {port: value for port, value in self._walk(lengths)[1].items() if port not in self._constants}

    def _ask(self, lengths: Lengths) -> Answer:
        steps, values, failed = self._walk(lengths)
        if failed is None:
            is_point = all(not isinstance(length, Dimension) for length in lengths.values())
            unknown = is_point and any(values[port].data is None for port in self._followed if port in values)
            return Answer(steps, inconclusive=unknown)
        layer, reason = failed
        if reason.code == Code.LIMIT:
            return Answer(steps, inconclusive=True)
        severity = Severity.WARNING if isinstance(reason, SuspiciousValuesError) else Severity.ERROR
        clause = "" if layer.op is None else layer.op.cite(reason.clause)
        refusal = Diagnostic(
            reason.code, reason.message, reason.where or layer.where, severity, reason.hint, clause=clause
        )
        inputs = (values.get(s) for s in self.graph.sources(layer) if s is not None)
        return Answer(
            steps, refusal, layer, tuple(dict.fromkeys(n for v in inputs if v for n in _lengths(v)))
        )

    def _walk(self, lengths: Lengths) -> tuple[int, dict[Port, Value], tuple[Layer, IRError] | None]:
        check()
        if len(self._cache) > MAX_CACHED or len(self._fed) > MAX_CACHED:
            self._cache.clear()
            self._fed.clear()
            self._constants = self._intern_constants(self._constants)
        values = self._constants | self._inputs(lengths)
        lookup, infer = values.get, self._cache.infer
        for count, step in enumerate(self.layers.steps):
            outputs = infer(step, [lookup(source) if source else None for source in step.sources])
            if isinstance(outputs, SuspiciousValuesError) and self.lenient:
                outputs = outputs.values
            if isinstance(outputs, IRError):
                return count, values, (step.layer, outputs)
            values.update(zip(step.ports, outputs, strict=False))
        return len(self.layers.steps), values, None

    def _intern_constants(self, constants: Mapping[Port, Value]) -> dict[Port, Value]:
        return {port: self._cache.intern(value) for port, value in constants.items()}

    def _inputs(self, lengths: Lengths) -> dict[Port, Value]:
        inputs = {}
        for layer, dims in self._dims.items():
            chosen = [lengths.get(dim) for dim in dims]
            key = (layer, *[length if length is None else _key(length) for length in chosen])
            if (value := self._fed.get(key)) is None:
                value = self._fed[key] = self._cache.intern(self._input(layer, lengths))
            inputs[Port(layer, 0)] = value
        return inputs

    def _input(self, layer: int, lengths: Lengths) -> Value:
        type = self.layers.parameters[layer]
        dims = {
            axis: self._dimension(Dim(layer, axis), lengths.get(Dim(layer, axis), dim))
            for axis, dim in enumerate(type.shape)
            if dim.is_dynamic
        }
        return Value(TensorType(type.element, type.shape.replace(dims)))

    def _dimension(self, dim: Dim, length: int | Dimension) -> int | Dimension:
        """Return a range with the symbol of its dim, so that inference knows that it equals itself."""
        if not isinstance(length, Dimension) or length.symbol or length.is_static:
            return length
        return Dimension.between(length.min, length.max, self.layers.symbols[dim])


def _numbers(lengths: Lengths) -> dict[Dim, int]:
    return {dim: length for dim, length in lengths.items() if not isinstance(length, Dimension)}


def _key(length: int | Dimension) -> Any:
    return (length.min, length.max or -1, id(length.symbol)) if isinstance(length, Dimension) else (length,)


def _lengths(value: Value) -> Iterator[int]:
    """Yield the lengths of a tensor, and its positive values if it may be a shape."""
    if value.shape.rank is not None:
        yield from (dim.min for dim in value.shape if dim.is_static)
    if value.data is not None and value.data.size <= 8 and value.data.dtype.kind in "iu":
        yield from (int(n) for n in value.data.flat if n > 0)
