"""Shape inference: infer the type and shape of every port, and compare them with the declared ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .._util import deadline
from ..codes import Code
from ..diagnostics import Diagnostics, Location
from ..errors import IRError, LimitError, ValidationError
from ..ir.computable import shapes_alone
from ..ir.dimension import Dimension, Symbol
from ..ir.element import ElementType
from ..ir.graph import Body, Edge, Graph, Layer, Port
from ..ir.operation import Operation
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .declared import Agreement
from .explain import Causes

__all__ = ["Former", "Inferred", "infer", "infer_layer", "infer_shapes", "is_same", "with_symbols"]

# Bodies nested deeper than this are inferred once, so that time does not double with each level.
_MAX_DEPTH = 3

# Larger constants are seldom equal to others, so layers that read them are not cached.
_MAX_CACHED_ELEMENTS = 16

_UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class Inferred(dict[Port, Value]):
    """The inferred value of every output; ``bodies`` has those of graphs inside layers.

    ``evaluations`` counts inferred layers, those in bodies each time. ``declared`` lists the outputs whose
    shapes depend on constants without data and are therefore the declared ones.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[tuple[int, str], Inferred] = {}
        self.declared: set[Port] = set()
        self.evaluations = 0


def infer(  # noqa: PLR0913 (what inference may be asked for; most is by default)
    graph: Graph,
    report: Diagnostics,
    parameters: Mapping[int, Value] | None = None,
    compare: bool | None = None,
    explain: bool = False,
    depth: int = 0,
    former: Former | None = None,
    complete: bool | None = None,
    strict: bool = False,
) -> Inferred:
    """Infer the value of every output in one traversal; add findings to ``report``.

    Where inference fails, the declared types are used; after constants with missing data, declared lengths
    complete the inferred ones. Where inferred and declared types contradict each other, the one that most
    consumers of the port declare is used, so that a mistake is reported once, where it is.

    Args:
        graph: the layers.
        report: takes the findings.
        parameters: values of Parameter layers, by id, in place of what they declare.
        compare: compare the result with what the layers declare; by default, if no parameters are given.
        explain: look for the causes of findings, which takes longer.
        depth: how deep the graph is nested in bodies.
        former: the inference of the graph before it was changed.
        complete: use declared lengths after constants without data; by default, if types are compared. The inputs must have the shapes that the file declares.
        strict: report every contradicted declaration as an error, even if no layer computes with the port.
    """
    compare = parameters is None if compare is None else compare
    complete = compare if complete is None else complete
    walk = _Walk(graph, report, _Options(parameters or {}, compare, explain, depth, former, complete, strict))
    for layer in graph.walk:
        deadline.check(layer.where)
        walk.visit(layer)
    walk.agreement.end()
    walk.known.evaluations += len(graph)
    return walk.known


class _Refusal(NamedTuple):
    """The reason why an operation refuses its inputs."""

    code: str
    message: str
    hint: str = ""


class _Outcome(NamedTuple):
    """The result of inferring a layer: its outputs, a refusal, and the findings in its bodies."""

    values: list[Value]
    refusal: _Refusal | None = None
    in_bodies: Sequence[Diagnostics] = ()

    @property
    def is_sound(self) -> bool:
        return self.refusal is None and not any(map(len, self.in_bodies))


class _Options(NamedTuple):
    """The options of an `infer`."""

    parameters: Mapping[int, Value]
    compare: bool
    explain: bool
    depth: int
    former: Former | None = None
    complete: bool = False
    strict: bool = False


