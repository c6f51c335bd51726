"""Infer one layer that is not part of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..diagnostics import Diagnostics, Location
from ..errors import LimitError, ValidationError
from ..ir.computable import shapes_alone
from ..ir.graph import Edge, Graph, Layer, Port
from ..ir.tensor import Value
from .infer import Inferred, infer, with_symbols

__all__ = ["infer_layer", "infer_shapes"]

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
