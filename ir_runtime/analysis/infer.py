"""Shape inference: infer the type and shape of every port, and compare them with the declared ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from .._util import deadline
from ..codes import Code
from ..diagnostics import Cause, Diagnostic, Diagnostics, Location, Mark, Severity
from ..errors import IRError, LimitError, ValidationError
from ..ir.computable import shapes_alone
from ..ir.dimension import Dimension, Interval, Symbol
from ..ir.element import ElementType
from ..ir.graph import Body, Edge, Graph, Layer, Port, PortSpec
from ..ir.operation import Operation
from ..ir.shape import PartialShape, have_same_lengths
from ..ir.tensor import Array, TensorType, Value, objects

__all__ = [
    "Agreement",
    "Causes",
    "Former",
    "Inferred",
    "Region",
    "agree",
    "correct_types",
    "infer",
    "infer_layer",
    "infer_shapes",
    "is_same",
    "with_symbols",
]

# Bodies nested deeper than this are inferred once, so that time does not double with each level.
_MAX_DEPTH = 3

# Larger constants are seldom equal to others, so layers that read them are not cached.
_MAX_CACHED_ELEMENTS = 16

_UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class Inferred(dict[Port, Value]):
    """The inferred value of every output of a graph.

    ``bodies`` has the values in the bodies of layers, by layer id and body name. ``declared`` lists the outputs whose
    shapes depend on constants without data, and are therefore the declared ones. ``evaluations`` counts the inferred
    layers, including repeated inferences of bodies.
    """

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[tuple[int, str], Inferred] = {}
        self.declared: set[Port] = set()
        self.evaluations = 0


def infer(  # noqa: PLR0913 (options of inference, most of them with defaults)
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

    Where inference fails, declared types are used. After constants without data, declared lengths complete the
    inferred ones. Where inferred and declared types contradict each other, inference continues with the type that
    most consumers of the port declare, so that a mistake is reported once, at its origin.

    Args:
        graph: the layers.
        report: collects the findings.
        parameters: values of Parameters by id, which replace their declared types.
        compare: compare inferred with declared types; by default, if no parameters are given.
        explain: look for the causes of findings, which takes longer.
        depth: the number of bodies around the graph.
        former: values from before the graph was edited, for reuse.
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
    clause: str = ""


class _Outcome(NamedTuple):
    """The result of inferring a layer: its outputs, a refusal, and the findings in its bodies."""

    values: list[Value]
    refusal: _Refusal | None = None
    in_bodies: Sequence[Diagnostics] = ()

    @property
    def is_sound(self) -> bool:
        return self.refusal is None and not any(map(len, self.in_bodies))


class _Options(NamedTuple):
    """The options of `infer`."""

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
        """Infer the outputs of a layer whose inputs have been inferred."""
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
            self.report.error(
                refusal.code, refusal.message, layer.where, refusal.hint, causes=why, clause=refusal.clause
            )
        if len(values) < len(layer.outputs):  # the number of outputs may be unknown
            values += _declared_values(layer)[len(values) :]
        self._store(layer, values)
        fed = self.options.compare and layer.id in self.options.parameters
        if fed and self.agreement.parameter(layer, values[0].type, self._is_sound_as_declared):
            return
        if self.options.compare and not self.agreement.is_declared(layer, values):
            self._store(layer, self.agreement.outputs(layer, values, quiet=declared is not None))
        if self.lacks_data and self.options.complete:
            self._complete(layer)

    def _is_sound_as_declared(self) -> bool:
        """Return whether inference finds no errors with the types that the Parameters declare."""
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
            return _Outcome(_declared_values(layer))
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
            refusal = _Refusal(reason.code, reason.message, reason.hint, layer.op.cite(reason.clause))
            return _Outcome(_declared_values(layer), refusal, _reports(run_body))
        except MemoryError:  # says nothing about the model
            raise
        except Exception as reason:  # raised by evaluation on constants, which the model decides
            message = f"inference fails on its inputs: {type(reason).__name__}: {reason}"
            hint = "the code of the operation does not handle such inputs"
            return _Outcome(
                _declared_values(layer), _Refusal(Code.CONTRADICTION, message, hint), _reports(run_body)
            )
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
    """Return a cache key of operation, static shapes and constants; ``None`` if shapes are dynamic, or constants large."""
    if not op.pure or not inputs:
        return None
    key: list[object] = [op]
    for value in inputs:
        if value is None or not value.shape.is_static or value.bounds is not None:
            return None
        key += value.element, value.shape.static
        if value.data is not None:
            if value.data.size > _MAX_CACHED_ELEMENTS or value.data.dtype.hasobject:
                return None
            key.append(value.data.tobytes())
    return tuple(key)


def _not_none(inputs: Sequence[Value | None]) -> list[Value]:
    return [value for value in inputs if value is not None]


def _declared_values(layer: Layer) -> list[Value]:
    return [Value(port.type or _UNKNOWN) for port in layer.outputs]


def with_symbols(layer: Layer, value: Value) -> Value:
    """Return a value in which each dynamic dim has a symbol, so that dims derived from it compare equal."""
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
    """Return the outputs of a layer even if it cannot be computed; ``None`` if inference refuses its inputs."""
    with shapes_alone():
        return _infer_simple(layer, inputs)


def _infer_simple(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the outputs in the common case, a layer without bodies that accepts its inputs; else ``None``."""
    op = layer.op
    if op is None or op.needs("visit"):
        return None
    try:
        values = op.infer_values(*inputs)
    except LimitError:
        raise
    except Exception:  # inference as a graph reports the error
        return None
    return tuple([with_symbols(layer, value) for value in values])


