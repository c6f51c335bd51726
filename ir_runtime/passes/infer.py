"""Infer every type, and hold the result against what the file declares."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from ..codes import Code
from ..diagnostics import Diagnostic, Diagnostics, Location
from ..errors import IRError
from ..ir.body import Body
from ..ir.dimension import Dimension, Symbol
from ..ir.element import ElementType
from ..ir.graph import Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.tensor import TensorType, Value

__all__ = ["Inferred", "infer"]

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
) -> Inferred:
    """What is known of every output, in one walk; findings go into ``report``.

    Where inference fails, the file's word is taken and the walk goes on.

    Args:
        graph: the layers.
        report: takes the findings.
        parameters: what Parameter layers receive, by id, in place of what they declare.
        compare: hold the result against what the layers declare; unless told, where no parameters
            are given, as others than those declared make the rest say nothing.
    """
    known = Inferred()
    compare = parameters is None if compare is None else compare
    for layer in graph:
        inputs = [known.get(source) if source else None for source in graph.sources(layer)]
        visitor = _Visitor(layer, known, compare)
        values = list(_visit(layer, inputs, report, parameters or {}, visitor))
        for found in visitor.reports.values():
            report.found += found
        values += _declared(layer)[len(values) :]  # where it is not even known how many there are
        if compare:
            values = [_agree(layer, i, v, report) for i, v in enumerate(values)]
        known |= {Port(layer.id, i): v for i, v in enumerate(values)}
    return known


class _Visitor:
    """Infers the bodies of a layer, and keeps what was found last: loops are visited again and again."""

    def __init__(self, layer: Layer, known: Inferred, compare: bool) -> None:
        self._layer, self._known, self._compare = layer, known, compare
        self.reports: dict[str, list[Diagnostic]] = {}

    def __call__(self, body: Body, feeds: Mapping[int, Value]) -> dict[int, Value]:
        report = Diagnostics()
        inner = infer(body.graph, report, feeds, self._compare)
        self._known.bodies[self._layer.id, body.name] = inner
        self.reports[body.name] = report.found
        return {result: inner[port] for result, port in body.results.items()}


def _visit(
    layer: Layer,
    inputs: list[Value | None],
    report: Diagnostics,
    parameters: Mapping[int, Value],
    visitor: _Visitor,
) -> Iterable[Value]:
    if layer.id in parameters:
        return [_named(layer, parameters[layer.id])]
    if layer.op is None or None in inputs:
        return _declared(layer)
    try:
        context = {"visit": visitor} if layer.op.bodies() else {}
        found = layer.op.infer_values(*(v for v in inputs if v is not None), **context)
    except IRError as reason:
        report.error(reason.code, reason.message, layer.where, reason.hint)
        return _declared(layer)
    except Exception as reason:  # what evaluation on constants raises: the model decides it, not the caller
        message = f"its inputs cannot be computed with: {type(reason).__name__}: {reason}"
        report.error(Code.CONTRADICTION, message, layer.where)
        return _declared(layer)
    return [_named(layer, found[0])] if layer.type == "Parameter" else found


def _declared(layer: Layer) -> list[Value]:
    return [Value(port.type or _UNKNOWN) for port in layer.outputs]


def _named(layer: Layer, value: Value) -> Value:
    """Give each unknown dimension of an input a symbol, so that equal lengths are known to be equal."""
    if value.shape.rank is None or value.shape.is_static:
        return value
    dims = [
        Dimension.between(d.min, d.max, d.symbol or Symbol(f"{layer.name}.{i}")) if d.is_dynamic else d
        for i, d in enumerate(value.shape)
    ]
    return Value(TensorType(value.element, PartialShape(dims)), value.data)


def _agree(layer: Layer, index: int, value: Value, report: Diagnostics) -> Value:
    if index >= len(layer.outputs) or (declared := layer.outputs[index].type) is None:
        return value
    port = layer.outputs[index]
    if ElementType.dynamic not in (value.element, declared.element) and value.element is not declared.element:
        report.error(
            Code.DECLARED_TYPE,
            f"output port {port.id} declares {declared.element}, but the operation gives {value.element}",
            _place(layer, port),
        )
    if not value.shape.compatible(declared.shape):
        report.error(
            Code.DECLARED_SHAPE,
            f"output port {port.id} declares dims {declared.shape}, but the operation gives {value.shape}",
            _place(layer, port),
            "correct the dims, or the attribute or input that decides them",
        )
    if value.element is ElementType.dynamic:
        return replace(value, type=TensorType(declared.element, value.shape))
    return value


def _place(layer: Layer, port: PortSpec) -> Location:
    return replace(layer.where, line=port.line or layer.where.line)
