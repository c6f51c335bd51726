"""Construction of layers for new nodes, with their operations, attributes and ports."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from ..._util.forks import cached_by_class
from ..._util.nearest import did_you_mean, suggestion
from ..._util.wrong_arguments import ArgumentTypeError
from ...codes import Code
from ...diagnostics import Location
from ...errors import UnsupportedError, ValidationError
from ...io.writer import attribute_text
from ...ir.array import as_booleans
from ...ir.element import ElementType
from ...ir.graph import Layer, PortSpec
from ...ir.operation import Operation
from ...ir.shape import PartialShape
from ...ir.tensor import Array, objects
from ...ops import Op, find_operation, registry

__all__ = [
    "array_of",
    "change_attribute",
    "complete",
    "constant",
    "incomplete",
    "set_port_info",
    "rename_port",
    "new_layer",
    "operation",
    "operation_class",
    "plain_ports",
    "type_name",
    "unique_name",
]

_NUMBERS = itertools.count(1)

# Operations that files spell differently from OpenVINO's API.
_SPELLED = {"PReLU": "PRelu", "ReLU": "Relu", "SoftMax": "Softmax"}


def type_name(type: str) -> str:
    """Return the name of an operation as OpenVINO's API spells it.

    >>> type_name("ReLU")
    'Relu'
    """
    return _SPELLED.get(type, type)


def unique_name(type: str) -> str:
    """Return a new name for a layer, such as ``Relu_7``."""
    return f"{type_name(type)}_{next(_NUMBERS)}"


def new_layer(op: Operation, inputs: int, name: str) -> Layer:
    """Return a layer of an operation with ``inputs`` inputs."""
    assert isinstance(op, Op)
    where = Location(layer=name, operation=op.versioned_name())
    reads, gives = plain_ports(0, inputs), plain_ports(inputs, _declared_outputs(type(op)))
    return Layer(-1, name, op.name, f"opset{op.since}", op, where, reads, gives, _texts(op))


@lru_cache(256)
def plain_ports(first: int, count: int) -> tuple[PortSpec, ...]:
    """Return ``count`` ports numbered from ``first`` without declared types."""
    return tuple(map(PortSpec, range(first, first + count)))


@cached_by_class
def _declared_outputs(cls: type[Op]) -> int:
    """Return the initial number of outputs of a layer. Inference may change it."""
    return 0 if cls.name == "Result" or any(port.variadic for port in cls.outputs) else len(cls.outputs)


def incomplete(type: str, opset: int) -> Layer:
    """Return a layer of an operation whose bodies or attributes are set later."""
    cls = operation_class(type, opset)
    name = unique_name(cls.name)
    return Layer(
        -1, name, cls.name, f"opset{cls.since}", None, Location(layer=name, operation=cls.versioned_name())
    )


def complete(layer: Layer) -> Op | None:
    """Return the operation of an incomplete layer with its current attributes, or None for an unknown type.

    Raises:
        ValidationError: if an attribute is missing or invalid.
    """
    number = layer.version.removeprefix("opset")
    cls = find_operation(layer.type, int(number)) if number.isdecimal() else None
    return None if cls is None else cls.parse({**cls.omitted_defaults(layer.attributes), **layer.attributes})


def operation(type: str, opset: int | None, attributes: Mapping[str, object]) -> Op:
    """Return an operation with attributes, given by their names in files or in Python.

    Raises:
        UnsupportedError: if the opset has no such operation.
        ValidationError: if an attribute is unknown, missing or invalid.
    """
    cls = operation_class(type, opset)
    schema = cls.schema()
    payloads: dict[str, object] = {}
    texts: dict[str, str] = {}
    for name, value in attributes.items():
        if (attribute := schema.get(name)) is not None and attribute.external:
            payloads[name] = value
        elif value is not None:
            texts[_xml_name(cls, name)] = _text(value)
    if payloads or not cls.pure:
        return cls.parse({**cls.omitted_defaults(texts), **texts}, **payloads)
    return _parse_shared(cls, tuple(texts.items()))  # type: ignore[arg-type]  # mypy does not consider a class hashable


@lru_cache(256)
def _parse_shared(cls: type[Op], texts: tuple[tuple[str, str], ...]) -> Op:
    """Return an operation with the given attributes and without blobs and bodies, cached so that equal layers share it."""
    attributes = dict(texts)
    return cls.parse({**cls.omitted_defaults(attributes), **attributes})


def change_attribute(layer: Layer, name: str, value: object) -> Layer:
    """Return the layer with an attribute replaced. On an incomplete layer, the value is checked later."""
    if layer.op is None:
        cls = operation_class(layer.type, int(layer.version.removeprefix("opset")))
        return replace(layer, attributes={**layer.attributes, _xml_name(cls, name): _text(value)})
    assert isinstance(layer.op, Op)
    cls = type(layer.op)
    attribute = {a.xml: a for a in cls.schema().values()}[_xml_name(cls, name)]
    try:
        op = layer.op.replace(**{attribute.name: attribute.parse(_text(value))})
    except ValueError as problem:
        raise ValidationError(
            f"attribute {name!r} {problem}", code=Code.BAD_ATTRIBUTE, where=layer.where
        ) from None
    return replace(layer, op=op, attributes={**layer.attributes, **_texts(op)})


def constant(array: Array, element: ElementType | None = None) -> Op:
    """Return a Constant operation that holds an array."""
    cls = operation_class("Constant", 1)
    array = as_booleans(array)
    element_type = element or ElementType.from_dtype(array.dtype)
    size = max(element_type.nbytes(array.size), 1)  # OpenVINO requires at least one byte
    return cls(element_type=element_type, shape=PartialShape(array.shape), offset=0, size=size, value=array)


def array_of(value: object) -> Array:
    """Return an array-like as an array of a type that a Constant can hold.

    Raises:
        ArgumentTypeError: if there is no element type for its dtype.
    """
    array = np.asarray(value)
    if array.dtype.kind in "US" and array.ndim:
        texts = np.char.decode(array) if array.dtype.kind == "S" else array
        return objects(texts.ravel().tolist(), array.shape)
    try:
        if array.dtype.kind in "biuf" or array.dtype.kind == "V":
            ElementType.from_dtype(array.dtype)
            return array
    except ValueError:
        pass
    raise ArgumentTypeError(
        f"{value!r} is not a tensor: its type is {array.dtype}", hint="expected a node, an output or numbers"
    )


def rename_port(specs: Sequence[PortSpec], index: int, names: Sequence[str]) -> tuple[PortSpec, ...]:
    """Return the ports with the names of one replaced."""
    return (*specs[:index], *[spec.renamed(names) for spec in specs[index : index + 1]], *specs[index + 1 :])


def set_port_info(
    specs: Sequence[PortSpec], index: int, rt_info: Mapping[str, object]
) -> tuple[PortSpec, ...]:
    """Return the ports with the runtime information of one replaced."""
    return tuple(replace(s, rt_info=rt_info) if i == index else s for i, s in enumerate(specs))


def operation_class(type: str, opset: int | None) -> type[Op]:
    """Return the class of an operation in an opset.

    Raises:
        UnsupportedError: if the opset has no such operation.
    """
    operation_type = find_operation(type, opset)
    if operation_type is None:
        near = registry.near(type)
        where = f"opset{opset} has" if opset else "there is"
        hint = suggestion(near if near != type else None)
        raise UnsupportedError(f"{where} no operation {type!r}", hint=hint)
    return operation_type


def _xml_name(cls: type[Op], name: str) -> str:
    if (attribute := cls.schema().get(name)) is not None:
        return attribute.xml
    names = {key: a.xml for key, a in cls.schema().items()}
    if name in names.values():
        return name
    hint = did_you_mean(name, names) or f"it has {', '.join(names) or 'none'}"
    raise ValidationError(
        f"{cls.versioned_name()} has no attribute {name!r}", code=Code.BAD_ATTRIBUTE, hint=hint
    )


def _text(value: object) -> str:
    """Format a value as files do."""
    if isinstance(value, str):
        return value
    if isinstance(value, PartialShape):
        return attribute_text(value)
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ",".join(map(_text, value))
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, type | np.dtype):
        return ElementType.from_dtype(value).label
    return value.label if isinstance(value, ElementType) else str(value)


def _texts(op: Op) -> dict[str, str]:
    """Format the attributes as files do, including defaults but not empty lists."""
    values = vars(op)
    return {
        a.xml: attribute_text(values[name])
        for name, a in op.schema().items()
        if not a.external and values[name] not in (None, ())
    }