def _infer(layer: Layer, inputs: Sequence[Value], report: Diagnostics) -> Inferred:
    sources = [Layer(number, "", "Parameter", "", None, Location()) for number in range(1, len(inputs) + 1)]
    edges = [Edge(Port(source.id, 0), Port(_SELF, number)) for number, source in enumerate(sources)]
    graph = Graph([*sources, replace(layer, id=_SELF)], edges)
    return infer(graph, report, dict(enumerate(inputs, 1)), compare=False)


class Former:
    """Values inferred before a graph was edited, reused for layers with the same operation and inputs.

    Args:
        graph: the graph before the edit.
        values: its inferred values; inference had no findings.
        layers: the id of each layer in the former graph, by its id in the edited one.
    """

    def __init__(self, graph: Graph, values: Mapping[Port, Value], layers: Mapping[int, int]) -> None:
        self._graph, self._values, self._layers = graph, values, layers

    def outputs(self, layer: Layer, inputs: Sequence[Value | None]) -> list[Value] | None:
        """Return a layer's former outputs if it had the same inputs, else ``None``."""
        id, op = self._layers.get(layer.id), layer.op
        if id is None or op is None or op is not self._graph[id].op:
            return None
        # The symbols of a Parameter have its name, which may have changed; the values in bodies are part of the result.
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
    return _is_type_only(one) and _is_type_only(other) and _is_same_shape(one.shape, other.shape)


def _is_type_only(value: Value) -> bool:
    """Return whether nothing is known of a tensor but its type."""
    return value.data is None and value.bounds is None and value.quantized is None


def _is_same_shape(one: PartialShape, other: PartialShape) -> bool:
    """Return whether two shapes are equal, including the symbols of their dims."""
    if one.is_static or other.is_static:
        return one == other
    if one.rank is None or other.rank is None:
        return one.rank is other.rank
    return tuple(one) == tuple(other)


# Maximum number of trial inferences for all findings; each further 8 inputs of a layer cost one more.
_MAX_TRIALS = 3000
_INPUTS_PER_TRIAL = 8
# Maximum number of causes shown for a finding, and of tensor elements tried one by one.
_MAX_CAUSES = 6
_MAX_ELEMENTS = 32


class Region(NamedTuple):
    """A region of a tensor: one of its dims, one of its elements, or all elements."""

    dim: int | None = None
    element: int | None = None

    def of(self, value: Value) -> str:
        """Return this region of a value as text."""
        if self.dim is not None:
            in_rank = value.shape.rank is not None and self.dim < len(value.shape)
            return str(value.shape[self.dim]) if in_rank else "?"
        numbers = value.numbers()
        if self.element is None:
            return "not known" if value.data is None else _abbreviate(value.data)
        if numbers is None or self.element >= len(numbers):
            return "not known"
        number = numbers[self.element]
        return str(Dimension.of(number)) if isinstance(number, Interval) else str(number)

    def __str__(self) -> str:
        if self.dim is not None:
            return f"dim {self.dim}"
        return "all" if self.element is None else f"element {self.element}"


