"""Shape inference: infer the type and shape of every port, and compare them with what the file declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from .. import deadline
from ..codes import Code
from ..diagnostics import Cause, Diagnostics
from ..errors import IRError, LimitError
from ..ir.dimension import Dimension, Symbol
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port
from ..ir.operation import Operation
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value
from .declared import Agreement
from .explain import Causes

__all__ = ["Inferred", "infer"]

# Graphs that lie deeper in others than this are inferred once, so that time does not double with each level.
_DEEP = 3

# A constant with more numbers than this is seldom like another.
_FEW = 16

_UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class Inferred(dict[Port, Value]):
    """What is known of every output; ``bodies`` has the same for graphs inside layers."""

    def __init__(self) -> None:
        super().__init__()
        self.bodies: dict[tuple[int, str], Inferred] = {}


def infer(
    graph: Graph,
    report: Diagnostics,
    parameters: Mapping[int, Value] | None = None,
    compare: bool | None = None,
    explain: bool = False,
    depth: int = 0,
) -> Inferred:
    """What is known of every output, in one walk; findings go into ``report``.

    Where inference fails, the file's word is taken and the walk goes on. Where inference and file
    contradict each other, it goes on with what the readers of the port declare, too; so a mistake is
    reported where it is, and what follows from it is not.

    Args:
        graph: the layers.
        report: takes the findings.
        parameters: what Parameter layers receive, by id, in place of what they declare.
        compare: hold the result against what the layers declare; unless told, where no parameters
            are given, as others than those declared make the rest say nothing.
        explain: look for what decided what is found wrong, which takes longer.
        depth: how many layers with bodies the graph lies in.
    """
    compare = parameters is None if compare is None else compare
    walk = _Walk(graph, report, parameters or {}, compare, explain, depth)
    for layer in graph.walk:
        deadline.check(layer.where)
        walk.visit(layer)
    return walk.known


class _Refusal(NamedTuple):
    """Why there is nothing to infer from inputs."""

    code: str
    message: str
    hint: str = ""


class _Outcome(NamedTuple):
    """What inference makes of a layer: its outputs, why not, and what is wrong inside its bodies."""

    values: list[Value]
    refusal: _Refusal | None = None
    inside: Sequence[Diagnostics] = ()

    @property
    def is_sound(self) -> bool:
        return self.refusal is None and not any(map(len, self.inside))


@dataclass(slots=True)
class _Walk:
    graph: Graph
    report: Diagnostics
    parameters: Mapping[int, Value]
    compare: bool
    explain: bool
    depth: int = 0
    known: Inferred = field(default_factory=Inferred)
    seen: dict[tuple[object, ...], tuple[Value, ...]] = field(default_factory=dict)
    """What was inferred for layers so far, by all that decides it: in a model, many are the same."""
    alone: Diagnostics | None = None
    """What is wrong with the graph if its Parameters get what they declare, if that has been asked."""
    agreement: Agreement = field(init=False)
    causes: Causes = field(init=False)

    def __post_init__(self) -> None:
        self.agreement = Agreement(self.graph, self.report, self._why if self.explain else None)
        self.causes = Causes(self.graph, self.known)

    def visit(self, layer: Layer) -> None:
        """Infer the outputs of a layer, of which all that it reads is known."""
        arriving = [self._arriving(layer, i, s) for i, s in enumerate(self.graph.sources(layer))]
        declared = self.agreement.inputs(layer, arriving) if self.compare else None
        if declared is None:
            values, refusal, inside = self._infer(layer, arriving)
        else:
            values, refusal, inside = self._either(layer, arriving, declared)
        for report in inside:
            self.report.extend(report)
        if refusal is not None:
            why = self.causes.of_refusal(layer, _all(arriving)) if self.explain else ()
            self.report.error(refusal.code, refusal.message, layer.where, refusal.hint, causes=why)
        values += _declared(layer)[len(values) :]  # where it is not even known how many there are
        self._keep(layer, values)
        fed = self.compare and layer.id in self.parameters
        if fed and self.agreement.parameter(layer, values[0].type, self._is_sound_alone):
            return
        if self.compare and not self.agreement.is_declared(layer, values):
            self._keep(layer, self.agreement.outputs(layer, values, quiet=declared is not None))

    def _is_sound_alone(self) -> bool:
        """Whether the graph makes sense with what its Parameters declare."""
        if self.alone is None:
            self.alone = Diagnostics()
            infer(self.graph, self.alone, compare=False, depth=self.depth)
        return self.alone.ok

    def _keep(self, layer: Layer, values: Sequence[Value]) -> None:
        for index, value in enumerate(values):
            self.known[Port(layer.id, index)] = value

    def _arriving(self, layer: Layer, index: int, source: Port | None) -> Value | None:
        if source is not None:
            return self.known.get(source)
        declared = layer.inputs[index].type
        return Value(declared or _UNKNOWN) if Port(layer.id, index) in self.graph.severed else None

    def _either(
        self, layer: Layer, arriving: Sequence[Value | None], declared: Sequence[Value | None]
    ) -> _Outcome:
        """Where a layer does not get what it declares: believe whichever of both makes sense."""
        one = self._infer(layer, declared)
        if one.is_sound or self.depth >= _DEEP:
            return one
        other = self._infer(layer, arriving)
        return other if other.is_sound else one

    def _infer(self, layer: Layer, inputs: Sequence[Value | None]) -> _Outcome:
        """What the outputs are; what they are declared as, if the operation refuses its inputs."""
        if layer.id in self.parameters:
            return _Outcome([_named(layer, self.parameters[layer.id])])
        if layer.op is None or None in inputs:
            return _Outcome(_declared(layer))
        said = None if (bodies := layer.bodies()) else _said(layer.op, inputs)
        if said is not None and (before := self.seen.get(said)) is not None:
            return _Outcome(list(before))
        visitor = _Visitor(layer, self)
        try:
            context = {"visit": visitor} if bodies else {}
            found = layer.op.infer_values(*_all(inputs), **context)
        except LimitError as reason:
            reason.where = reason.where or layer.where
            raise
        except IRError as reason:
            refusal = _Refusal(reason.code, reason.message, reason.hint)
            return _Outcome(_declared(layer), refusal, visitor.found())
        except Exception as reason:  # what evaluation on constants raises: the model decides it
            message = f"its inputs cannot be computed with: {type(reason).__name__}: {reason}"
            hint = "the code of the operation does not handle such inputs"
            return _Outcome(_declared(layer), _Refusal(Code.CONTRADICTION, message, hint), visitor.found())
        if said is not None and all(value.shape.is_static for value in found):
            self.seen[said] = found
        return _Outcome([_named(layer, value) for value in found], None, visitor.found())

    def _why(self, port: Port, dim: int) -> tuple[Cause, ...]:
        return self.causes.of_length(port, dim)


class _Visitor:
    """Infers the bodies of a layer, and keeps what was found last: loops are visited again and again."""

    def __init__(self, layer: Layer, walk: _Walk) -> None:
        self._layer, self._walk = layer, walk
        self._reports: dict[str, Diagnostics] = {}

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        walk = self._walk
        report = Diagnostics(walk.report.most)
        inner = infer(body.graph, report, feeds, walk.compare, walk.explain, walk.depth + 1)
        self._walk.known.bodies[self._layer.id, body.name] = inner
        self._reports[body.name] = report
        unfed = {layer.id: Value(_UNKNOWN) for layer in body.graph.of_type("Result")}
        return unfed | {result: inner[port] for result, port in body.results.items()}

    @property
    def is_deep(self) -> bool:
        """Whether to visit a body again and again would take too long."""
        return self._walk.depth >= _DEEP

    def found(self) -> list[Diagnostics]:
        """What is wrong inside the bodies."""
        return list(self._reports.values())


def _said(op: Operation, inputs: Sequence[Value | None]) -> tuple[object, ...] | None:
    """All that inference has to go by, if it is little: an operation, fixed shapes, and a few numbers."""
    if not op.pure or not inputs:
        return None
    said: list[object] = [op]
    for value in inputs:
        if value is None or not value.shape.is_static or value.bounds is not None:
            return None
        said += value.element, value.shape.static
        if value.data is not None:
            if value.data.size > _FEW or value.data.dtype.hasobject:
                return None
            said.append(value.data.tobytes())
    return tuple(said)


def _all(inputs: Sequence[Value | None]) -> list[Value]:
    return [value for value in inputs if value is not None]


def _declared(layer: Layer) -> list[Value]:
    return [Value(port.type or _UNKNOWN) for port in layer.outputs]


def _named(layer: Layer, value: Value) -> Value:
    """Give each unknown dimension a symbol, so that lengths that follow from it are known to be equal."""
    if value.shape.rank is None or all(d.symbol is not None or d.is_static for d in value.shape):
        return value
    names = [f"{layer.name}.{i}" if layer.type == "Parameter" else "" for i in range(len(value.shape))]
    dims = [
        d if d.is_static else Dimension.between(d.min, d.max, d.symbol or Symbol(name))
        for d, name in zip(value.shape, names, strict=True)
    ]
    return replace(value, type=TensorType(value.element, PartialShape(dims)))