@dataclass(slots=True)
class _Walk:
    graph: Graph
    report: Diagnostics
    options: _Options
    known: Inferred = field(default_factory=Inferred)
    cache: dict[tuple[object, ...], tuple[Value, ...]] = field(default_factory=dict)
    """Inferred outputs by operation and inputs: many layers of a model are equal."""
    as_declared: Diagnostics | None = None
    """Findings with the declared types of Parameters; computed on demand."""
    lacks_data: bool = False
    """Whether a constant before this layer has no data, as the weights are missing."""
    agreement: Agreement = field(init=False)
    causes: Causes = field(init=False)

    def __post_init__(self) -> None:
        self.causes = Causes(self.graph, self.known)
        self.agreement = Agreement(
            self.graph,
            self.report,
            self.causes.of_length if self.options.explain else None,
            self.options.strict,
        )

    def visit(self, layer: Layer) -> None:
        """Infer the outputs of a layer whose inputs are known."""
        inferred, sources = self.known, self.graph.sources(layer)
        received = [
            self._value_of_unconnected(layer, i) if s is None else inferred.get(s)
            for i, s in enumerate(sources)
        ]
        if self.agreement.pending:
            self.agreement.weigh(layer, received, self._is_same)
        declared = self.agreement.inputs(layer, received, self._is_same) if self.options.compare else None
        if declared is None:
            values, refusal, in_bodies = self._infer(layer, received)
        else:
            values, refusal, in_bodies = self._infer_either(layer, received, declared)
        for report in in_bodies:
            self.report.extend(report)
        if refusal is not None:
            why = self.causes.of_refusal(layer, _not_none(received)) if self.options.explain else ()
            self.report.error(refusal.code, refusal.message, layer.where, refusal.hint, causes=why)
        if len(values) < len(layer.outputs):  # the number of outputs may be unknown
            values += _declared(layer)[len(values) :]
        self._store(layer, values)
        fed = self.options.compare and layer.id in self.options.parameters
        if fed and self.agreement.parameter(layer, values[0].type, self._is_sound_as_declared):
            return
        if self.options.compare and not self.agreement.is_declared(layer, values):
            self._store(layer, self.agreement.outputs(layer, values, quiet=declared is not None))
        if self.lacks_data and self.options.complete:
            self._complete(layer)

    def _is_sound_as_declared(self) -> bool:
        """Return whether the graph is sound with the types that its Parameters declare."""
        if self.as_declared is None:
            self.as_declared = Diagnostics()
            infer(self.graph, self.as_declared, compare=False, depth=self.options.depth)
        return self.as_declared.ok

    def _store(self, layer: Layer, values: Sequence[Value]) -> None:
        for index, value in enumerate(values):
            self.known[Port(layer.id, index)] = value

    def _complete(self, layer: Layer) -> None:
        """Complete inferred lengths with declared ones."""
        for port, spec in zip(layer.output_ports, layer.outputs, strict=True):
            value = self.known[port]
            if value.shape.is_static or spec.type is None or spec.type.shape.rank is None:
                continue
            completed = _complete_shape(value.shape, spec.type.shape)
            if completed is not value.shape:
                type = TensorType(value.element, completed)
                self.known[port] = with_symbols(layer, replace(value, type=type))
                self.known.declared.add(port)

    def _value_of_unconnected(self, layer: Layer, index: int) -> Value | None:
        """Return the declared value of an input whose edge was refused, else ``None``."""
        declared = layer.inputs[index].type
        return Value(declared or _UNKNOWN) if Port(layer.id, index) in self.graph.severed else None

    def _infer_either(
        self, layer: Layer, received: Sequence[Value | None], declared: Sequence[Value | None]
    ) -> _Outcome:
        """Infer from the declared inputs, or else from the received ones, whichever the operation accepts."""
        one = self._infer(layer, declared)
        if one.is_sound or self.options.depth >= _MAX_DEPTH:
            return one
        other = self._infer(layer, received)
        return other if other.is_sound else one

    def _is_same(self, layer: Layer, inputs: Sequence[Value | None], others: Sequence[Value | None]) -> bool:
        """Return whether a layer accepts two lists of inputs and gives the same static outputs for both.

        False for a layer with bodies, as inferring them again is slow.
        """
        if layer.op is None or layer.bodies():
            return False
        one, other = self._infer(layer, inputs), self._infer(layer, others)
        sound = one.is_sound and other.is_sound and len(one.values) == len(other.values)
        return sound and all(a.is_same(b) for a, b in zip(one.values, other.values, strict=True))

    def _infer(self, layer: Layer, inputs: Sequence[Value | None]) -> _Outcome:
        """Infer the outputs; use the declared ones if the operation refuses its inputs."""
        if layer.id in self.options.parameters:
            return _Outcome([with_symbols(layer, self.options.parameters[layer.id])])
        if layer.op is None or None in inputs:
            self.lacks_data |= layer.type == "Constant"
            return _Outcome(_declared(layer))
        former = self.options.former
        if former is not None and (reused := former.outputs(layer, inputs)) is not None:
            return _Outcome(reused)
        key = None if (bodies := layer.bodies()) else _cache_key(layer.op, inputs)
        if key is not None and (before := self.cache.get(key)) is not None:
            return _Outcome(list(before))
        run_body = _BodyInference(layer, self) if bodies else None
        try:
            context = {} if run_body is None else {"visit": run_body}
            outputs = layer.op.infer_values(*_not_none(inputs), **context)
        except LimitError as reason:
            reason.where = reason.where or layer.where
            raise
        except IRError as reason:
            refusal = _Refusal(reason.code, reason.message, reason.hint)
            return _Outcome(_declared(layer), refusal, _reports(run_body))
        except MemoryError:  # says nothing about the model
            raise
        except Exception as reason:  # raised by evaluation on constants, which the model decides
            message = f"its inputs cannot be computed with: {type(reason).__name__}: {reason}"
            hint = "the code of the operation does not handle such inputs"
            return _Outcome(_declared(layer), _Refusal(Code.CONTRADICTION, message, hint), _reports(run_body))
        if key is not None and all(value.shape.is_static for value in outputs):
            self.cache[key] = outputs
        return _Outcome([with_symbols(layer, value) for value in outputs], None, _reports(run_body))