class _InputPart(NamedTuple):
    """A region of an input: the port that feeds it, the region, the name of the input, and the region's value as text."""

    port: Port
    region: Region
    name: str
    text: str


@dataclass(slots=True)
class Causes:
    """Finds the causes of findings, by inferring layers again with a part of an input unknown."""

    graph: Graph
    known: Mapping[Port, Value]
    _trials_left: int = field(default_factory=lambda: _MAX_TRIALS, init=False)

    def of_refusal(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Cause, ...]:
        """Return the causes of an operation's refusal of its inputs."""

        def accepts(trial: Sequence[Value]) -> bool:
            return self._infer(layer, trial) is not None

        if len(inputs) != len(layer.inputs):
            return ()
        parts = self._deciders(layer, inputs, accepts)
        parts.sort(key=lambda part: part.region.dim is not None)  # values come before shapes
        visited: set[tuple[Port, Region]] = set()
        causes = [
            cause for part in parts if part.port in self.known for cause in self._origin_of(part, visited)
        ]
        return tuple(causes[:_MAX_CAUSES])

    def _origin_of(self, part: _InputPart, visited: set[tuple[Port, Region]]) -> list[Cause]:
        """Return the origin of a part of an input, in at most two steps."""
        causes: list[Cause] = []
        self._trace(part.port, part.region, causes, visited, whole=False)
        if not causes:
            return []
        first = f"{part.region} of {part.name} is {part.text}: {causes[0].message}"
        return [Cause(first, causes[0].where), *causes[1:2]]

    def of_length(self, port: Port, dim: int) -> tuple[Cause, ...]:
        """Return the steps that trace the length of axis ``dim`` of an output back to its origin."""
        causes: list[Cause] = []
        self._trace(port, Region(dim), causes, set())
        return tuple(causes)

    def _trace(
        self,
        port: Port,
        region: Region,
        causes: list[Cause],
        visited: set[tuple[Port, Region]],
        whole: bool = True,
    ) -> None:
        """Trace a region of an output to its origin, appending to ``causes``.

        With ``whole``, the layer of the output comes first, even if it only passes a length through.
        """
        worklist = [(port, region)]
        while worklist and len(causes) < _MAX_CAUSES and self._trials_left > 0:
            port, region = worklist.pop()
            self._spend(self.graph[port.layer])
            if (port, region) in visited:
                continue
            visited.add((port, region))
            layer, value = self.graph[port.layer], region.of(self.known[port])
            deciders = self._deciders_of(port, region)
            if not deciders:
                causes.append(_origin(layer, region, value))
            elif all(part.text != value for part in deciders) or (whole and not causes):
                causes.append(_step(layer, region, value, deciders, whole and not causes))
            else:  # the layer passes a length through
                deciders = [next(part for part in deciders if part.text == value)]
            worklist += [(part.port, part.region) for part in reversed(deciders)]

    def _deciders_of(self, port: Port, region: Region) -> list[_InputPart]:
        """Return the regions of a layer's inputs that decide a region of its output."""
        layer = self.graph[port.layer]
        inputs = [self.known.get(source) for source in self.graph.sources(layer) if source is not None]
        values = [value for value in inputs if value is not None]
        if layer.op is None or layer.bodies() or len(values) != len(layer.inputs):
            return []
        before = region.of(self.known[port])

        def changes(trial: Sequence[Value]) -> bool:
            outputs = self._infer(layer, trial) or ()
            return port.number < len(outputs) and region.of(outputs[port.number]) != before

        return self._deciders(layer, values, changes) or self._shared_length(layer, values, before, changes)

    def _shared_length(
        self, layer: Layer, inputs: Sequence[Value], length: str, matters: Callable[[Sequence[Value]], bool]
    ) -> list[_InputPart]:
        """Return the first input dim of the given length, if hiding this length in all inputs loses a result, else nothing.

        This finds a length that several inputs share, so that none of them decides it alone.
        """
        same = [
            (index, Region(dim))
            for index, value in enumerate(inputs)
            for dim in range(len(value.shape) if value.shape.rank is not None else 0)
            if Region(dim).of(value) == length
        ]
        trial = list(inputs)
        for index, region in same:
            trial[index] = _hide(trial[index], region)
        return [self._part(layer, *same[0], inputs)] if same and matters(trial) else []

    def _deciders(
        self, layer: Layer, inputs: Sequence[Value], matters: Callable[[Sequence[Value]], bool]
    ) -> list[_InputPart]:
        """Return the regions of the inputs that decide a result.

        ``matters`` is called with the inputs, one region of which is unknown, and returns whether the result is then lost.
        """
        deciders = []
        for index, value in enumerate(inputs):
            if self._trials_left <= 0:
                break
            if self.graph.sources(layer)[index] is None:  # its edge would close a cycle
                continue

            def is_needed(region: Region, index: int = index, value: Value = value) -> bool:
                self._spend(layer)
                if self._trials_left <= 0:
                    return False
                return matters([*inputs[:index], _hide(value, region), *inputs[index + 1 :]])

            deciders += [self._part(layer, index, region, inputs) for region in _parts(value, is_needed)]
        return deciders

    def _part(self, layer: Layer, index: int, region: Region, inputs: Sequence[Value]) -> _InputPart:
        declared, source = layer.op.port_of(index) if layer.op else None, self.graph.sources(layer)[index]
        assert source is not None
        number = layer.inputs[index].id
        name = f"{declared.name!r} (port {number})" if declared else f"input port {number}"
        return _InputPart(source, region, name, region.of(inputs[index]))

    def _spend(self, layer: Layer) -> None:
        """Charge one inference of a layer to the budget; more inputs cost more."""
        self._trials_left -= 1 + len(layer.inputs) // _INPUTS_PER_TRIAL

    def _infer(self, layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
        """Infer the outputs; ``None`` if the operation refuses the inputs."""
        if layer.op is None or layer.bodies():
            return None
        try:
            return layer.op.infer_values(*inputs)
        except IRError:
            return None
        except MemoryError:  # says nothing about the model
            raise
        except Exception:  # an exception of arithmetic on odd contents is a refusal, too
            return None


def _parts(value: Value, matters: Callable[[Region], bool]) -> Iterator[Region]:
    """Yield the parts of a value that matter: single elements, else all of them, else dims."""
    if value.data is not None and matters(Region()):
        numbers = value.numbers()
        elements = range(len(numbers)) if numbers is not None and len(numbers) <= _MAX_ELEMENTS else ()
        single = [Region(element=e) for e in elements if matters(Region(element=e))]
        yield from single or [Region()]
    elif value.shape.rank is not None:
        dims = (Region(i) for i, dim in enumerate(value.shape) if dim != Dimension())
        yield from (region for region in dims if matters(region))


def _hide(value: Value, region: Region) -> Value:
    """Return the value with one region unknown."""
    if region.dim is not None:
        return Value(TensorType(value.element, value.shape.replace({region.dim: Dimension()})))
    numbers = value.numbers()
    if region.element is None or numbers is None or value.data is None:
        return Value(value.type)
    others = [Interval() if i == region.element else n for i, n in enumerate(numbers)]
    return Value.bounded(value.element, objects(others, value.data.shape))


def _step(layer: Layer, region: Region, value: str, parts: Sequence[_InputPart], whole: bool) -> Cause:
    """Describe how a layer computes a region of its output; ``whole`` adds its attributes."""
    operands = ", ".join(f"{part.text} in {part.region} of {part.name}" for part in parts[:4])
    more = " and others" if len(parts) > 4 else ""
    settings = _attributes(layer) if whole else ""
    how = f", with {settings}" if settings else ""
    return Cause(f"{layer} gives {value} in {region}, from {operands}{more}{how}", layer.where)


def _abbreviate(data: Array) -> str:
    """Return the first elements of a tensor as text."""
    first = ", ".join(map(str, data.flat[:4]))
    return f"[{first}, …]" if data.size > 4 else f"[{first}]"


def _attributes(layer: Layer) -> str:
    text = ", ".join(f"{key}={value!r}" for key, value in layer.attributes.items())
    return text if len(text) <= 160 else f"{text[:160]}…"


def _origin(layer: Layer, region: Region, value: str) -> Cause:
    """Describe the layer of the file where a value originates."""
    line = layer.outputs[0].line if layer.type == "Parameter" and layer.outputs else None
    where = replace(layer.where, line=line or layer.where.line)
    message = f"{region} of {layer} is {value}"
    if layer.type in ("Parameter", "Constant") or layer.op is None:
        return Cause(message, where)
    settings = _attributes(layer)
    return Cause(f"{message}, by its attributes {settings}" if settings else message, where)


_UNREAD = "no layer computes with it, so the model runs anyway; correct the port"
_SAME = "the layers that read it give the same results either way, so the model runs anyway; correct the port"

Explain: TypeAlias = Callable[[Port, int], tuple[Cause, ...]]
"""The causes of the length of an output's dim."""

IsSame: TypeAlias = Callable[[Layer, Sequence[Value | None], Sequence[Value | None]], bool]
"""Whether a layer gives the same outputs for two lists of inputs."""


class _Dispute(NamedTuple):
    """An output with a disputed leading axis of length 1, and the finding to report if a layer depends on it."""

    declared: Value
    inferred: Value
    finding: Diagnostic


@dataclass(slots=True)
class Agreement:
    """Compares declared and inferred types, reports differences, and chooses the type to continue with."""

    graph: Graph
    report: Diagnostics
    explain: Explain | None = None
    strict: bool = False
    """Whether every contradiction is an error, even if no layer computes with the port."""
    disputed: set[Port] = field(default_factory=set)
    """Outputs whose declared type has been reported as wrong."""
    pending: dict[Port, _Dispute] = field(default_factory=dict)
    """Disputes over leading axes of length 1, which so far make no difference to the layers that read them."""

    def weigh(self, layer: Layer, received: Sequence[Value | None], is_same: IsSame) -> None:
        """Report the disputes over a layer's inputs, unless its outputs are the same with either type."""
        sources = self.graph.sources(layer)
        disputes = {i: self.pending[s] for i, s in enumerate(sources) if s in self.pending}
        if not disputes or not _computes(layer):
            return
        declared, inferred = list(received), list(received)
        for index, dispute in disputes.items():
            declared[index], inferred[index] = dispute.declared, dispute.inferred
        if is_same(layer, declared, inferred):
            return
        for source in {sources[index] for index in disputes}:
            if source is not None:
                self.report.add(self.pending.pop(source).finding)

    def end(self) -> None:
        """Warn of the disputes that made no difference."""
        for _, _, finding in self.pending.values():
            self.report.add(replace(finding, severity=Severity.WARNING, hint=_SAME))

    def inputs(
        self, layer: Layer, received: Sequence[Value | None], is_same: IsSame
    ) -> list[Value | None] | None:
        """Return the inputs with declared types where these contradict the received values; ``None`` if all agree."""
        if _are_declared(layer.inputs, received):
            return None
        sources = self.graph.sources(layer)
        pairs = enumerate(zip(layer.inputs, sources, received, strict=True))
        wrong: dict[int, Value] = {}
        unreported: dict[int, Value] = {}
        for index, (spec, source, value) in pairs:
            if spec.type is None or source is None or value is None or agree(spec.type, value.type):
                continue
            wrong[index] = Value(spec.type)
            if source not in self.disputed:
                unreported[index] = value
        if not wrong:
            return None
        declared = [wrong.get(i, value) for i, value in enumerate(received)]
        if unreported:
            is_harmless = (
                not self.strict
                and all(_differ_in_leading_ones(wrong[i].type, value.type) for i, value in unreported.items())
                and is_same(layer, declared, received)
            )
            for index, value in unreported.items():
                self._wrong_input(layer, index, value, is_harmless)
        return declared

    def _wrong_input(self, layer: Layer, index: int, value: Value, is_harmless: bool) -> None:
        spec, source = layer.inputs[index], self.graph.sources(layer)[index]
        assert spec.type is not None
        assert source is not None
        giver = self.graph[source.layer]
        number = giver.outputs[source.number].id if source.number < len(giver.outputs) else source.number
        is_read = self.strict or _computes(layer)
        hint = "correct the port or the edge" if is_read else _UNREAD
        self._add(
            Code.INPUT_PORT,
            f"input port {spec.id} declares {spec.type}, but output port {number} of {giver} "
            f"at line {giver.where.line} gives {value.type}",
            _place(layer, spec),
            _SAME if is_read and is_harmless else hint,
            Mark(port=spec.id, dim=_first(spec.type.shape, value.shape)),
            self._causes(source, value.shape, spec.type.shape),
            is_read and not is_harmless,
        )

    def _add(
        self,
        code: Code,
        message: str,
        place: Location,
        hint: str,
        mark: Mark,
        causes: tuple[Cause, ...],
        is_read: bool,
    ) -> None:
        """Report a contradiction as an error, or as a warning unless ``is_read``: if no layer computes with the tensor.

        OpenVINO infers types and shapes regardless of declarations.
        """
        severity = Severity.ERROR if is_read else Severity.WARNING
        self.report.add(Diagnostic(code, message, place, severity, hint, mark, causes=causes))

    def _is_read(self, port: Port) -> bool:
        """Return whether a layer computes with an output."""
        return self.strict or any(_computes(self.graph[reader.layer]) for reader in self.graph.readers(port))

    def parameter(self, layer: Layer, fed: TensorType, is_sound: Callable[[], bool]) -> bool:
        """Report a body Parameter whose attributes contradict its input; return whether they do.

        OpenVINO reads a body on its own first: ``is_sound`` tells whether it accepts the declared attributes.
        """
        if layer.op is None or agree(declared := layer.op.infer_types()[0], fed):
            return False
        self.disputed.add(Port(layer.id, 0))
        self.report.error(
            Code.INPUT_PORT if is_sound() else Code.CONTRADICTION,
            f"its attributes declare {declared}, but the body is given {fed}",
            layer.where,
            "correct the attributes, or the input of the layer that the body belongs to",
            mark=Mark("element_type" if not _same_element(declared, fed) else "shape"),
        )
        return True

    def is_declared(self, layer: Layer, values: Sequence[Value]) -> bool:
        """Return whether all outputs are exactly as declared, the common case."""
        return len(values) == len(layer.outputs) and _are_declared(layer.outputs, values)

    def outputs(self, layer: Layer, values: Sequence[Value], quiet: bool = False) -> list[Value]:
        """Return the values to continue with; ``quiet`` prevents a finding, as the layer has been reported already."""
        outputs = []
        for index, value in enumerate(values):
            outputs.append(self._output(layer, index, value, quiet))
            # One report per layer is enough.
            quiet = quiet or (Port(layer.id, index) in self.disputed and outputs[-1] is not value)
        return outputs

    def _output(self, layer: Layer, index: int, value: Value, quiet: bool) -> Value:
        if index >= len(layer.outputs) or (declared := layer.outputs[index].type) is None:
            return value
        if agree(declared, value.type):
            is_open = value.element is ElementType.dynamic
            return replace(value, type=TensorType(declared.element, value.shape)) if is_open else value
        port = Port(layer.id, index)
        self.disputed.add(port)
        chosen = self._majority(port, declared, value)
        if not quiet:
            self._wrong_output(layer, layer.outputs[index], port, declared, value, chosen)
        return chosen

    def _majority(self, port: Port, declared: TensorType, value: Value) -> Value:
        """Return the declared or the inferred type, whichever more consumers of the port declare."""
        readers = self.graph.readers(port)
        expected = [self.graph[r.layer].inputs[r.number].type for r in readers]
        declarations = [type for type in expected if type is not None]
        for_file = sum(agree(declared, type) for type in declarations)
        for_value = sum(agree(value.type, type) for type in declarations)
        return Value(declared) if for_file > for_value else value

    def _wrong_output(
        self, layer: Layer, spec: PortSpec, port: Port, declared: TensorType, value: Value, chosen: Value
    ) -> None:
        place, is_read = _place(layer, spec), self._is_read(port)
        hint = _advice(value, chosen) if is_read else _UNREAD
        if not _same_element(declared, value.type):
            message = f"output port {spec.id} declares {declared.element.label}, but the operation gives {value.element.label}"
            self._add(
                Code.DECLARED_TYPE,
                message,
                place,
                hint,
                Mark("precision", spec.id, output=True),
                (),
                is_read,
            )
        if not value.shape.compatible(declared.shape):
            finding = Diagnostic(
                Code.DECLARED_SHAPE,
                f"output port {spec.id} declares dims {declared.shape}, but the operation gives {value.shape}",
                place,
                Severity.ERROR if is_read else Severity.WARNING,
                hint,
                Mark(port=spec.id, output=True, dim=_first(declared.shape, value.shape)),
                causes=self._causes_of_output(layer, port, value, declared.shape),
            )
            if is_read and not self.strict and _differ_in_leading_ones(declared, value.type):
                self.pending[port] = _Dispute(Value(declared), value, finding)
            else:
                self.report.add(finding)

    def _causes_of_output(
        self, layer: Layer, port: Port, value: Value, declared: PartialShape
    ) -> tuple[Cause, ...]:
        if layer.type in ("Parameter", "Constant") or layer.op is None:
            return ()
        return self._causes(port, value.shape, declared)

    def _causes(self, port: Port, shape: PartialShape, other: PartialShape) -> tuple[Cause, ...]:
        dim = _first(shape, other)
        return () if self.explain is None or dim is None else self.explain(port, dim)


def _computes(layer: Layer) -> bool:
    """Return whether a layer of the file computes with its inputs."""
    return layer.type != "Result" and not layer.is_implied


def _are_declared(ports: Sequence[PortSpec], values: Sequence[Value | None]) -> bool:
    """Return whether each value has exactly the static type that its port declares."""
    for port, value in zip(ports, values, strict=True):
        if value is None or (type := port.type) is None or type.element is not value.type.element:
            return False
        if not have_same_lengths(type.shape, value.type.shape):
            return False
    return True


def agree(declared: TensorType, inferred: TensorType) -> bool:
    """Return whether some tensor fits both types."""
    return _same_element(declared, inferred) and declared.shape.compatible(inferred.shape)


def _same_element(one: TensorType, other: TensorType) -> bool:
    return one.element is other.element or ElementType.dynamic in (one.element, other.element)


def _differ_in_leading_ones(one: TensorType, other: TensorType) -> bool:
    """Return whether two static types differ only in leading axes of length 1.

    Tensors of both types have the same values, and one broadcasts to the other. Old releases of OpenVINO gave the product
    of a vector and a matrix such an axis, and wrote it into their files.
    """
    if not (one.shape.is_static and other.shape.is_static and _same_element(one, other)):
        return False
    short, long = sorted((one.shape.static, other.shape.static), key=len)
    return long == (1,) * (len(long) - len(short)) + short


def _first(one: PartialShape, other: PartialShape) -> int | None:
    """Return the first dim in which two shapes of the same rank are incompatible."""
    if one.rank is None or one.rank != other.rank:
        return None
    pairs = enumerate(zip(one, other, strict=True))
    return next((i for i, (a, b) in pairs if not a.compatible(b)), None)


def _advice(value: Value, chosen: Value) -> str:
    if chosen is value:
        return "correct the port, or the attribute or input that decides it"
    return "the layers that read it expect what the port declares: correct the attribute or input that decides it"


def _place(layer: Layer, port: PortSpec) -> Location:
    return replace(layer.where, line=port.line or layer.where.line)


def correct_types(graph: Graph, values: Inferred) -> Graph:
    """Return the graph with the declared types of ports and Parameters replaced by the inferred ones.

    They matter for a loop without iterations, whose results have the declared types of its body.
    """
    layers = [_correct_layer(graph, layer, values) for layer in graph.layers.values()]
    return Graph(layers, graph.edges, graph.severed)


def _correct_layer(graph: Graph, layer: Layer, values: Inferred) -> Layer:
    own = layer.output_ports
    sources = [None if source is None else values.get(source) for source in graph.sources(layer)]
    return replace(
        layer,
        op=None if layer.op is None else _operation(layer, layer.op, values),
        inputs=tuple(map(_port, layer.inputs, sources)),
        outputs=tuple(_port(spec, values.get(port)) for spec, port in zip(layer.outputs, own, strict=True)),
    )


def _port(spec: PortSpec, value: Value | None) -> PortSpec:
    fits = value is None or spec.type is None or agree(spec.type, value.type)
    return spec if fits or value is None else replace(spec, type=value.type)


def _operation(layer: Layer, op: Operation, known: Inferred) -> Operation:
    """Return the operation of a layer with corrected types in its bodies, or in its attributes if it is a Parameter."""
    value = known.get(Port(layer.id, 0))
    if layer.type == "Parameter" and value is not None:
        return _parameter(op, value.type)
    inner = {body.name: known.bodies.get((layer.id, body.name)) for body in layer.bodies()}
    bodies = {
        body.name: replace(body, graph=correct_types(body.graph, values))
        for body in layer.bodies()
        if (values := inner[body.name]) is not None
    }
    return op.replace(**bodies) if bodies else op


def _parameter(op: Operation, type: TensorType) -> Operation:
    declared = op.infer_types()[0]
    return op if agree(declared, type) else op.replace(element_type=type.element, shape=type.shape)
