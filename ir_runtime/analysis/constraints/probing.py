"""Ask inference, again and again and fast, which lengths of its inputs a graph accepts."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...codes import Code
from ...diagnostics import Diagnostic, Diagnostics, Severity
from ...errors import IRError
from ...ir.dimension import Dimension, Symbol
from ...ir.element import ElementType
from ...ir.graph import Body, Graph, Layer, Port
from ...ir.shape import PartialShape
from ...ir.tensor import TensorType, Value
from ..infer import infer
from .oracle import Answer, BudgetExceededError, Dim, Lengths

__all__ = ["Probe"]

# What inference remembers of layers it has seen; beyond this it forgets, so that memory stays bounded.
REMEMBERED = 200_000

# More floating-point numbers than this are weights: no shape depends on what they are.
NUMBERS = 64

UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class _RemarkError(IRError):
    """What nobody can mean, such as an index behind the end of a table, though it may run."""

    values: tuple[Value, ...] = ()
    """What is inferred all the same."""


class _Step(NamedTuple):
    layer: Layer
    op: int
    """The same for layers whose operations are equal in all attributes."""
    sources: tuple[Port | None, ...]
    ports: tuple[Port, ...]


@dataclass(slots=True)
class Probe:
    """Infers the layers behind the open inputs of a graph, and stops at the first that refuses.

    Layers with equal operations and equal inputs are inferred once, whichever layer and whichever
    question they are met in: networks repeat themselves, and so do questions.

    Args:
        graph: the layers.
        known: what was inferred about them with the lengths left open.
        parameters: the types of the Parameters, by id.
        questions: how many may be asked.
        seconds: how long they may take.
    """

    graph: Graph
    known: Mapping[Port, Value]
    parameters: Mapping[int, TensorType]
    questions: int = 5000
    seconds: float = 10.0
    lenient: bool = False
    """Whether what nobody can mean is accepted, as long as no shape contradicts another."""
    asked: int = 0
    dims: tuple[Dim, ...] = ()
    _steps: tuple[_Step, ...] = ()
    _fixed: dict[Port, Value] = field(default_factory=dict)
    _values: dict[Any, Value] = field(default_factory=dict)
    _seen: dict[Any, tuple[Value, ...] | IRError] = field(default_factory=dict)
    _answers: dict[tuple[Any, ...], Answer] = field(default_factory=dict)
    _followed: frozenset[Port] = frozenset()
    _warned: frozenset[int] = frozenset()
    _symbols: dict[Dim, Symbol] = field(default_factory=dict)
    _started: float = 0.0

    def __post_init__(self) -> None:
        self._started = time.monotonic()
        self.dims = tuple(self._open_dims())
        inside = set(self._downstream())
        kinds: dict[Any, int] = {}
        self._steps = tuple(
            _Step(
                layer,
                kinds.setdefault(_signature(layer), len(kinds)),
                self.graph.sources(layer),
                tuple(Port(layer.id, i) for i in range(len(layer.outputs))),
            )
            for layer in self.graph
            if layer.id in inside and layer.type != "Parameter"
        )
        self._warned = frozenset(step.layer.id for step in self._steps if self._deserves_a_look(step))
        self._symbols = {dim: Symbol(f"{self.graph[dim.layer].name}.{dim.axis}") for dim in self.dims}
        read = {source for step in self._steps for source in step.sources if source is not None}
        self._fixed = {
            port: self._same(_light(value))
            for port, value in self.known.items()
            if port in read and port.layer not in inside
        }

    def bounds(self, dim: Dim) -> Dimension:
        """What the Parameter allows."""
        return self.parameters[dim.layer].shape[dim.axis]

    def __call__(self, lengths: Lengths) -> Answer:
        """The answer for lengths; a range stands for all of its lengths, and is refused if all of them are.

        Dims that are not given are as open as their Parameter declares them.

        Raises:
            BudgetExceededError: if there have been enough questions.
        """
        key = (self.lenient, *sorted((dim, _key(length)) for dim, length in lengths.items()))
        if (answer := self._answers.get(key)) is None:
            self._spend()
            answer = self._answers[key] = self._ask(lengths)
        return answer

    def accepts(self, lengths: Lengths) -> bool | None:
        """Whether the graph takes the lengths; ``None`` if that cannot be told."""
        return self(lengths).accepted

    def settle(self, lengths: Lengths) -> None:
        """Hold answers against what is known at these lengths: where less is, an answer is blind."""
        values = self.values(lengths)
        self._followed = frozenset(port for port, value in values.items() if value.data is not None)
        self._answers.clear()

    def values(self, lengths: Lengths) -> dict[Port, Value]:
        """What is inferred at lengths of all that depends on them, up to the layer that refuses."""
        return {port: value for port, value in self._walk(lengths)[1].items() if port not in self._fixed}

    def spent(self) -> bool:
        """Whether there are no questions left."""
        return self.asked >= self.questions or time.monotonic() - self._started > self.seconds

    def _spend(self) -> None:
        if self.spent():
            raise BudgetExceededError
        self.asked += 1

    def _open_dims(self) -> Iterator[Dim]:
        for layer in self.graph.of_type("Parameter"):
            shape = self.parameters[layer.id].shape
            if shape.rank is not None:
                yield from (Dim(layer.id, axis) for axis, dim in enumerate(shape) if dim.is_dynamic)

    def _downstream(self) -> Iterator[int]:
        """The layers that depend on an open dim; those of graphs with a ring are never reached."""
        inside = {dim.layer for dim in self.dims}
        for layer in self.graph:
            sources = self.graph.sources(layer)
            if layer.id in inside or any(s is not None and s.layer in inside for s in sources):
                inside.add(layer.id)
                yield layer.id

    def _deserves_a_look(self, step: _Step) -> bool:
        """Whether there is something about a layer whatever the lengths are."""
        inputs = [self.known[s] for s in step.sources if s is not None and s in self.known]
        if step.layer.op is None or len(inputs) < len(step.sources):
            return False
        with suppress(Exception):  # what is wrong with a layer, inference has said
            return any(True for _ in step.layer.op.audit(*inputs))
        return False

    def _ask(self, lengths: Lengths) -> Answer:
        steps, values, failed = self._walk(lengths)
        if failed is None:
            is_point = all(not isinstance(length, Dimension) for length in lengths.values())
            blind = is_point and any(values[port].data is None for port in self._followed if port in values)
            return Answer(steps, blind=blind)
        layer, reason = failed
        if reason.code == Code.LIMIT:
            return Answer(steps, blind=True)
        severity = Severity.WARNING if isinstance(reason, _RemarkError) else Severity.ERROR
        refusal = Diagnostic(reason.code, reason.message, reason.where or layer.where, severity, reason.hint)
        seen = (values.get(s) for s in self.graph.sources(layer) if s is not None)
        return Answer(steps, refusal, layer, tuple(dict.fromkeys(n for v in seen if v for n in _lengths(v))))

    def _walk(self, lengths: Lengths) -> tuple[int, dict[Port, Value], tuple[Layer, IRError] | None]:
        if len(self._seen) > REMEMBERED:
            self._forget()
        values = self._fixed | self._inputs(lengths)
        known, seen = values.get, self._seen
        for count, step in enumerate(self._steps):
            inputs = [known(source) if source else None for source in step.sources]
            key = (step.op, *map(id, inputs))
            if (found := seen.get(key)) is None:
                found = seen[key] = self._infer(step.layer, inputs)
            if isinstance(found, _RemarkError) and self.lenient:
                found = found.values
            if isinstance(found, IRError):
                return count, values, (step.layer, found)
            values.update(zip(step.ports, found, strict=False))
        return len(self._steps), values, None

    def _forget(self) -> None:
        self._seen.clear()
        self._values.clear()
        self._fixed = {port: self._same(value) for port, value in self._fixed.items()}

    def _inputs(self, lengths: Lengths) -> dict[Port, Value]:
        inputs = {}
        for layer in dict.fromkeys(dim.layer for dim in self.dims):
            type = self.parameters[layer]
            dims = {
                axis: self._dimension(Dim(layer, axis), lengths.get(Dim(layer, axis), dim))
                for axis, dim in enumerate(type.shape)
                if dim.is_dynamic
            }
            inputs[Port(layer, 0)] = self._same(Value(TensorType(type.element, type.shape.replace(dims))))
        return inputs

    def _dimension(self, dim: Dim, length: int | Dimension) -> int | Dimension:
        """A range has a symbol, so that it is known to equal itself."""
        if not isinstance(length, Dimension) or length.symbol or length.is_static:
            return length
        return Dimension.between(length.min, length.max, self._symbols[dim])

    def _infer(self, layer: Layer, inputs: list[Value | None]) -> tuple[Value, ...] | IRError:
        found = self._infer_anew(layer, inputs)
        if isinstance(found, _RemarkError):
            found.values = tuple(map(self._same, found.values))
        return found if isinstance(found, IRError) else tuple(map(self._same, found))

    def _infer_anew(self, layer: Layer, inputs: list[Value | None]) -> tuple[Value, ...] | IRError:
        declared = tuple(Value(port.type or UNKNOWN) for port in layer.outputs)
        if layer.op is None or None in inputs:
            return declared
        given = [v for v in inputs if v is not None]
        visitor = _Visitor()
        try:
            context = {"visit": visitor} if layer.bodies() else {}
            found = layer.op.infer_values(*given, **context)
            for sentence in layer.op.audit(*given):
                if layer.id not in self._warned:
                    remark = _RemarkError(sentence, code=Code.ODD_CONTENT)
                    remark.values = found
                    return remark
        except IRError as reason:
            return reason
        except Exception as reason:  # what evaluation on constants raises, as in `infer`
            message = f"its inputs cannot be computed with: {type(reason).__name__}: {reason}"
            return IRError(message, code=Code.CONTRADICTION)
        for first in visitor.errors():
            return IRError(first.message, code=first.code, where=first.where, hint=first.hint)
        return found + declared[len(found) :]  # where it is not even known how many there are

    def _same(self, value: Value) -> Value:
        """One object for equal values, so that looking up what was inferred from them is cheap."""
        data = value.data
        if data is None:
            key: Any = (value.element, value.shape)
        elif data.dtype == object:
            return self._values.setdefault(id(value), value)  # intervals and texts are their own
        else:
            key = (value.element, data.shape, data.tobytes())
        return self._values.setdefault(key, value)


class _Visitor:
    """Infers the bodies of a layer, and keeps what was found last: loops are visited again and again."""

    def __init__(self) -> None:
        self._reports: dict[str, Diagnostics] = {}

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        report = self._reports[body.name] = Diagnostics()
        inner = infer(body.graph, report, feeds, False)
        return {result: inner[port] for result, port in body.results.items()}

    def errors(self) -> Iterator[Diagnostic]:
        return itertools.chain.from_iterable(report.errors for report in self._reports.values())


def _signature(layer: Layer) -> Any:
    """What two layers have in common that give equal outputs for equal inputs."""
    if layer.op is None or layer.bodies():
        return layer.id
    key = (type(layer.op), repr(layer.op.attributes()), len(layer.outputs))
    has_payload = len(vars(layer.op)) > len(layer.op.attributes())
    return (*key, layer.id) if has_payload else key


def _light(value: Value) -> Value:
    """A constant without its numbers where they are weights, so that layers are equal but for these."""
    many = value.data is not None and value.data.size > NUMBERS and value.element.real
    return Value(value.type) if many else value


def _key(length: int | Dimension) -> Any:
    return (length.min, length.max or -1, id(length.symbol)) if isinstance(length, Dimension) else (length,)


def _lengths(value: Value) -> Iterator[int]:
    """The lengths of a tensor, and the numbers in it if it is as small as a shape."""
    if value.shape.rank is not None:
        yield from (dim.min for dim in value.shape if dim.is_static)
    if value.data is not None and value.data.size <= 8 and value.data.dtype.kind in "iu":
        yield from (int(n) for n in value.data.flat if n > 0)