class _BodyInference:
    """Infers the bodies of a layer, and keeps the last report of each: loops are visited repeatedly."""

    def __init__(self, layer: Layer, walk: _Walk) -> None:
        self._layer, self._walk = layer, walk
        self._reports: dict[str, Diagnostics] = {}

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        walk = self._walk
        report = Diagnostics(walk.report.most)
        _, compare, explain, depth, _, complete, strict = walk.options
        inner = infer(
            body.graph, report, feeds, compare, explain, depth + 1, complete=complete, strict=strict
        )
        walk.known.bodies[self._layer.id, body.name] = inner
        walk.known.evaluations += inner.evaluations
        self._reports[body.name] = report
        unfed = {layer.id: Value(_UNKNOWN) for layer in body.graph.of_type("Result")}
        return unfed | {result: inner[port] for result, port in body.results.items()}

    @property
    def is_deep(self) -> bool:
        """Whether the body is nested too deep to be inferred repeatedly."""
        return self._walk.options.depth >= _MAX_DEPTH

    def reports(self) -> list[Diagnostics]:
        """Return the findings in the bodies."""
        return list(self._reports.values())


def _reports(inference: _BodyInference | None) -> Sequence[Diagnostics]:
    """Return the findings in the bodies of a layer, if it has any."""
    return () if inference is None else inference.reports()


def _complete_shape(shape: PartialShape, declared: PartialShape) -> PartialShape:
    """Replace dynamic dims of a shape by declared lengths; return the same object if nothing changes."""
    if shape.rank is None:
        return declared
    if shape.rank != declared.rank:  # a contradiction, reported elsewhere
        return shape
    pairs = list(zip(shape, declared, strict=True))
    if not any(dim.is_dynamic and length.is_static for dim, length in pairs):
        return shape
    return PartialShape([length if length.is_static else dim for dim, length in pairs])


def _cache_key(op: Operation, inputs: Sequence[Value | None]) -> tuple[object, ...] | None:
    """Return a cache key of operation, static shapes and constants, or ``None`` if it is too large."""


def _not_none(inputs: Sequence[Value | None]) -> list[Value]:
    return [value for value in inputs if value is not None]


def _declared(layer: Layer) -> list[Value]:
    return [Value(port.type or _UNKNOWN) for port in layer.outputs]


