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
    """Return the value of each output of a layer, given those of its inputs.

    Raises:
        ValidationError: if the operation refuses its inputs.
    """
    if (found := _inferred(layer, inputs)) is not None:
        return found
    report = Diagnostics()
    known = _infer(layer, inputs, report)
    if report.errors:
        raise ValidationError.of(report.errors, report.more)
    return tuple(known[port] for port in sorted(known) if port.layer == _SELF)


def infer_shapes(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the outputs of a layer that may be impossible to compute; None if its shapes are not known, either."""
    with shapes_alone():
        return _inferred(layer, inputs)


def _inferred(layer: Layer, inputs: Sequence[Value]) -> tuple[Value, ...] | None:
    """Return the outputs of a layer without bodies that accepts its inputs; most new layers are that."""
    if layer.op is None or layer.bodies():
        return None
    try:
        found = layer.op.infer_values(*inputs)
    except LimitError:
        raise
    except Exception:  # inferring it as a graph says what is wrong
        return None
    return tuple(with_symbols(layer, value) for value in found)


def _infer(layer: Layer, inputs: Sequence[Value], report: Diagnostics) -> Inferred:
    sources = [Layer(number, "", "Parameter", "", None, Location()) for number in range(1, len(inputs) + 1)]
    edges = [Edge(Port(source.id, 0), Port(_SELF, number)) for number, source in enumerate(sources)]
    graph = Graph([*sources, replace(layer, id=_SELF)], edges)
    return infer(graph, report, dict(enumerate(inputs, 1)), compare=False)
