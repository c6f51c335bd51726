"""Name what a model has that not every release of OpenVINO reads: its features.

A feature is a short text; the table of releases says which release is the first to read it.

======================  ==================================================================
``version:11``          the version of the IR
``TopK-11``             a version of an operation
``TopK-11@13``          that version, where a layer names a later operation set
``opset:13``            an operation set that a layer names, if it is later than that of its version
``TopK-11/stable``      an attribute that is not at its default; with ``=value`` an enumeration
``TopK-11:data=i16``    the element type of an input
``type:nf4``            an element type, wherever it is
``shape:?``             a dynamic dimension; ``shape:0`` no elements, ``shape:...`` a dynamic rank
======================  ==================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ..analysis.infer import Inferred, infer
from ..deadline import check_periodically
from ..diagnostics import Diagnostics
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.signature import port_at
from ..ir.tensor import TensorType, Value
from ..ops import Op, registry
from ..ops._define.attributes import Attribute, attribute_text
from ..reader.opsets import opset_of

__all__ = ["LayerFeatures", "features_of", "known_of_body"]

_UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class LayerFeatures(NamedTuple):
    """A layer and its features."""

    layer: Layer
    names: tuple[str, ...]
    own: tuple[str, ...]
    """Those that it does not just pass on from its inputs, or its body from the layer that has it."""


def features_of(graph: Graph, known: Inferred) -> Iterator[LayerFeatures]:
    """Yield the layers of a graph and of its bodies with their features, in the order of the file.

    Layers of unknown operations, and of operations that other packages declare, have those of their outputs only.
    """
    yield from _walk(graph, known, frozenset(), {})


def _walk(
    graph: Graph,
    known: Inferred,
    outside: frozenset[str],
    cache: dict[tuple[object, ...], tuple[str, ...]],
) -> Iterator[LayerFeatures]:
    """Yield the layers of a graph.

    Args:
        graph: the layers.
        known: what was inferred of them.
        outside: features of what enters a body.
        cache: features by operation and element types: many layers of a model are equal.
    """
    types = {
        Port(layer.id, number): _type(spec, known.get(Port(layer.id, number)))
        for layer in graph.layers.values()
        for number, spec in enumerate(layer.outputs)
    }
    for layer in check_periodically(graph.layers.values()):
        inputs = [types[source] if source else _UNKNOWN for source in graph.sources(layer)]
        elements = tuple(type.element for type in inputs)
        key = (layer.op, layer.version, elements)
        if (operation := cache.get(key)) is None:
            operation = cache[key] = tuple(_of_operation(layer, elements))
        arriving = frozenset(_of_types(inputs)) or (outside if layer.type == "Parameter" else frozenset())
        tensors = dict.fromkeys(_of_types(types[port] for port in layer.output_ports))
        if layer.type == "Constant":
            tensors.pop("shape:0", None)  # all releases read empty constants
        own = (*operation, *(name for name in tensors if name not in arriving))
        yield LayerFeatures(layer, (*operation, *tensors), own)
        for body in layer.bodies():
            yield from _walk(body.graph, known_of_body(known, layer, body), arriving, cache)


def known_of_body(known: Inferred, layer: Layer, body: Body) -> Inferred:
    """Return what is known of a body; one that never runs is inferred from what its Parameters declare."""
    found = known.bodies.get((layer.id, body.name))
    return infer(body.graph, Diagnostics()) if found is None else found


def _of_operation(layer: Layer, elements: Sequence[ElementType]) -> Iterator[str]:
    op = layer.op
    if not isinstance(op, Op) or not registry.is_own(type(op)):
        return
    name, opset = op.versioned_name(), opset_of(layer.version) or op.since
    yield name
    if opset > op.since:
        yield f"opset:{opset}"
        yield f"{name}@{opset}"
    for field, attribute in op.schema().items():
        if not attribute.external:
            yield from (f"{name}/{said}" for said in _of_attribute(attribute, vars(op)[field]))
    for index, element in enumerate(elements):
        port = port_at(op.inputs, index)
        if port is not None and element is not ElementType.dynamic:
            yield f"{name}:{port.name}={element.label}"


def _of_attribute(attribute: Attribute, value: object) -> Iterator[str]:
    """Yield the name of an attribute, with the value if it is one of few, unless it is at its default."""
    if value == attribute.default or value is None or isinstance(value, PartialShape):
        return
    items = value if isinstance(value, tuple) else (value,)
    if attribute.choices or all(isinstance(item, bool | ElementType) for item in items):
        yield from (f"{attribute.xml}={attribute_text(item)}" for item in items)
    elif not attribute.required:
        yield attribute.xml


def _type(spec: PortSpec, value: Value | None) -> TensorType:
    """Return the inferred type of an output, completed by what its port declares, as it is written."""
    if value is None or spec.type is None:
        return (spec.type or _UNKNOWN) if value is None else value.type
    both = value.shape.merge(spec.type.shape)
    return TensorType(value.element, value.shape if both is None else both)


def _of_types(types: Iterable[TensorType]) -> Iterator[str]:
    for type in types:
        if type.element is not ElementType.dynamic:
            yield f"type:{type.element.label}"
        if type.shape.rank is None:
            yield "shape:..."
        elif not type.shape.is_static:
            yield "shape:?"
        elif 0 in type.shape.static:  # releases that refuse it look at shapes without dynamic dims only
            yield "shape:0"