def with_symbols(layer: Layer, value: Value) -> Value:
    """Give each dynamic dimension a symbol, so that dims derived from it compare equal."""
    if value.shape.is_static or value.shape.rank is None:
        return value
    if all(d.symbol is not None or d.is_static for d in value.shape):
        return value
    names = [f"{layer.name}.{i}" if layer.type == "Parameter" else "" for i in range(len(value.shape))]
    dims = [
        d if d.is_static else Dimension.between(d.min, d.max, d.symbol or Symbol(name))
        for d, name in zip(value.shape, names, strict=True)
    ]
    return replace(value, type=TensorType(value.element, PartialShape(dims)))


_SELF = 0


def infer_layer(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...]:
    """Return the output values of a layer, given its input values.

    Raises:
        ValidationError: if the operation refuses its inputs.
    """
    if (quick := _infer_simple(layer, inputs)) is not None:
        return quick
    report = Diagnostics()
    values = _infer(layer, inputs, report)
    if report.errors:
        raise ValidationError.of(report.errors, report.more)
    return tuple(values[port] for port in sorted(values) if port.layer == _SELF)


def infer_shapes(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the outputs of a layer that may not be computable; ``None`` if its shapes are unknown."""
    with shapes_alone():
        return _infer_simple(layer, inputs)


def _infer_simple(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the outputs of a layer without bodies that accepts its inputs, the common case."""
    if layer.op is None or layer.bodies():
        return None
    try:
        values = layer.op.infer_values(*inputs)
    except LimitError:
        raise
    except Exception:  # inference as a graph reports the error
        return None
    return tuple(with_symbols(layer, value) for value in values)


def _infer(layer: Layer, inputs: Sequence[Value], report: Diagnostics) -> Inferred:
    sources = [Layer(number, "", "Parameter", "", None, Location()) for number in range(1, len(inputs) + 1)]
    edges = [Edge(Port(source.id, 0), Port(_SELF, number)) for number, source in enumerate(sources)]
    graph = Graph([*sources, replace(layer, id=_SELF)], edges)
    return infer(graph, report, dict(enumerate(inputs, 1)), compare=False)


class Former:
    """The values of a former graph, reused where a layer has the same operation and inputs.

    Args:
        graph: the graph as it was.
        values: its inferred values, without findings.
        layers: by the id of a layer in the derived graph, its id in the former one.
    """

    def __init__(self, graph: Graph, values: Mapping[Port, Value], layers: Mapping[int, int]) -> None:
        self._graph, self._values, self._layers = graph, values, layers

    def outputs(self, layer: Layer, inputs: Sequence[Value | None]) -> list[Value] | None:
        """Return a layer's former outputs if it had the same inputs, else ``None``."""
        id, op = self._layers.get(layer.id), layer.op
        if id is None or op is None or op is not self._graph[id].op:
            return None
        # The symbols of a Parameter have its name, which may have changed; bodies are inferred for their own sake.
        if not op.pure or layer.type == "Parameter" or layer.bodies():
            return None
        former = self._graph[id]
        sources = self._graph.sources(former)
        if len(sources) != len(inputs):
            return None
        for source, value in zip(sources, inputs, strict=True):
            if source is None or not is_same(self._values.get(source), value):
                return None
        values = [self._values.get(Port(id, index)) for index in range(len(former.outputs))]
        present = [value for value in values if value is not None]
        return present if len(present) == len(values) else None


def is_same(one: Value | None, other: Value | None) -> bool:
    """Return whether inference cannot tell two values apart: the same object, or equal types and no data."""
    if one is other:
        return True
    if one is None or other is None or one.element is not other.element:
        return False
    is_known = any(
        v.data is not None or v.bounds is not None or v.quantized is not None for v in (one, other)
    )
    return not is_known and _is_same_shape(one.shape, other.shape)


def _is_same_shape(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are equal, including the symbols of their dims."""
    if one.is_static or other.is_static:
        return one == other
    if one.rank is None or other.rank is None:
        return one.rank is other.rank
    return tuple(one) == tuple(other)
