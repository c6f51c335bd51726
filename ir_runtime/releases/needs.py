"""The oldest release that reads a model, and the layers and features that require it.

A feature is a short string; `_table` maps it to the first release that reads it.

======================  ==================================================================
``version:11``          the version of the IR
``TopK-11``             a version of an operation
``TopK-11@13``          the same version in a layer that names a later operation set
``opset:13``            an operation set that a layer names, if it is later than that of its version
``TopK-11/stable``      an attribute that is not at its default; with ``=value`` an enumeration
``TopK-11:data=i16``    the element type of an input
``type:nf4``            an element type, wherever it is
``shape:?``             a dynamic dimension; ``shape:0`` no elements, ``shape:...`` a dynamic rank
======================  ==================================================================
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .._util.command_line import on_command_line
from .._util.deadline import check_periodically
from ..analysis.infer import Inferred, infer
from ..codes import Code
from ..diagnostics import Diagnostics, Location, Mark
from ..io.reader.document import Document
from ..io.reader.layers import opset_of
from ..ir.element import ElementType
from ..ir.graph import Body, Graph, Layer, Port, PortSpec
from ..ir.shape import PartialShape
from ..ir.signature import port_at
from ..ir.tensor import TensorType, Value
from ..ops import Op, registry
from ..ops._define.attributes import Attribute, attribute_text
from .release import Release, first_to_read, releases

__all__ = [
    "LayerFeatures",
    "Need",
    "check_release",
    "features_of",
    "body_types",
    "needs_of",
    "needs_of_file",
    "oldest_release",
]


class Need(NamedTuple):
    """A feature that some known release does not read, with the layer that has it."""

    feature: str
    first: Release | None
    """The first release that reads the feature, None if none does."""
    where: Location | None = None
    """The layer that has the feature, None for the version of the IR."""

    @property
    def code(self) -> Code:
        """Code of the finding for a release that does not read it."""
        return _kind(self.feature)[0]

    @property
    def text(self) -> str:
        """The feature in words: ``Identity-16``, ``element type nf4``."""
        return _kind(self.feature)[1]

    @property
    def layer(self) -> str | None:
        """The name of the layer that has the feature, if any."""
        return self.where.layer if self.where else None

    @property
    def mark(self) -> Mark | None:
        """The attribute concerned, if any."""
        match = re.fullmatch(r"[^/:]*/([^=]*).*", self.feature)
        return Mark(attribute=match[1]) if match else None

    def is_met(self, release: Release) -> bool:
        """Return whether a release reads the feature."""
        return self.first is not None and self.first <= release


def _kind(feature: str) -> tuple[Code, str]:
    """Return the code of the finding for a missing feature, and the feature in words."""
    name, _, rest = feature.partition(":")
    if name == "version":
        return Code.RELEASE_VERSION, f"IR version {rest}"
    if name == "opset":
        return Code.RELEASE_OPERATION, f"opset{rest}"
    if name == "type":
        return Code.RELEASE_TYPE, f"element type {rest}"
    if name == "shape":
        return Code.RELEASE_SHAPE, _SHAPES[rest]
    if rest:
        port, _, element = rest.partition("=")
        return Code.RELEASE_TYPE, f"{element} for {port!r} of {name}"
    operation, _, attribute = feature.partition("/")
    if attribute:
        key, equals, value = attribute.partition("=")
        what = f"{value!r} for attribute {key!r}" if equals else f"attribute {key!r}"
        return Code.RELEASE_ATTRIBUTE, f"{what} of {operation}"
    operation, _, opset = feature.partition("@")
    return Code.RELEASE_OPERATION, f"{operation} in opset{opset}" if opset else operation


_SHAPES = {"0": "dims of 0", "?": "dynamic dims", "...": "a dynamic rank"}


def needs_of_file(document: Document, graph: Graph, inferred: Inferred) -> Iterator[Need]:
    """Yield the needs of the version of the IR, if the model is read from a file, and of all layers.

    If no known release reads that version, the needs of layers are omitted.
    """
    oldest = releases()[0]
    if document.file and not document.is_page:
        feature = f"version:{document.version}"
        if (first := first_to_read(feature)) != oldest:
            yield Need(feature, first, Location(document.file))
        if first is None:
            return
    yield from needs_of(graph, inferred)


def needs_of(graph: Graph, inferred: Inferred) -> Iterator[Need]:
    """Yield the needs of all layers, in the order of the file."""
    oldest = releases()[0]
    for layer, _, own in features_of(graph, inferred):
        for name in own:
            if (first := first_to_read(name)) != oldest:
                yield Need(name, first, layer.where)


def oldest_release(needs: Iterable[Need]) -> Release | None:
    """Return the oldest known release that meets all needs; ``None`` if none does."""
    first = [need.first for need in needs]
    return None if None in first else max(filter(None, first), default=releases()[0])


def check_release(release: Release, needs: Iterable[Need], report: Diagnostics) -> None:
    """Report the needs that a release does not meet."""
    for need in needs:
        if not need.is_met(release):
            since = "no release does" if need.first is None else f"{need.first} is the first that does"
            message = f"OpenVINO {release} does not read {need.text}; {since}"
            report.error(need.code, message, need.where, _hint(release), mark=need.mark)


def _hint(release: Release) -> str:
    return (
        f"ir-runtime upgrade MODEL.xml NEW.xml --for {release} writes a file that it reads, if there is one of equal results"
        if on_command_line()
        else f"save_model(..., for_release='{release}') writes a file that it reads, if there is one of equal results"
    )


_UNKNOWN = TensorType(ElementType.dynamic, PartialShape.dynamic())


class LayerFeatures(NamedTuple):
    """A layer and the features that a release needs to read it."""

    layer: Layer
    names: tuple[str, ...]
    own: tuple[str, ...]
    """Features introduced by this layer, not inherited from its inputs or, in a body, from the owner of the body."""


def features_of(graph: Graph, inferred: Inferred) -> Iterator[LayerFeatures]:
    """Yield the layers of a graph and of its bodies with their features, in the order of the file.

    Unknown operations, and those from other packages, only have the features of their outputs.
    """
    yield from _walk(graph, inferred, frozenset(), {})


def _walk(
    graph: Graph,
    inferred: Inferred,
    outside: frozenset[str],
    cache: dict[tuple[object, ...], tuple[str, ...]],
) -> Iterator[LayerFeatures]:
    """Yield the layers of a graph and of its bodies with their features.

    Args:
        graph: the layers.
        inferred: their inferred types.
        outside: features of the tensors that enter a body.
        cache: features by operation and element types, as many layers of a model are alike.
    """
    types = {
        Port(layer.id, number): _type(spec, inferred.get(Port(layer.id, number)))
        for layer in graph.layers.values()
        for number, spec in enumerate(layer.outputs)
    }
    for layer in check_periodically(graph.layers.values()):
        inputs = [types[source] if source else _UNKNOWN for source in graph.sources(layer)]
        elements = tuple(type.element for type in inputs)
        key = (layer.op, layer.version, elements)
        if (operation := cache.get(key)) is None:
            operation = cache[key] = tuple(_operation_features(layer, elements))
        arriving = frozenset(_type_features(inputs)) or (
            outside if layer.type == "Parameter" else frozenset()
        )
        tensors = dict.fromkeys(_type_features(types[port] for port in layer.output_ports))
        if layer.type == "Constant":
            tensors.pop("shape:0", None)  # all releases read empty constants
        own = (*operation, *(name for name in tensors if name not in arriving))
        yield LayerFeatures(layer, (*operation, *tensors), own)
        for body in layer.bodies():
            yield from _walk(body.graph, body_types(inferred, layer, body), arriving, cache)


def body_types(inferred: Inferred, layer: Layer, body: Body) -> Inferred:
    """Return the inferred types of a body, which are inferred from its Parameters if the body never runs."""
    types = inferred.bodies.get((layer.id, body.name))
    return infer(body.graph, Diagnostics()) if types is None else types


def _operation_features(layer: Layer, elements: Sequence[ElementType]) -> Iterator[str]:
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
            yield from (f"{name}/{text}" for text in _attribute_features(attribute, vars(op)[field]))
    for index, element in enumerate(elements):
        port = port_at(op.inputs, index)
        if port is not None and element is not ElementType.dynamic:
            yield f"{name}:{port.name}={element.label}"


def _attribute_features(attribute: Attribute, value: object) -> Iterator[str]:
    """Yield an attribute that is not at its default: its name, with the value for enumerations."""
    if value == attribute.default or value is None or isinstance(value, PartialShape):
        return
    items = value if isinstance(value, tuple) else (value,)
    if attribute.choices or all(isinstance(item, bool | ElementType) for item in items):
        yield from (f"{attribute.xml}={attribute_text(item)}" for item in items)
    elif not attribute.required:
        yield attribute.xml


def _type(spec: PortSpec, value: Value | None) -> TensorType:
    """Return the type of an output as written to a file: inferred, completed by the declared one."""
    if value is None or spec.type is None:
        return (spec.type or _UNKNOWN) if value is None else value.type
    both = value.shape.merge(spec.type.shape)
    return TensorType(value.element, value.shape if both is None else both)


def _type_features(types: Iterable[TensorType]) -> Iterator[str]:
    for type in types:
        if type.element is not ElementType.dynamic:
            yield f"type:{type.element.label}"
        if type.shape.rank is None:
            yield "shape:..."
        elif not type.shape.is_static:
            yield "shape:?"
        elif 0 in type.shape.static:  # releases that refuse empty tensors check only static shapes
            yield "shape:0"
